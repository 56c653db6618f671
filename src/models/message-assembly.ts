/**
 * Puts an assistant message together from the pieces of a stream, the same for every provider.
 *
 * Invariants:
 * - A part's index in the chunks is its index in the message.
 * - The deltas of a text part, joined, are its text.
 * - A tool call has an id that no other call of the conversation has.
 */

import { create } from "@bufbuild/protobuf";
import {
  MessageSchema,
  PartSchema,
  ReasoningPartSchema,
  ToolCallSchema,
  type Message,
  type Part,
} from "../gen/agentsessions/v1/common_pb.ts";
import type { ModelChunk } from "../spi/index.ts";
import { parseToolArgs } from "./tool-args.ts";
import { malformed } from "./fault.ts";
import { WellFormedText } from "./well-formed.ts";

/** What a message is assembled for. */
export interface AssemblyContext {
  /** The provider, as reasoning parts name it. */
  readonly provider: string;
  /** The model's id as the request has it. */
  readonly modelId: string;
  /** The ids of tool calls that the conversation has already. */
  readonly takenCallIds: ReadonlySet<string>;
  /** A new id of a tool call, for a call that came without one or with a taken one. */
  newCallId(): string;
}

/** The opaque bytes of a reasoning part, asked for when the message is complete. */
export type OpaqueSource = () => Uint8Array | undefined;

type Draft =
  | { readonly kind: "text"; readonly text: WellFormedText }
  | { readonly kind: "reasoning"; readonly text: WellFormedText; readonly opaque: OpaqueSource; readonly itemId: string }
  | { readonly kind: "call"; id: string; name: string; args: string };

/** A part of the message under assembly. */
export interface OpenPart {
  /** Adds to the part; returns the chunk to hand on, if any. */
  append(delta: string): ModelChunk | undefined;
}

/** A tool call under assembly: providers send its id, name and arguments in any number of pieces. */
export interface OpenCall {
  append(piece: { readonly id?: string | undefined; readonly name?: string | undefined; readonly args?: string | undefined }): void;
}

/** One message under assembly. */
export class MessageAssembly {
  readonly #context: AssemblyContext;
  readonly #parts: Draft[] = [];

  constructor(context: AssemblyContext) {
    this.#context = context;
  }

  /** Opens a text part at the end. */
  openText(): OpenPart {
    const text = new WellFormedText();
    const partIndex = this.#parts.push({ kind: "text", text }) - 1;
    return { append: (delta) => chunkOf("text", partIndex, text.push(delta)) };
  }

  /**
   * Opens a reasoning part at the end. What is appended becomes its summary; `opaque` gives what goes back to the provider, and
   * `itemId` is the provider's name for it.
   */
  openReasoning(opaque: OpaqueSource = () => undefined, itemId = ""): OpenPart {
    const text = new WellFormedText();
    const partIndex = this.#parts.push({ kind: "reasoning", text, opaque, itemId: itemId.toWellFormed() }) - 1;
    return { append: (delta) => chunkOf("reasoning", partIndex, text.push(delta)) };
  }

  /** Opens a tool call at the end. */
  openCall(): OpenCall {
    const call = { kind: "call" as const, id: "", name: "", args: "" };
    this.#parts.push(call);
    return {
      append: (piece) => {
        if (call.id === "") call.id = piece.id ?? "";
        if (call.name === "") call.name = piece.name ?? "";
        call.args += piece.args ?? "";
      },
    };
  }

  /** Ends every part: the chunks of text that was held back, and the message. Throws a fault for a call without a name. */
  finish(): { readonly chunks: readonly ModelChunk[]; readonly message: Message } {
    const chunks: ModelChunk[] = [];
    const taken = new Set(this.#context.takenCallIds);
    let reasoningCount = 0;
    const parts = this.#parts.map((draft, partIndex): Part => {
      if (draft.kind === "call") return this.#callPart(draft, taken);
      const chunk = chunkOf(draft.kind, partIndex, draft.text.end());
      if (chunk !== undefined) chunks.push(chunk);
      return draft.kind === "text" ? textPart(draft.text.text) : this.#reasoningPart(draft, reasoningCount++);
    });
    return { chunks, message: create(MessageSchema, { role: "assistant", parts }) };
  }

  #callPart(draft: Extract<Draft, { kind: "call" }>, taken: Set<string>): Part {
    const name = draft.name.toWellFormed();
    if (name === "") malformed();
    let id = draft.id.toWellFormed();
    while (id === "" || taken.has(id)) id = this.#context.newCallId();
    taken.add(id);
    const args = parseToolArgs(draft.args);
    const value = create(ToolCallSchema, { id, tool: name, ...(args === undefined ? {} : { args }) });
    return create(PartSchema, { part: { case: "toolCall", value } });
  }

  #reasoningPart(draft: Extract<Draft, { kind: "reasoning" }>, ordinal: number): Part {
    const opaque = draft.opaque();
    const value = create(ReasoningPartSchema, {
      provider: this.#context.provider,
      modelId: this.#context.modelId,
      ordinal,
      itemId: draft.itemId,
      summary: draft.text.text === "" ? [] : [textPart(draft.text.text)],
      opaque: opaque === undefined ? { case: undefined } : { case: "opaqueBytes", value: opaque },
    });
    return create(PartSchema, { part: { case: "reasoning", value } });
  }
}

function textPart(text: string): Part {
  return create(PartSchema, { part: { case: "text", value: { text } } });
}

function chunkOf(kind: "text" | "reasoning", partIndex: number, text: string): ModelChunk | undefined {
  return text === "" ? undefined : { kind, partIndex, text };
}
