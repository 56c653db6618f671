/**
 * A stream of Anthropic message events as a completion. Pure: events in, our chunks and message out.
 *
 * A thinking block becomes a reasoning part whose opaque bytes are the block's JSON, thinking and signature as they came, and
 * whose summary is the thinking for people to read (I2). Blocks of kinds that are never asked for are passed over, and so are
 * unknown events and deltas, as the provider's versioning rules ask.
 */

import type { ModelChunk, ModelFacts } from "../spi/index.ts";
import type { Translation } from "./completion.ts";
import { malformed, ProviderFaultError } from "./fault.ts";
import { MessageAssembly, type AssemblyContext, type OpenPart } from "./message-assembly.ts";
import { stopWord, usageOf, type TokenCounts } from "./usage.ts";
import { countAt, indexField, objectField, stringField, wireObject, type WireObject } from "./wire-json.ts";

/** Takes the deltas of one block. */
type OpenBlock = (delta: WireObject) => ModelChunk | undefined;

/** A translation of one stream. */
export function translateAnthropic(context: AssemblyContext): Translation {
  const assembly = new MessageAssembly(context);
  const blocks = new Map<number, OpenBlock>();
  let usage: WireObject = {};
  let stopReason: string | undefined;

  const openBlock = (event: WireObject): ModelChunk | undefined => {
    const block = wireObject(event["content_block"]);
    const open = blockOpener(assembly, block);
    blocks.set(indexField(event, "index") ?? malformed(), open.take);
    return open.first;
  };
  const pushDelta = (event: WireObject): ModelChunk | undefined => {
    const take = blocks.get(indexField(event, "index") ?? malformed()) ?? malformed();
    return take(wireObject(event["delta"]));
  };
  // The counts of a message are cumulative: what comes later replaces, what a later event leaves out stays.
  const mergeUsage = (update: unknown): void => {
    const known = Object.entries(update ?? {}).filter(([, value]) => value !== null);
    usage = { ...usage, ...Object.fromEntries(known) };
  };

  return {
    push: (value) => {
      const event = wireObject(value);
      switch (event["type"]) {
        case "message_start":
          mergeUsage(wireObject(event["message"])["usage"]);
          return [];
        case "content_block_start":
          return listOf(openBlock(event));
        case "content_block_delta":
          return listOf(pushDelta(event));
        case "message_delta":
          stopReason = stringField(wireObject(event["delta"]), "stop_reason") ?? stopReason;
          mergeUsage(event["usage"]);
          return [];
        default:
          return [];
      }
    },
    finish: () => {
      if (stopReason === undefined) throw new ProviderFaultError({ kind: "cut" });
      const { chunks, message } = assembly.finish();
      return { chunks, response: { message, usage: usageOf(context.modelId, tokenCounts(usage)) }, facts: factsOf(stopReason, usage) };
    },
  };
}

interface OpenedBlock {
  readonly take: OpenBlock;
  /** The chunk of what the opening event already held. */
  readonly first?: ModelChunk | undefined;
}

function blockOpener(assembly: MessageAssembly, block: WireObject): OpenedBlock {
  switch (block["type"]) {
    case "text":
      return openTextBlock(assembly, block);
    case "thinking":
      return openThinkingBlock(assembly, block);
    case "redacted_thinking": {
      const data = stringField(block, "data") ?? malformed();
      assembly.openReasoning(() => jsonBytes({ type: "redacted_thinking", data }));
      return { take: () => undefined };
    }
    case "tool_use":
      return openToolBlock(assembly, block);
    default:
      return { take: () => undefined };
  }
}

function openTextBlock(assembly: MessageAssembly, block: WireObject): OpenedBlock {
  let part: OpenPart | undefined;
  // A block that stays empty becomes no part: providers refuse empty text when it is handed back.
  const append = (text: string | undefined): ModelChunk | undefined =>
    text === undefined || text === "" ? undefined : (part ??= assembly.openText()).append(text);
  return {
    take: (delta) => (delta["type"] === "text_delta" ? append(stringField(delta, "text")) : undefined),
    first: append(stringField(block, "text")),
  };
}

function openThinkingBlock(assembly: MessageAssembly, block: WireObject): OpenedBlock {
  // Kept apart from the part's text, which is made well-formed: the signature covers the thinking as it came.
  let thinking = stringField(block, "thinking") ?? "";
  let signature = stringField(block, "signature") ?? "";
  const part = assembly.openReasoning(() => jsonBytes({ type: "thinking", thinking, signature }));
  return {
    take: (delta) => {
      if (delta["type"] === "signature_delta") signature += stringField(delta, "signature") ?? "";
      if (delta["type"] !== "thinking_delta") return undefined;
      const piece = stringField(delta, "thinking") ?? "";
      thinking += piece;
      return part.append(piece);
    },
    first: part.append(thinking),
  };
}

function openToolBlock(assembly: MessageAssembly, block: WireObject): OpenedBlock {
  const call = assembly.openCall();
  const input = objectField(block, "input");
  // The input arrives as deltas of JSON text; an opening event that holds it already is followed by none.
  const whole = input !== undefined && Object.keys(input).length > 0 ? JSON.stringify(input) : undefined;
  call.append({ id: stringField(block, "id"), name: stringField(block, "name"), args: whole });
  return {
    take: (delta) => {
      if (delta["type"] === "input_json_delta") call.append({ args: stringField(delta, "partial_json") });
      return undefined;
    },
  };
}

function tokenCounts(usage: unknown): TokenCounts {
  const cached = (countAt(usage, "cache_read_input_tokens") ?? 0) + (countAt(usage, "cache_creation_input_tokens") ?? 0);
  return {
    // This provider counts cached tokens apart; the contract's input_tokens, like the other provider's, has them in it.
    inputTokens: (countAt(usage, "input_tokens") ?? 0) + cached,
    outputTokens: countAt(usage, "output_tokens") ?? 0,
    reasoningTokens: countAt(usage, "output_tokens_details", "thinking_tokens") ?? 0,
  };
}

function factsOf(stopReason: string, usage: unknown): ModelFacts {
  return {
    stopReason: stopWord(stopReason),
    cachedInputTokens: countAt(usage, "cache_read_input_tokens"),
    cacheWriteTokens: countAt(usage, "cache_creation_input_tokens"),
  };
}

function listOf(chunk: ModelChunk | undefined): readonly ModelChunk[] {
  return chunk === undefined ? [] : [chunk];
}

const encoder = new TextEncoder();

function jsonBytes(block: Readonly<Record<string, string>>): Uint8Array {
  return encoder.encode(JSON.stringify(block));
}
