/** `holdfast tail` */

import { Option, type Command } from "commander";
import { natural } from "../arguments.ts";
import { withReader, type Connection } from "../connect.ts";
import { clientOptions, define, run, type ClientFlags } from "../define.ts";
import type { ExitCode } from "../exit.ts";
import { recordJson } from "../json.ts";
import type { CommandContext } from "../perform.ts";
import { TurnPrinter } from "../turn-printer.ts";

interface TailFlags extends ClientFlags {
  readonly from?: number;
  readonly until?: "head" | "idle";
}

export function tailCommand(): Command {
  const command = define(
    "tail",
    "follow a session's records as they commit",
    "Prints a session's records from a cursor on and goes on as further ones commit. A lost connection is made anew without losing or " +
      "repeating a record. On a terminal, output appears as it is made. Ends with Ctrl-C, or as --until says.",
    [
      ["follow a session from its first record", "holdfast tail UID"],
      ["go on where an earlier one stopped", "holdfast tail UID --from 13"],
      ["wait for the running turn", "holdfast tail UID --until idle"],
    ],
  )
    .argument("<uid>", "the session")
    .addOption(new Option("--from <seq>", "the first record; one that is not there yet is waited for").argParser(natural).default(1))
    .addOption(new Option("--until <when>", "end by itself: at the present head, or once no turn is running").choices(["head", "idle"]));
  return clientOptions(command, "one LogRecord on each line").action((uid: string, flags: TailFlags) =>
    run(flags, (context) => withReader(context, flags, (connection) => tail(context, connection, uid, flags))),
  );
}

async function tail(
  { screen, stop, signal }: CommandContext,
  { client, serverFlag }: Connection,
  uid: string,
  flags: TailFlags,
): Promise<ExitCode> {
  let nextSeq = BigInt(Math.max(1, flags.from ?? 1));
  const printer = new TurnPrinter((text) => screen.write(text), { live: screen.live, lastSeq: nextSeq - 1n });
  const items = client.journal.tail(uid, { fromSeq: nextSeq, until: flags.until, deltas: screen.live, signal });
  try {
    for await (const item of items) {
      if (item.kind === "record") nextSeq = item.record.seq + 1n;
      if (!screen.json) printer.print(item);
      else if (item.kind === "record") screen.value(recordJson(item.record));
    }
    return 0;
  } finally {
    printer.close();
    if (stop.leaving) screen.pickUp(`go on with: holdfast tail ${uid} --from ${nextSeq}${serverFlag}`);
  }
}
