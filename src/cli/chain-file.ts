/**
 * Verifying a file without a server: an export in either form, or a journal alone, as `replay --json` prints it or as a JSON document
 * with `records`.
 */

import {
  ArchiveDecoder,
  ArchiveVerifier,
  isMalformed,
  LineReader,
  recordOfLine,
  recordsOfDocument,
  type ArchiveVerdict,
  type TrustedKeys,
} from "../archive/index.ts";
import { HoldfastError, invalidArgument } from "../base/errors.ts";
import { seqOf } from "../base/ids.ts";
import type { LogRecord } from "../gen/agentsessions/v1/common_pb.ts";
import type { SignedHead } from "../gen/holdfast/v1/export_pb.ts";
import { createChainVerifier, type ChainVerdict, type ChainVerifier } from "../journal/index.ts";
import { nodeDigest, nodeSignatures } from "../node/index.ts";
import { readInput } from "./file-input.ts";

/** What vouches for what is in a file. */
export interface Vouchers {
  /** Every session of an export must be signed by one of these keys. */
  readonly trusted?: TrustedKeys | undefined;
  /** Heads that were kept elsewhere, by session. */
  readonly kept?: ReadonlyMap<string, SignedHead> | undefined;
}

/** What was found in a file. */
export type FileVerdict =
  | { readonly kind: "export"; readonly verdict: ArchiveVerdict }
  | { readonly kind: "journal"; readonly verdict: ChainVerdict };

/** A document that is no JSON lines must fit into memory. */
const DOCUMENT_BYTES_MAX = 256 * 1024 * 1024;
/** As much of a file as tells what it is. */
const SNIFFED_BYTES = 4096;

/** Verifies a file, or standard input for `-`, piece by piece. */
export async function verifyFile(path: string, vouchers: Vouchers, signal: AbortSignal): Promise<FileVerdict> {
  const { start, pieces } = await begun(readInput(path, signal));
  if (isExport(start)) return { kind: "export", verdict: await verifyExport(pieces, vouchers) };
  if (vouchers.kept !== undefined) throw invalidArgument("--head", "is for exports: a journal alone does not say which session it is");
  const verdict = await verifyJournal(start, pieces);
  if (verdict.kind === "intact" && vouchers.trusted !== undefined) {
    throw new HoldfastError("data_loss", "FILE: no trusted key has signed it: a journal alone has no head that could be signed");
  }
  return { kind: "journal", verdict };
}

/** Verifies an export that comes in pieces. */
export async function verifyExport(pieces: AsyncIterable<Uint8Array>, vouchers: Vouchers): Promise<ArchiveVerdict> {
  const decoder = new ArchiveDecoder();
  const verifier = new ArchiveVerifier({ digest: nodeDigest, signatures: nodeSignatures, ...vouchers });
  try {
    for await (const piece of pieces) for (const item of decoder.push(piece)) verifier.push(item);
    for (const item of decoder.finish()) verifier.push(item);
  } catch (error) {
    verifier.fail(error);
  }
  return verifier.finish();
}

/** The first bytes of a source, and all of it. */
async function begun(source: AsyncGenerator<Uint8Array, void, undefined>) {
  const first: Uint8Array[] = [];
  let length = 0;
  while (length < SNIFFED_BYTES) {
    const next = await source.next();
    if (next.done === true) break;
    first.push(next.value);
    length += next.value.length;
  }
  async function* pieces(): AsyncGenerator<Uint8Array, void, undefined> {
    yield* first;
    yield* source;
  }
  return { start: Buffer.concat(first), pieces: pieces() };
}

/** The binary form begins with a byte that no text has; the other with a header, a line of which `kind` is a member. */
function isExport(start: Buffer): boolean {
  if (start[0] === 0x89) return true;
  const header: unknown = parsed(firstLine(start));
  return typeof header === "object" && header !== null && "kind" in header;
}

function firstLine(start: Buffer): string {
  const text = start.toString().trimStart();
  const end = text.indexOf("\n");
  return end < 0 ? text : text.slice(0, end);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function verifyJournal(start: Buffer, pieces: AsyncIterable<Uint8Array>): Promise<ChainVerdict> {
  const verifier = createChainVerifier(nodeDigest);
  const records = isDocument(start) ? recordsInDocument(pieces) : recordsOnLines(pieces);
  let count = 0;
  try {
    for await (const record of records) {
      if (verifier.push(record) !== undefined) return verifier.finish();
      count += 1;
    }
  } catch (error) {
    if (!isMalformed(error)) throw error;
    return unreadable(verifier, error.message.replace(/^file: /, ""));
  }
  if (count === 0) throw invalidArgument("FILE", "must hold at least one record");
  return verifier.finish();
}

/** Whether a file is one JSON value over several lines, or a list. */
function isDocument(start: Buffer): boolean {
  const text = start.toString().trimStart();
  if (text.startsWith("[")) return true;
  const line = firstLine(start);
  const first = parsed(line);
  return text.startsWith("{") && ((first === undefined && line.length < text.length) || (isObject(first) && "records" in first));
}

async function* recordsInDocument(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<LogRecord, void, undefined> {
  const all: Uint8Array[] = [];
  let length = 0;
  for await (const piece of pieces) {
    length += piece.length;
    if (length > DOCUMENT_BYTES_MAX) throw invalidArgument("FILE", "must be JSON lines when it is large");
    all.push(piece);
  }
  const records = recordsOfDocument(Buffer.concat(all));
  if (records === undefined) throw invalidArgument("FILE", "must be an export, JSON lines of records, or a JSON document with records");
  yield* records;
}

async function* recordsOnLines(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<LogRecord, void, undefined> {
  const lines = new LineReader();
  for await (const piece of pieces) for (const line of lines.push(piece)) yield recordOfLine(line);
  for (const line of lines.finish()) yield recordOfLine(line);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The verdict where the next record cannot be read. */
function unreadable(verifier: ChainVerifier, found: string): ChainVerdict {
  const verdict = verifier.finish();
  if (verdict.kind === "broken") return verdict;
  const seq = seqOf(verdict.head.seq + 1);
  return { ...verdict, kind: "broken", fault: { kind: "unreadable", seq, expected: "a record in the pinned form", found } };
}
