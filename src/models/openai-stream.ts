/**
 * A stream of chat completion chunks as a completion. Pure: chunks in, our chunks and message out.
 *
 * Parts stand in the order in which they began. Reasoning that compatible servers send becomes a reasoning part whose opaque bytes are what
 * goes back (`chat-reasoning.ts`). A refusal is text.
 */

import type { ModelChunk, ModelFacts } from "../spi/index.ts";
import { keepCallReasoning, ReasoningPieces } from "./chat-reasoning.ts";
import type { Translation } from "./completion.ts";
import { ProviderFaultError } from "./fault.ts";
import { MessageAssembly, type AssemblyContext, type OpenCall, type OpenPart } from "./message-assembly.ts";
import { stopWord, usageOf, type TokenCounts } from "./usage.ts";
import { countAt, indexField, listField, objectField, stringField, wireObject, type WireObject } from "./wire-json.ts";

/** A translation of one stream. */
export function translateOpenAi(context: AssemblyContext): Translation {
  const assembly = new MessageAssembly(context);
  const calls = new CallPieces(assembly);
  const reasoning = new ReasoningPieces(assembly);
  let text: OpenPart | undefined;
  let finishReason: string | undefined;
  let usage: unknown;

  const pushDelta = (delta: WireObject): readonly ModelChunk[] => {
    const chunks: (ModelChunk | undefined)[] = [reasoning.push(delta)];
    for (const words of [stringField(delta, "content"), stringField(delta, "refusal")]) {
      if (words !== undefined && words !== "") chunks.push((text ??= assembly.openText()).append(words));
    }
    for (const piece of listField(delta, "tool_calls") ?? []) calls.push(wireObject(piece));
    return chunks.filter((chunk) => chunk !== undefined);
  };

  return {
    push: (event) => {
      const chunk = wireObject(event);
      usage = chunk["usage"] ?? usage;
      // One choice is asked for; the last chunk, with the usage, has none.
      const first = listField(chunk, "choices")?.[0];
      if (first === undefined) return [];
      const choice = wireObject(first);
      // Some servers send an empty reason with every chunk.
      finishReason = stringField(choice, "finish_reason") || finishReason;
      return pushDelta(objectField(choice, "delta") ?? {});
    },
    finish: () => {
      if (finishReason === undefined) throw new ProviderFaultError({ kind: "cut" });
      const { chunks, message } = assembly.finish();
      const response = { message, usage: usageOf(context.modelId, tokenCounts(usage)) };
      return { chunks, response, facts: factsOf(finishReason, usage) };
    },
  };
}

/** Tool calls as their pieces come in. */
class CallPieces {
  readonly #assembly: MessageAssembly;
  readonly #calls: { readonly index: number; readonly id: string; readonly call: OpenCall }[] = [];

  constructor(assembly: MessageAssembly) {
    this.#assembly = assembly;
  }

  push(piece: WireObject): void {
    const id = stringField(piece, "id") ?? "";
    const fn = objectField(piece, "function") ?? {};
    const call = this.#callOf(indexField(piece, "index"), id, piece);
    call.append({ id, name: stringField(fn, "name"), args: stringField(fn, "arguments") });
  }

  // The index says which call a piece belongs to. Some servers leave it out or send 0 for all: there, another id is another call.
  #callOf(index: number | undefined, id: string, piece: WireObject): OpenCall {
    const known = this.#calls.findLast((entry) => index === undefined || entry.index === index);
    if (known !== undefined && (id === "" || id === known.id)) return known.call;
    keepCallReasoning(this.#assembly, piece);
    const call = this.#assembly.openCall();
    this.#calls.push({ index: index ?? this.#calls.length, id, call });
    return call;
  }
}

function tokenCounts(usage: unknown): TokenCounts {
  return {
    inputTokens: countAt(usage, "prompt_tokens") ?? 0,
    outputTokens: countAt(usage, "completion_tokens") ?? 0,
    reasoningTokens: countAt(usage, "completion_tokens_details", "reasoning_tokens") ?? 0,
  };
}

function factsOf(finishReason: string, usage: unknown): ModelFacts {
  return {
    stopReason: stopWord(finishReason),
    cachedInputTokens: countAt(usage, "prompt_tokens_details", "cached_tokens"),
    cacheWriteTokens: countAt(usage, "prompt_tokens_details", "cache_write_tokens"),
  };
}
