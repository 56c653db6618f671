/** `holdfast deny` */

import type { Command } from "commander";
import { decideCommand } from "./decide.ts";

export function denyCommand(): Command {
  return decideCommand({
    name: "deny",
    approved: false,
    summary: "deny a tool call that waits for a decision",
    description:
      "Records that a tool call is denied: it is never run, and the agent is told so when the session is resumed; --resume does that at once. " +
      "The same decision again changes nothing, another one is refused.",
  });
}
