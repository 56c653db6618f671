/** `holdfast approve` */

import type { Command } from "commander";
import { decideCommand } from "./decide.ts";

export function approveCommand(): Command {
  return decideCommand({
    name: "approve",
    approved: true,
    summary: "approve a tool call that waits for it",
    description:
      "Records the decision on a tool call that waits for one. Nothing is run until the session is resumed; --resume does that at once. The " +
      "same decision again changes nothing, another one is refused.",
  });
}
