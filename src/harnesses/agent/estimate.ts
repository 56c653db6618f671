/**
 * How large a request is, in tokens: an estimate that errs to the large side, since it decides what is left out. Pure: the same content has
 * the same size on every host and in every replay.
 */

import { utf8Length } from "../../base/bytes.ts";
import type { JsonObject } from "@bufbuild/protobuf";
import type { Message, Part, ToolDefinition, ToolResult } from "../../spi/index.ts";
import type { ConversationEntry } from "../conversation.ts";
import { isSystemInput } from "./context.ts";

/** Most tokenisers make fewer tokens of prose and of code; scripts of three bytes a character come out about right. */
const BYTES_PER_TOKEN = 3;
/** What a message, a part or a call costs beside its content. */
const OVERHEAD_TOKENS = 8;
/** An image or a document that is given by reference, or whose size says nothing of its tokens. */
const FILE_TOKENS = 1_600;
/** A result or an observation that is sent as a note. */
const NOTE_TOKENS = 40;

/** The size of one entry, by what of it can be left out. */
export interface EntrySize {
  /** What is always sent. */
  readonly said: number;
  readonly reasoning: number;
  /** The results of its calls as they are, or what it observed. */
  readonly results: number;
  /** The same as notes. */
  readonly notes: number;
  /** What is special about it. */
  readonly kind?: "observation" | "system" | undefined;
}

/** The size of an entry that is summarised: nobody asks. */
export const NO_SIZE: EntrySize = { said: 0, reasoning: 0, results: 0, notes: 0 };

export function entrySize(entry: ConversationEntry): EntrySize {
  const { message, calls } = entry;
  if (entry.isObservation) {
    const results = messageTokens(message);
    return { said: OVERHEAD_TOKENS, reasoning: 0, results, notes: Math.min(results, NOTE_TOKENS), kind: "observation" };
  }
  let said = OVERHEAD_TOKENS;
  let reasoning = 0;
  for (const part of message.parts) {
    if (part.part.case === "reasoning") reasoning += partTokens(part);
    else said += partTokens(part);
  }
  let results = 0;
  for (const { result } of calls) results += result === undefined ? NOTE_TOKENS : resultTokens(result);
  const notes = Math.min(results, calls.length * NOTE_TOKENS);
  return { said, reasoning, results, notes, kind: isSystemInput(entry) ? "system" : undefined };
}

export function textTokens(text: string): number {
  return Math.ceil(utf8Length(text) / BYTES_PER_TOKEN);
}

export function messageTokens(message: Message): number {
  return message.parts.reduce((sum, part) => sum + partTokens(part), OVERHEAD_TOKENS);
}

export function toolsTokens(tools: readonly ToolDefinition[]): number {
  return tools.reduce(
    (sum, { name, description, inputSchema }) => sum + OVERHEAD_TOKENS + textTokens(name + description) + jsonTokens(inputSchema),
    0,
  );
}

function resultTokens({ content, output, error }: ToolResult): number {
  const parts = content.reduce((sum, part) => sum + partTokens(part), 0);
  // A provider is sent the content, or the output where there is none.
  return OVERHEAD_TOKENS + textTokens(error) + Math.max(parts, jsonTokens(output));
}

function partTokens({ part }: Part): number {
  switch (part.case) {
    case "text":
      return textTokens(part.value.text);
    case "data":
      return jsonTokens(part.value.data);
    case "file":
      return FILE_TOKENS + (isText(part.value.mime) && part.value.source.case === "bytes" ? tokensOfBytes(part.value.source.value) : 0);
    case "reasoning":
      return OVERHEAD_TOKENS + (part.value.opaque.case === "opaqueBytes" ? tokensOfBytes(part.value.opaque.value) : 0);
    case "toolCall":
      return OVERHEAD_TOKENS + textTokens(part.value.tool) + jsonTokens(part.value.args);
    case "toolResult":
      return resultTokens(part.value);
    case undefined:
      return 0;
  }
}

function jsonTokens(value: JsonObject | undefined): number {
  return value === undefined ? 0 : textTokens(JSON.stringify(value));
}

function tokensOfBytes(bytes: Uint8Array): number {
  return Math.ceil(bytes.byteLength / BYTES_PER_TOKEN);
}

function isText(mime: string): boolean {
  return mime === "" || mime.startsWith("text/") || mime.includes("json");
}
