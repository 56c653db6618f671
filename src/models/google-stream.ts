/**
 * A stream of Gemini's generateContent as a completion. Pure: chunks in, our chunks and message out.
 *
 * - Thoughts become a reasoning part for people to read. A thought that came with a signature is kept whole as its opaque bytes.
 * - The signature of another part is kept in a reasoning part without words right before it; one that came with an empty text, as at the
 *   end of a stream, is kept with that text (I2). A text with a signature is a part of its own and never joined with another.
 * - Parts of kinds that are never asked for are passed over.
 */

import type { ModelChunk, ModelFacts } from "../spi/index.ts";
import type { Translation } from "./completion.ts";
import { ProviderFaultError, reasonWord } from "./fault.ts";
import { MessageAssembly, type AssemblyContext, type OpenPart } from "./message-assembly.ts";
import { stopWord, usageOf, type TokenCounts } from "./usage.ts";
import { countAt, listField, objectField, stringField, wireObject, type WireObject } from "./wire-json.ts";

/** A translation of one stream. */
export function translateGoogle(context: AssemblyContext): Translation {
  const parts = new Parts(new MessageAssembly(context));
  let finishReason: string | undefined;
  let usage: unknown;

  return {
    push: (event) => {
      const chunk = wireObject(event);
      const error = objectField(chunk, "error");
      if (error !== undefined) throw failure(stringField(error, "status"));
      usage = chunk["usageMetadata"] ?? usage;
      const first = listField(chunk, "candidates")?.[0];
      if (first === undefined) {
        if (stringField(objectField(chunk, "promptFeedback") ?? {}, "blockReason") !== undefined) throw failure("prompt_blocked");
        return [];
      }
      const candidate = wireObject(first);
      finishReason = stringField(candidate, "finishReason") ?? finishReason;
      const content = objectField(candidate, "content") ?? {};
      return (listField(content, "parts") ?? []).flatMap((part) => parts.push(wireObject(part)));
    },
    finish: () => {
      if (finishReason === undefined) throw new ProviderFaultError({ kind: "cut" });
      const { chunks, message } = parts.assembly.finish();
      const response = { message, usage: usageOf(context.modelId, tokenCounts(usage)) };
      return { chunks, response, facts: factsOf(finishReason, usage) };
    },
  };
}

function failure(status: string | undefined): ProviderFaultError {
  return new ProviderFaultError({ kind: "stream-error", reason: reasonWord(status?.toLowerCase()) });
}

class Parts {
  readonly assembly: MessageAssembly;
  /** The part that words without a signature go on in. */
  #open: { readonly kind: "text" | "thought"; readonly part: OpenPart } | undefined;

  constructor(assembly: MessageAssembly) {
    this.assembly = assembly;
  }

  push(part: WireObject): ModelChunk[] {
    const signature = stringField(part, "thoughtSignature");
    const call = objectField(part, "functionCall");
    const text = stringField(part, "text");
    if (call !== undefined) return this.#call(call, signature);
    if (text === undefined) return [];
    if (part["thought"] === true) return this.#thought(part, text, signature);
    return this.#text(text, signature);
  }

  #call(call: WireObject, signature: string | undefined): ModelChunk[] {
    this.#open = undefined;
    if (signature !== undefined) this.#keep({ thoughtSignature: signature });
    const args = objectField(call, "args");
    const open = this.assembly.openCall();
    open.append({ id: stringField(call, "id"), name: stringField(call, "name"), args: args === undefined ? "" : JSON.stringify(args) });
    return [];
  }

  #thought(part: WireObject, text: string, signature: string | undefined): ModelChunk[] {
    if (signature === undefined) return this.#words("thought", text);
    this.#open = undefined;
    return listOf(this.#keep(part).append(text));
  }

  #text(text: string, signature: string | undefined): ModelChunk[] {
    if (signature === undefined) return text === "" ? [] : this.#words("text", text);
    this.#open = undefined;
    this.#keep(text === "" ? { text, thoughtSignature: signature } : { thoughtSignature: signature });
    return text === "" ? [] : listOf(this.assembly.openText().append(text));
  }

  #words(kind: "text" | "thought", text: string): ModelChunk[] {
    if (this.#open?.kind !== kind) {
      this.#open = { kind, part: kind === "text" ? this.assembly.openText() : this.assembly.openReasoning() };
    }
    return listOf(this.#open.part.append(text));
  }

  #keep(part: object): OpenPart {
    return this.assembly.openReasoning(() => encoder.encode(JSON.stringify(part)));
  }
}

function tokenCounts(usage: unknown): TokenCounts {
  const reasoningTokens = countAt(usage, "thoughtsTokenCount") ?? 0;
  return {
    inputTokens: (countAt(usage, "promptTokenCount") ?? 0) + (countAt(usage, "toolUsePromptTokenCount") ?? 0),
    // This provider counts thoughts apart from what it calls candidates.
    outputTokens: (countAt(usage, "candidatesTokenCount") ?? 0) + reasoningTokens,
    reasoningTokens,
  };
}

function factsOf(finishReason: string, usage: unknown): ModelFacts {
  return { stopReason: stopWord(finishReason), cachedInputTokens: countAt(usage, "cachedContentTokenCount") };
}

function listOf(chunk: ModelChunk | undefined): ModelChunk[] {
  return chunk === undefined ? [] : [chunk];
}

const encoder = new TextEncoder();
