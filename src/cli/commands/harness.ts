/** `holdfast harness`: the commands about harnesses. */

import type { Command } from "commander";
import { define } from "../define.ts";
import { harnessGetCommand } from "./harness-get.ts";
import { harnessListCommand } from "./harness-list.ts";
import { harnessRegisterCommand } from "./harness-register.ts";
import { harnessRetireCommand } from "./harness-retire.ts";

export function harnessCommand(): Command {
  const command = define(
    "harness",
    "register harnesses, and read, list and retire them",
    "Changes and reads the registry of harnesses that a server may dial, through the operator's port: by default the one after the server's " +
      "own, on 127.0.0.1. Its token is the operator's, from HOLDFAST_OPERATOR_TOKEN or HOLDFAST_OPERATOR_TOKEN_FILE.",
    [
      ["a harness that listens on a socket, used at once", "holdfast harness register coder --address unix:///run/coder.sock"],
      ["whether it answers, and what it is", "holdfast harness get coder --observe"],
    ],
  );
  for (const each of [harnessRegisterCommand(), harnessGetCommand(), harnessListCommand(), harnessRetireCommand()])
    command.addCommand(each);
  return command;
}
