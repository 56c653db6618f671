/**
 * From what a server answers to the result that is recorded.
 *
 * Invariants:
 * - Whatever is answered fits into a record: what is too large goes to the blob store, and is cut here (`bounded-output.ts`).
 * - Links are told in words and never handed on as something to fetch: what a provider cannot fetch would be refused at every later turn.
 * - What the server says, in text or as structure, is the tool's own; an error of the tool is a result like any other.
 */

import { textStart } from "../../base/bytes.ts";
import { create, type JsonObject } from "@bufbuild/protobuf";
import { PartSchema, ToolResultSchema, type Part } from "../../gen/agentsessions/v1/common_pb.ts";
import type { BlobStore, ToolResult } from "../../spi/index.ts";
import { boundedOutput, textPart, type OutputTerms } from "../bounded-output.ts";
import { isJsonObject, recordableJson } from "../json.ts";

/** What files of one result may take together inline. */
const FILE_BYTES_MAX = 512 * 1024;
/** More blocks than that are told as one. */
const BLOCKS_MAX = 1_024;
const OUTPUT_DEPTH_MAX = 48;
const ERROR_BYTES_MAX = 8 * 1024;
const NAME_BYTES_MAX = 1_024;

/** The result of the call `id` in a server's answer. */
export async function toolResultOf(id: string, answer: unknown, terms: OutputTerms): Promise<ToolResult> {
  const { content, structuredContent, isError } = isJsonObject(answer) ? answer : {};
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [];
  const structured = structuredContent === undefined ? undefined : recordableJson(structuredContent, OUTPUT_DEPTH_MAX);
  const files = new InlineFiles(terms.blobs);
  const parts: Part[] = [];
  for (const block of blocks.slice(0, BLOCKS_MAX)) {
    // Servers repeat their structured output as text, for clients that do not know it.
    if (!isRepetition(block, structured)) parts.push(...(await partsOf(block, files)));
  }
  if (blocks.length > BLOCKS_MAX) parts.push(textPart(`[${blocks.length - BLOCKS_MAX} more blocks were left out]`));
  const output = structured === undefined ? undefined : isJsonObject(structured) ? structured : { value: structured };
  const result = await boundedOutput({ parts, output, whole: () => JSON.stringify(answer) }, terms);
  const error = isError === true ? errorText(parts) : "";
  return create(ToolResultSchema, { id, isError: isError === true, error, ...result });
}

function isRepetition(block: unknown, structured: unknown): boolean {
  if (structured === undefined || !isJsonObject(block) || block["type"] !== "text" || typeof block["text"] !== "string") return false;
  try {
    return sameJson(JSON.parse(block["text"]), structured);
  } catch {
    return false;
  }
}

/** Whether two JSON values are the same, in whatever order their keys are. */
function sameJson(one: unknown, other: unknown): boolean {
  if (Array.isArray(one)) {
    return Array.isArray(other) && one.length === other.length && one.every((each, index) => sameJson(each, other[index]));
  }
  if (!isJsonObject(one) || !isJsonObject(other)) return one === other;
  const keys = Object.keys(one);
  return keys.length === Object.keys(other).length && keys.every((key) => Object.hasOwn(other, key) && sameJson(one[key], other[key]));
}

async function partsOf(block: unknown, files: InlineFiles): Promise<readonly Part[]> {
  if (!isJsonObject(block)) return [];
  const { type, text, data, mimeType, resource } = block;
  switch (type) {
    case "text":
      return [textPart(wordsOf(text))];
    case "image":
    case "audio":
      return [await files.part(wordsOf(mimeType), "", wordsOf(data))];
    case "resource":
      return isJsonObject(resource) ? resourceParts(resource, files) : [];
    case "resource_link":
      return [textPart(linkText(block))];
    default:
      return [textPart(JSON.stringify(recordableJson(block, OUTPUT_DEPTH_MAX) ?? {}))];
  }
}

async function resourceParts({ uri, mimeType, text, blob }: JsonObject, files: InlineFiles): Promise<readonly Part[]> {
  const name = textStart(wordsOf(uri), NAME_BYTES_MAX);
  if (typeof blob === "string") return [await files.part(wordsOf(mimeType), name, blob)];
  return [textPart(`[resource ${name}]`), textPart(wordsOf(text))];
}

function linkText({ name, uri, mimeType, description }: JsonObject): string {
  const words = [wordsOf(name), wordsOf(mimeType) && `(${wordsOf(mimeType)})`, `at ${wordsOf(uri)}`].filter((word) => word !== "");
  const about = wordsOf(description);
  return `[link to the resource ${words.join(" ")}${about === "" ? "" : `: ${about}`}]`;
}

function errorText(parts: readonly Part[]): string {
  const texts = parts.flatMap(({ part }) => (part.case === "text" ? [part.value.text] : []));
  return textStart(texts.join("\n"), ERROR_BYTES_MAX) || "the tool failed and did not say why";
}

/** Files of one result: inline while there is room, and then by reference. */
class InlineFiles {
  readonly #blobs: BlobStore | undefined;
  #leftBytes = FILE_BYTES_MAX;

  constructor(blobs: BlobStore | undefined) {
    this.#blobs = blobs;
  }

  async part(mime: string, name: string, base64: string): Promise<Part> {
    const bytes = new Uint8Array(Buffer.from(base64, "base64"));
    if (bytes.length <= this.#leftBytes) {
      this.#leftBytes -= bytes.length;
      return filePart({ mime, name, source: { case: "bytes", value: bytes } });
    }
    const ref = await this.#blobs?.put(bytes);
    if (ref === undefined) return textPart(`[a file (${mime}) of ${bytes.length} bytes was left out: it is too large]`);
    return filePart({ mime, name, source: { case: "uri", value: ref.uri }, digest: ref.digest });
  }
}

type FileInit = {
  readonly mime: string;
  readonly name: string;
  readonly source: { case: "bytes"; value: Uint8Array<ArrayBuffer> } | { case: "uri"; value: string };
  readonly digest?: string;
};

function filePart(value: FileInit): Part {
  return create(PartSchema, { part: { case: "file", value } });
}

function wordsOf(value: unknown): string {
  return typeof value === "string" ? value.toWellFormed() : "";
}
