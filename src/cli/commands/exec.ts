/** `holdfast exec` */

import { Option, type Command } from "commander";
import { collected, durationMs, natural } from "../arguments.ts";
import { withClient } from "../connect.ts";
import { creationOptions, type CreationFlags } from "../creation.ts";
import { clientOptions, define, optionOr, run, type ClientFlags } from "../define.ts";
import { followTurn } from "../follow-turn.ts";
import { readTurn } from "../turn-input.ts";

/** The flags of exec. */
export interface ExecFlags extends ClientFlags, CreationFlags {
  readonly input?: readonly string[];
  readonly session?: string;
  readonly harness?: string;
  readonly config?: string;
  readonly configFile?: string;
  readonly expectedLastSeq?: number;
  readonly deadline?: number;
  readonly cancelOnInterrupt?: boolean;
  readonly deltas?: boolean;
}

const DESCRIPTION =
  "Runs one turn and prints the session's uid, then each record as it commits. On a terminal, output appears as it is made. Without " +
  "--session a session is created for the turn. A turn without --input is a turn without input.\n\n" +
  "Ctrl-C detaches: the turn goes on without its client, and a line says how to pick it up; a second Ctrl-C exits at once. With " +
  "--cancel-on-interrupt the first Ctrl-C cancels the turn and waits for its END. An embedded server ends with the command, and so " +
  "does its turn.";

export function execCommand(): Command {
  const command = define("exec", "run a turn and follow it", DESCRIPTION, [
    ["a turn in a new session", 'holdfast exec --input "hello"'],
    ["the next turn of a session", 'holdfast exec --session UID --input "and then?"'],
    ["an input from a pipe, a real model", "git diff | holdfast exec --harness chat --model gpt-x --input 'Review this:' --input -"],
    [
      "only if nobody else was faster, for at most 30 seconds",
      "holdfast exec --session UID --expected-last-seq 12 --deadline 30s --input hi",
    ],
  ])
    .addOption(new Option("--input <text>", "a user's message; - reads standard input; may be given again").argParser(collected))
    .addOption(new Option("--session <uid>", "the session; left out, one is created"))
    .addOption(optionOr("--harness <name>", "the harness of a new session, or of this turn", "the session's"))
    .addOption(new Option("--config <text>", "config for the harness, journaled as it is: no secrets").conflicts("configFile"))
    .addOption(new Option("--config-file <file>", "the same from a file"))
    .addOption(new Option("--expected-last-seq <n>", "begin only if the session's last seq is this one").argParser(natural))
    .addOption(new Option("--deadline <time>", "cancel the turn after this time: 30s, 5m, 2h").argParser(durationMs))
    .addOption(new Option("--cancel-on-interrupt", "Ctrl-C cancels the turn instead of detaching from it"))
    .addOption(new Option("--deltas", "with --json: deltas too"));
  creationOptions(command);
  return clientOptions(command, "one ExecUpdate on each line: the session, then records").action((flags: ExecFlags) =>
    run(flags, async (context) => {
      const turn = await readTurn(flags);
      return withClient(context, flags, (connection) => followTurn(context, connection, turn, flags));
    }),
  );
}
