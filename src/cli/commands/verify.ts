/** `holdfast verify` */

import { Option, type Command } from "commander";
import { existsSync } from "node:fs";
import { ChainFault_Kind, VerifyResponseSchema, type VerifyResponse } from "../../gen/holdfast/v1/journal_pb.ts";
import { verifyFile } from "../chain-file.ts";
import { withClient } from "../connect.ts";
import { clientOptions, define, run, type ClientFlags } from "../define.ts";
import type { ExitCode } from "../exit.ts";
import { messageJson } from "../json.ts";
import type { CommandContext } from "../perform.ts";
import { plainLine } from "../plain.ts";
import { responseOf } from "../verdict.ts";

interface VerifyFlags extends ClientFlags {
  readonly file?: boolean;
}

export function verifyCommand(): Command {
  const command = define(
    "verify",
    "verify a session's hash chain",
    "Recomputes every hash and link from the first record to the head: of a session on the server, or of an exported journal in a file (as " +
      "`replay --json` prints it; - is standard input), which needs no server. A broken chain is exit code 1. An export that was cut short is " +
      "intact as far as it goes: compare its head with the session's.",
    [
      ["a session", "holdfast verify UID"],
      ["an exported journal", "holdfast verify journal.jsonl"],
      ["in a pipe", "holdfast replay UID --json | holdfast verify -"],
    ],
  )
    .argument("<uid-or-file>", "a session's uid; or a file, when there is one of that name")
    .addOption(new Option("--file", "the argument is a file, whether it exists or not"));
  return clientOptions(command, "the VerifyResponse, on one line").action((target: string, flags: VerifyFlags) =>
    run(flags, (context) => verify(context, target, flags)),
  );
}

async function verify(context: CommandContext, target: string, flags: VerifyFlags): Promise<ExitCode> {
  const { signal } = context;
  if (flags.file === true || target === "-" || existsSync(target)) {
    return report(context, responseOf(await verifyFile(target, signal)));
  }
  return withClient(context, flags, async ({ client }) => report(context, await client.journal.verify(target, { signal })));
}

function report({ screen }: CommandContext, response: VerifyResponse): ExitCode {
  if (screen.json) screen.value(messageJson(VerifyResponseSchema, response));
  else for (const line of verdictLines(response)) screen.line(line);
  return response.intact ? 0 : 1;
}

function verdictLines({ intact, records, headSeq, headHash, fault }: VerifyResponse): readonly string[] {
  const checked = `${records} ${records === 1n ? "record" : "records"}`;
  if (intact) return [`intact  ${checked}  head ${headSeq}  sha256 ${headHash}`];
  if (fault === undefined) return [`broken  after ${checked}`];
  return [
    `broken  at seq ${fault.seq}  ${FAULTS[fault.kind] ?? "in a way that this version does not know"}`,
    `        expected ${plainLine(fault.expected)}`,
    `        found    ${plainLine(fault.found)}`,
    `        ${checked} before it ${records === 1n ? "is" : "are"} right`,
  ];
}

const FAULTS: Readonly<Record<number, string>> = {
  [ChainFault_Kind.SEQ]: "the seq is not the next one",
  [ChainFault_Kind.PREV_HASH]: "it does not link to the record before it",
  [ChainFault_Kind.CONTENT_HASH]: "its content is not what was hashed",
  [ChainFault_Kind.UNREADABLE]: "it cannot be read",
  [ChainFault_Kind.HEAD]: "the chain does not end at the head that the session names",
};
