/** `holdfast export` */

import { Option, type Command } from "commander";
import { ArchiveDecoder, ArchiveVerifier, createArchiveEncoder, type ArchiveForm } from "../../archive/index.ts";
import { HoldfastError, invalidArgument } from "../../base/errors.ts";
import type { Client } from "../../client/index.ts";
import { nodeDigest, nodeSignatures } from "../../node/index.ts";
import { withReader } from "../connect.ts";
import { clientOptions, define, optionOr, run, type ClientFlags } from "../define.ts";
import type { ExitCode } from "../exit.ts";
import { writeFileWhole, writeStdout } from "../file-output.ts";
import type { CommandContext } from "../perform.ts";

interface ExportFlags extends ClientFlags {
  readonly family?: boolean;
  readonly format?: "jsonl" | "binary";
  readonly output?: string;
}

export function exportCommand(): Command {
  const command = define(
    "export",
    "write a session to a file",
    "Writes everything that is needed to verify a session without a server (`holdfast verify FILE`) and to take it over on another one " +
      "(`holdfast import FILE`). A fork comes with the records that it shares. What comes is verified while it is written; a file is there " +
      "whole or not at all.",
    [
      ["to a file", "holdfast export UID -o session.jsonl"],
      ["with everything it was forked from and into, compact and compressed", "holdfast export UID --family -o family.hfx.gz"],
      ["in a pipe", "holdfast export UID | holdfast verify -"],
    ],
  )
    .argument("<uid>", "the session")
    .addOption(new Option("--family", "everything that has an ancestor in common with the session, as far as it is not deleted"))
    .addOption(
      optionOr("--format <form>", "JSON lines, or the compact binary form", "binary for a file that ends in .hfx, else jsonl").choices([
        "jsonl",
        "binary",
      ]),
    )
    .addOption(optionOr("-o, --output <file>", "the file; .gz or .zst at its end compresses it", "standard output"));
  return clientOptions(command, "what was written, on one line; it needs --output").action((uid: string, flags: ExportFlags) =>
    run(flags, (context) => withReader(context, flags, ({ client }) => exportTo(context, client, uid, flags))),
  );
}

interface Counts {
  sessions: number;
  records: number;
}

async function exportTo({ screen, signal }: CommandContext, client: Client, uid: string, flags: ExportFlags): Promise<ExitCode> {
  const { output, family } = flags;
  const form = formOf(flags);
  const counts: Counts = { sessions: 0, records: 0 };
  const pieces = verified(client.journal.export(uid, { family, signal }), form, counts);
  if (output === undefined) {
    if (screen.json) throw invalidArgument("--json", "needs --output: standard output is the export itself");
    if (form === "binary" && process.stdout.isTTY)
      throw invalidArgument("--format", "binary is nothing for a terminal; name a file with --output");
    await writeStdout(pieces);
    return 0;
  }
  await writeFileWhole(output, pieces);
  if (screen.json) screen.value({ file: output, sessions: `${counts.sessions}`, records: `${counts.records}` });
  else screen.line(`exported  ${counted(counts.records, "record")} in ${counted(counts.sessions, "session")}  ${output}`);
  return 0;
}

function formOf({ format, output = "" }: ExportFlags): ArchiveForm {
  if (format !== undefined) return format === "binary" ? "binary" : "lines";
  return /\.hfx(\.gz|\.zst)?$/.test(output) ? "binary" : "lines";
}

/** What comes, in the form that is wanted. Throws DATA_LOSS at its end where it is not whole and sound. */
async function* verified(
  pieces: AsyncIterable<Uint8Array>,
  form: ArchiveForm,
  counts: Counts,
): AsyncGenerator<Uint8Array, void, undefined> {
  const decoder = new ArchiveDecoder();
  const encoder = createArchiveEncoder(form);
  const verifier = new ArchiveVerifier({ digest: nodeDigest, signatures: nodeSignatures });
  for await (const piece of pieces) {
    const items = [...decoder.push(piece)];
    for (const item of items) verifier.push(item);
    if (form === "binary") yield piece;
    else if (items.length > 0) yield encoder.encode(items);
  }
  for (const item of decoder.finish()) verifier.push(item);
  const { isIntact, sessions, records, faults } = verifier.finish();
  counts.sessions = sessions.length;
  counts.records = records;
  const [fault] = faults;
  if (!isIntact)
    throw new HoldfastError("data_loss", `export: ${fault?.session === undefined ? "" : `session ${fault.session}: `}${fault?.message}`);
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
