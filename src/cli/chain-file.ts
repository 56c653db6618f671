/**
 * Verifying a file without a server: an export in either form, or a journal alone, as `replay --json` prints it or as a JSON document
 * with `records`.
 */

import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { ArchiveDecoder, ArchiveVerifier, type ArchiveVerdict, type TrustedKeys } from "../archive/index.ts";
import { HoldfastError, invalidArgument } from "../base/errors.ts";
import { seqOf } from "../base/ids.ts";
import { LogRecordSchema, type LogRecord } from "../gen/agentsessions/v1/common_pb.ts";
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
const LINE_FEED = 0x0a;

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
  const records = isDocument(start) ? recordsOfDocument(pieces) : recordsOfLines(pieces);
  let count = 0;
  for await (const json of records) {
    const record = recordIn(json);
    if (record === undefined) return unreadable(verifier, count);
    if (verifier.push(record) !== undefined) return verifier.finish();
    count += 1;
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

async function* recordsOfDocument(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<unknown, void, undefined> {
  const all: Uint8Array[] = [];
  let length = 0;
  for await (const piece of pieces) {
    length += piece.length;
    if (length > DOCUMENT_BYTES_MAX) throw invalidArgument("FILE", "must be JSON lines when it is large");
    all.push(piece);
  }
  const document = parsed(Buffer.concat(all).toString());
  const records = isObject(document) ? document["records"] : document;
  if (!Array.isArray(records)) throw invalidArgument("FILE", "must be an export, JSON lines of records, or a JSON document with records");
  yield* records as unknown[];
}

/** The value of each line that is not empty; of one that is no JSON, its text. */
async function* recordsOfLines(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<unknown, void, undefined> {
  let rest: Uint8Array[] = [];
  const valueOf = (line: Buffer): unknown => {
    const text = line.toString().trim();
    return text === "" ? undefined : (parsed(text) ?? text);
  };
  for await (const piece of pieces) {
    let at = 0;
    for (let end = piece.indexOf(LINE_FEED); end >= 0; end = piece.indexOf(LINE_FEED, at)) {
      const value = valueOf(Buffer.concat([...rest, piece.subarray(at, end)]));
      rest = [];
      at = end + 1;
      if (value !== undefined) yield value;
    }
    rest.push(piece.subarray(at));
  }
  const last = valueOf(Buffer.concat(rest));
  if (last !== undefined) yield last;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function recordIn(json: unknown): LogRecord | undefined {
  try {
    return fromJson(LogRecordSchema, json as JsonValue);
  } catch {
    return undefined;
  }
}

function unreadable(verifier: ChainVerifier, records: number): ChainVerdict {
  const verdict = verifier.finish();
  if (verdict.kind === "broken") return verdict;
  const seq = seqOf(records + 1);
  return { ...verdict, kind: "broken", fault: { kind: "unreadable", seq, expected: "a LogRecord as JSON", found: "a line that is none" } };
}
