/** `holdfast import` */

import type { Command } from "commander";
import { ImportedSession_Outcome as Outcome, type Client, type ImportResponse } from "../../client/index.ts";
import { ImportResponseSchema } from "../../gen/holdfast/v1/export_pb.ts";
import { verifyExport } from "../chain-file.ts";
import { withClient } from "../connect.ts";
import { clientOptions, define, run, type ClientFlags } from "../define.ts";
import type { ExitCode } from "../exit.ts";
import { exportJson, exportLines } from "../export-text.ts";
import { readInput } from "../file-input.ts";
import { messageJson } from "../json.ts";
import type { CommandContext } from "../perform.ts";
import { plainLine } from "../plain.ts";

export function importCommand(): Command {
  const command = define(
    "import",
    "take over the sessions of an export",
    "Takes over every session of an export, records byte for byte. Nothing of it can be used before all of it was verified. It can be " +
      "repeated: what is there already stays, and a session that is behind is continued. A session that is there with other records, or one " +
      "that has its name, is exit code 4 and changes nothing. A file is verified here before it is sent; a broken one is exit code 1.",
    [
      ["from a file, in either form, compressed or not", "holdfast import session.jsonl"],
      ["from one server to another", "holdfast export UID --server A | holdfast import - --server B"],
    ],
  ).argument("<file>", "the export; - is standard input");
  return clientOptions(command, "the ImportResponse, on one line").action((file: string, flags: ClientFlags) =>
    run(flags, async (context) => {
      if (file !== "-" && !(await isSound(context, file))) return 1;
      return withClient(context, flags, ({ client }) => importFrom(context, client, file));
    }),
  );
}

/** Says what is wrong with a file, if anything is. */
async function isSound({ screen, signal }: CommandContext, file: string): Promise<boolean> {
  const verdict = await verifyExport(readInput(file, signal), {});
  if (verdict.isIntact) return true;
  if (screen.json) screen.value(exportJson(verdict));
  else for (const line of exportLines(verdict)) screen.line(line);
  return false;
}

async function importFrom({ screen, signal }: CommandContext, client: Client, file: string): Promise<ExitCode> {
  const response = await client.journal.import(readInput(file, signal), { signal });
  if (screen.json) screen.value(messageJson(ImportResponseSchema, response));
  else for (const line of importLines(response)) screen.line(line);
  return 0;
}

const WORDS: Readonly<Record<number, string>> = {
  [Outcome.CREATED]: "created",
  [Outcome.CONTINUED]: "continued",
  [Outcome.UNCHANGED]: "unchanged",
  [Outcome.PREFIX]: "prefix of others",
};

function importLines({ sessions, recordsAdded }: ImportResponse): readonly string[] {
  const lines = sessions.map(
    ({ uid, outcome, lastSeq }) => `session ${plainLine(uid)}  ${WORDS[outcome] ?? "imported"}  last seq ${lastSeq}`,
  );
  return [...lines, `${recordsAdded} ${recordsAdded === 1n ? "record" : "records"} added`];
}
