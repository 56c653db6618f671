/**
 * Reasoning that servers of the chat API send beside its fields, and want back. Pure.
 *
 * The API itself has no place for reasoning. Servers that speak it have made some: `reasoning_content` or `reasoning`, a text; `reasoning_details`,
 * a list of blocks that may be signed or encrypted; `extra_content` of a call, with a signature. What came goes back where it came, to the
 * model that made it, as it was (I2): servers that ask for it refuse the next request of a tool loop without it. No server is sent a field that it has not
 * sent itself.
 *
 * Invariant: the pieces of a text, or of a block, that arrive one after the other are one text, or one block, in what goes back.
 */

import type { ModelChunk, Part } from "../spi/index.ts";
import { opaqueOf, parsedOpaque } from "./content.ts";
import type { MessageAssembly, OpenPart } from "./message-assembly.ts";
import { isWellFormedJson } from "./well-formed.ts";
import { stringField, type WireObject } from "./wire-json.ts";

/** What goes back with a message of the assistant. */
export type MessageReasoning =
  | { readonly reasoning_content: string }
  | { readonly reasoning: string }
  | { readonly reasoning_details: readonly WireObject[] };

/** What goes back with a call. */
export interface CallReasoning {
  readonly extra_content: WireObject;
}

/** The fields of a text, in the order in which they are looked for: some servers send it in both. */
const TEXT_FIELDS = ["reasoning_content", "reasoning"] as const;

/** The reasoning of one answer, as its pieces come in. */
export class ReasoningPieces {
  readonly #assembly: MessageAssembly;
  readonly #details: WireObject[] = [];
  #part: OpenPart | undefined;
  #field: (typeof TEXT_FIELDS)[number] | undefined;
  #text = "";

  constructor(assembly: MessageAssembly) {
    this.#assembly = assembly;
  }

  /** Takes what a delta has of it. */
  push(delta: WireObject): ModelChunk | undefined {
    const field = TEXT_FIELDS.find((name) => (stringField(delta, name) ?? "") !== "");
    const text = field === undefined ? "" : (stringField(delta, field) ?? "");
    const details = detailsOf(delta);
    if (field === undefined && details.length === 0) return undefined;
    this.#field ??= field;
    this.#text += text;
    for (const piece of details) this.#addDetail(piece);
    this.#part ??= this.#assembly.openReasoning(() => jsonBytes(this.#whole()));
    return this.#part.append(field === undefined ? details.map(wordsOf).join("") : text);
  }

  /** The blocks where there are any: the text beside them is the same once more. */
  #whole(): MessageReasoning {
    if (this.#details.length > 0) return { reasoning_details: this.#details };
    return this.#field === "reasoning" ? { reasoning: this.#text } : { reasoning_content: this.#text };
  }

  #addDetail(piece: WireObject): void {
    const last = this.#details.at(-1);
    if (last === undefined || !goesOn(last, piece)) this.#details.push(piece);
    else this.#details[this.#details.length - 1] = joined(last, piece);
  }
}

/** Keeps what came with the piece that opens a call. It stands right before the call. */
export function keepCallReasoning(assembly: MessageAssembly, piece: WireObject): void {
  const extra = piece["extra_content"];
  if (isObject(extra)) assembly.openReasoning(() => jsonBytes({ extra_content: extra }));
}

/** The blocks of a delta. What has another form under this name is some other thing, and no fault of the server's. */
function detailsOf(delta: WireObject): readonly WireObject[] {
  const details = delta["reasoning_details"];
  return Array.isArray(details) && details.every(isObject) ? details : [];
}

/** Which model a request is for, and of which provider, as reasoning parts name it. */
export interface ReasoningFor {
  readonly provider: string;
  readonly model: string;
}

/** What of a part of an answer goes back with the answer, or with the call that follows; undefined for nothing. */
export function keptReasoning({ part }: Part, { provider, model }: ReasoningFor): MessageReasoning | CallReasoning | undefined {
  if (part.case !== "reasoning" || part.value.modelId !== model) return undefined;
  const kept = keptFields(parsedOpaque(opaqueOf(part.value, provider)) ?? {});
  // A request with half a surrogate pair in it is refused, and a changed text would not be the model's: such reasoning has to stay behind.
  return isWellFormedJson(kept) ? kept : undefined;
}

/** The one field that is kept: whatever else an imported journal may have there is not put into a message. */
function keptFields(kept: WireObject): MessageReasoning | CallReasoning | undefined {
  const { reasoning_details: details, reasoning_content: content, reasoning, extra_content: extra } = kept;
  if (Array.isArray(details) && details.every(isObject)) return { reasoning_details: details };
  if (typeof content === "string") return { reasoning_content: content };
  if (typeof reasoning === "string") return { reasoning };
  return isObject(extra) ? { extra_content: extra } : undefined;
}

/** The kinds of blocks that arrive in pieces, each with the field that its pieces add to. An encrypted block arrives whole. */
const GROWING: Readonly<Record<string, "text" | "summary">> = { "reasoning.text": "text", "reasoning.summary": "summary" };

/** Whether a piece belongs to the block before it. */
function goesOn(block: WireObject, piece: WireObject): boolean {
  const { type, id, index } = piece;
  if (type !== block["type"] || typeof type !== "string" || !Object.hasOwn(GROWING, type)) return false;
  return (index ?? undefined) === (block["index"] ?? undefined) && (isAbsent(id) || id === block["id"]);
}

/** The block with the piece added: words are put behind words, any other field is what the piece says of it. */
function joined(block: WireObject, piece: WireObject): WireObject {
  const growing = GROWING[String(piece["type"])];
  const whole = new Map(Object.entries(block));
  for (const [name, value] of Object.entries(piece)) {
    const before = whole.get(name);
    if (name === growing && typeof before === "string" && typeof value === "string") whole.set(name, before + value);
    else if (!isAbsent(value) || isAbsent(before)) whole.set(name, value);
  }
  return Object.fromEntries(whole);
}

/** What of a block a person may read. */
function wordsOf(block: WireObject): string {
  const growing = typeof block["type"] === "string" ? GROWING[block["type"]] : undefined;
  const words = growing === undefined ? undefined : block[growing];
  return typeof words === "string" ? words : "";
}

function isObject(value: unknown): value is WireObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}

const encoder = new TextEncoder();

function jsonBytes(kept: MessageReasoning | CallReasoning): Uint8Array {
  return encoder.encode(JSON.stringify(kept));
}
