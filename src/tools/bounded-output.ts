/**
 * What of a tool's output goes into the record: all of it where it fits, else its beginning.
 *
 * Invariants:
 * - Text and structure together take at most `outputBytesMax` bytes, and a note where something is missing. The whole is then in the blob
 *   store, and the record has its address and digest.
 * - An output that cannot be kept whole takes nothing away from a tool that has run: the result then says so.
 */

import { textStart } from "../base/bytes.ts";
import { create, type JsonObject } from "@bufbuild/protobuf";
import { PartSchema, type Part } from "../gen/agentsessions/v1/common_pb.ts";
import type { BlobRef, BlobStore } from "../spi/index.ts";

export const DEFAULT_OUTPUT_BYTES_MAX = 64 * 1024;
/** With the files that a result may hold inline it still fits into a record. */
export const OUTPUT_BYTES_LIMIT = 384 * 1024;

/** What an output is bounded by. */
export interface OutputTerms {
  /** Takes what is too large. Without one the rest is lost. */
  readonly blobs: BlobStore | undefined;
  /** What text and structure may take together. */
  readonly outputBytesMax: number;
}

/** An output as the tool gave it. */
export interface ToolOutput {
  readonly parts: readonly Part[];
  readonly output: JsonObject | undefined;
  /** What is stored where it is too large. */
  readonly whole: () => string;
}

/** The fields of a result. */
export interface BoundedOutput {
  readonly content: Part[];
  readonly output?: JsonObject;
  readonly outputUri?: string;
  readonly outputDigest?: string;
}

/** The output as it is recorded. */
export async function boundedOutput({ parts, output, whole }: ToolOutput, { blobs, outputBytesMax }: OutputTerms): Promise<BoundedOutput> {
  const structure = output === undefined ? "" : JSON.stringify(output);
  const structureBytes = Buffer.byteLength(structure);
  const bytes = parts.reduce((sum, part) => sum + textBytesOf(part), structureBytes);
  if (bytes <= outputBytesMax) return { content: [...parts], ...(output === undefined ? {} : { output }) };
  const ref = await stored(whole, blobs);
  const where = ref === undefined ? "the rest was not kept" : `the whole is kept as ${ref.uri}`;
  const note = textPart(`[the tool's output takes ${bytes} bytes and was cut; ${where}]`);
  const reference = ref === undefined ? {} : { outputUri: ref.uri, outputDigest: ref.digest };
  // Half a structure is none: one that leaves no room for the text is told as text itself.
  if (output !== undefined && structureBytes <= outputBytesMax / 2) {
    return { content: [...cut(parts, outputBytesMax - structureBytes), note], output, ...reference };
  }
  const told = structure === "" ? parts : [...parts, textPart(structure)];
  return { content: [...cut(told, outputBytesMax), note], ...reference };
}

async function stored(whole: () => string, blobs: BlobStore | undefined): Promise<BlobRef | undefined> {
  try {
    return await blobs?.put(Buffer.from(whole()));
  } catch {
    return undefined;
  }
}

/** The first `bytesMax` bytes of the texts, and every file. */
function cut(parts: readonly Part[], bytesMax: number): readonly Part[] {
  let leftBytes = bytesMax;
  const kept: Part[] = [];
  for (const part of parts) {
    const text = part.part.case === "text" ? textStart(part.part.value.text, leftBytes) : undefined;
    if (text === undefined) kept.push(part);
    else if (text !== "") kept.push(textPart(text));
    leftBytes -= text === undefined ? 0 : Buffer.byteLength(text);
  }
  return kept;
}

function textBytesOf({ part }: Part): number {
  return part.case === "text" ? Buffer.byteLength(part.value.text) : 0;
}

export function textPart(text: string): Part {
  return create(PartSchema, { part: { case: "text", value: { text } } });
}
