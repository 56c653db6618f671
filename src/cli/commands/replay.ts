/** `holdfast replay` */

import type { Command } from "commander";
import { natural } from "../arguments.ts";
import { withClient } from "../connect.ts";
import { clientOptions, define, optionOr, run, type ClientFlags } from "../define.ts";
import { recordJson } from "../json.ts";
import { recordLine } from "../record-line.ts";

interface ReplayFlags extends ClientFlags {
  readonly from?: number;
  readonly to?: number;
}

export function replayCommand(): Command {
  const command = define(
    "replay",
    "print a session's records",
    "Prints the committed records of a session, in order, without calling a model. With --json this is the export format: one LogRecord on " +
      "each line, which `holdfast verify FILE` checks without a server.",
    [
      ["the whole journal", "holdfast replay UID"],
      ["records 3 to 10", "holdfast replay UID --from 3 --to 10"],
      ["export, then verify what was exported", "holdfast replay UID --json > journal.jsonl && holdfast verify journal.jsonl"],
    ],
  )
    .argument("<uid>", "the session")
    .addOption(optionOr("--from <seq>", "the first record", "the first there is").argParser(natural))
    .addOption(optionOr("--to <seq>", "the last record", "the head").argParser(natural));
  return clientOptions(command, "one LogRecord on each line").action((uid: string, flags: ReplayFlags) =>
    run(flags, (context) =>
      withClient(context, flags, async ({ client }) => {
        const { screen, signal } = context;
        for await (const { record } of client.sessions.replay(uid, { fromSeq: flags.from, toSeq: flags.to, signal })) {
          if (screen.json) screen.value(recordJson(record));
          else screen.line(recordLine(record));
        }
        return 0;
      }),
    ),
  );
}
