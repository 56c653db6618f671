/** `holdfast verify` */

import { Option, type Command } from "commander";
import { existsSync } from "node:fs";
import { ChainFault_Kind, VerifyResponseSchema, type VerifyResponse } from "../../gen/holdfast/v1/journal_pb.ts";
import { parseTrustedKeys } from "../../archive/index.ts";
import { HoldfastError, invalidArgument } from "../../base/errors.ts";
import { nodeDigest } from "../../node/index.ts";
import { verifyFile, type Vouchers } from "../chain-file.ts";
import { withReader } from "../connect.ts";
import { clientOptions, define, run, type ClientFlags } from "../define.ts";
import type { ExitCode } from "../exit.ts";
import { exportJson, exportLines } from "../export-text.ts";
import { readHeads, readText } from "../head-file.ts";
import { explicitJson } from "../json.ts";
import type { CommandContext } from "../perform.ts";
import { plainLine } from "../plain.ts";
import { responseOf } from "../verdict.ts";

interface VerifyFlags extends ClientFlags {
  readonly file?: boolean;
  readonly trustedKeys?: string;
  readonly head?: string;
}

export function verifyCommand(): Command {
  const command = define(
    "verify",
    "verify a session's hash chain, or an export",
    "Recomputes every hash and link from the first record to the head: of a session on the server; or of a file, which needs no server: an " +
      "export (in either form, compressed or not), or a journal alone as `replay --json` prints it (- is standard input). Whatever is wrong is " +
      "said in words, and exit code 1.\n\n" +
      "A chain alone cannot tell that it was built anew, or cut together with its head. Signatures can: with --trusted-keys every session of " +
      "an export must be signed by a key of the list (public keys in PEM, or their ids, one a line). With --head the export must reach as far " +
      "as a head that was kept before, and have that record there.",
    [
      ["a session", "holdfast verify UID"],
      ["an export", "holdfast verify session.jsonl"],
      ["who vouches for it", "holdfast verify session.jsonl --trusted-keys keys.txt"],
      ["nothing is missing that was there", "holdfast verify session.jsonl --head head.json"],
      ["in a pipe", "holdfast replay UID --json | holdfast verify -"],
    ],
  )
    .argument("<uid-or-file>", "a session's uid; or a file, when there is one of that name")
    .addOption(new Option("--file", "the argument is a file, whether it exists or not"))
    .addOption(new Option("--trusted-keys <file>", "the keys that may sign; for exports"))
    .addOption(new Option("--head <file>", "heads that were kept, as `holdfast head --json` prints them; for exports"));
  return clientOptions(command, "the VerifyResponse, on one line; for an export what was found of each session").action(
    (target: string, flags: VerifyFlags) => run(flags, (context) => verify(context, target, flags)),
  );
}

async function verify(context: CommandContext, target: string, flags: VerifyFlags): Promise<ExitCode> {
  const { signal, screen } = context;
  if (flags.file === true || target === "-" || existsSync(target)) {
    const found = await verifyFile(target, vouchersOf(flags), signal);
    if (found.kind === "journal") return report(context, responseOf(found.verdict));
    if (screen.json) screen.value(exportJson(found.verdict));
    else for (const line of exportLines(found.verdict)) screen.line(line);
    return found.verdict.isIntact ? 0 : 1;
  }
  if (flags.trustedKeys !== undefined || flags.head !== undefined) {
    throw invalidArgument("FILE", "must be there: --trusted-keys and --head are for files");
  }
  try {
    return await withReader(context, flags, async ({ client }) => report(context, await client.journal.verify(target, { signal })));
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.code !== "not_found" || !looksLikeFile(target)) throw error;
    throw new HoldfastError("not_found", "uid-or-file: there is no such file, and no such session", { cause: error });
  }
}

/** Whether a person who wrote this meant a file: it has a folder or an extension. */
function looksLikeFile(target: string): boolean {
  return /[/\\]|\.\w{1,8}$/.test(target);
}

function vouchersOf({ trustedKeys, head }: VerifyFlags): Vouchers {
  const trusted = trustedKeys === undefined ? undefined : parseTrustedKeys(readText(trustedKeys, "--trusted-keys"), nodeDigest);
  return { trusted, kept: head === undefined ? undefined : readHeads(head, trusted) };
}

function report({ screen }: CommandContext, response: VerifyResponse): ExitCode {
  if (screen.json) screen.value(explicitJson(VerifyResponseSchema, response));
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
