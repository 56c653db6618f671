/**
 * A stream of OpenAI's Responses API as a completion. Pure: events in, our chunks and message out.
 *
 * - Each item of the output is a part, in the order in which they began. Items of kinds that are never asked for are passed over, and so
 *   are unknown events.
 * - A reasoning item becomes a reasoning part whose opaque bytes are the item's JSON as it was when it was done, without its `status`, which tells
 *   of the stream (I2); its summary is for people to read.
 * - A message that came with a phase has a reasoning part without words before it, which keeps id and phase: both go back with the message.
 */

import type { ModelChunk, ModelFacts } from "../spi/index.ts";
import type { Translation } from "./completion.ts";
import { malformed, ProviderFaultError, reasonWord } from "./fault.ts";
import { MessageAssembly, type AssemblyContext, type OpenPart } from "./message-assembly.ts";
import type { MessageMark } from "./responses-request.ts";
import { stopWord, usageOf, type TokenCounts } from "./usage.ts";
import { countAt, indexField, listField, objectField, stringField, wireObject, type WireObject } from "./wire-json.ts";

/** An item of the output under assembly. */
interface OpenItem {
  /** Takes an event that names the item. */
  take(event: WireObject): ModelChunk | undefined;
  /** Takes the whole item, when it is done. */
  done(item: WireObject): ModelChunk | undefined;
}

/** A translation of one stream. */
export function translateResponses(context: AssemblyContext): Translation {
  const assembly = new MessageAssembly(context);
  const items = new Map<number, OpenItem>();
  let end: WireObject | undefined;

  const openItem = (event: WireObject): OpenItem => {
    const index = indexField(event, "output_index") ?? malformed();
    const known = items.get(index);
    if (known !== undefined) return known;
    const opened = itemOpener(assembly, objectField(event, "item") ?? {});
    items.set(index, opened);
    return opened;
  };

  return {
    push: (value) => {
      const event = wireObject(value);
      switch (event["type"]) {
        case "response.output_item.added":
          openItem(event);
          return [];
        case "response.output_item.done":
          return listOf(openItem(event).done(wireObject(event["item"])));
        case "response.completed":
        case "response.incomplete":
          end = wireObject(event["response"]);
          return [];
        case "response.failed":
          throw failureOf(objectField(wireObject(event["response"]), "error") ?? {});
        case "error":
          throw failureOf(event);
        default:
          return event["output_index"] === undefined ? [] : listOf(items.get(indexField(event, "output_index") ?? -1)?.take(event));
      }
    },
    finish: () => {
      if (end === undefined) throw new ProviderFaultError({ kind: "cut" });
      const { chunks, message } = assembly.finish();
      const usage = end["usage"];
      return { chunks, response: { message, usage: usageOf(context.modelId, tokenCounts(usage)) }, facts: factsOf(end, usage) };
    },
  };
}

function failureOf(error: WireObject): ProviderFaultError {
  return new ProviderFaultError({ kind: "stream-error", reason: reasonWord(error["code"]) ?? reasonWord(error["type"]) });
}

const IGNORED: OpenItem = { take: () => undefined, done: () => undefined };

function itemOpener(assembly: MessageAssembly, item: WireObject): OpenItem {
  switch (item["type"]) {
    case "message":
      return openMessage(assembly, item);
    case "reasoning":
      return openReasoning(assembly, item);
    case "function_call":
      return openCall(assembly, item);
    default:
      return IGNORED;
  }
}

function openMessage(assembly: MessageAssembly, item: WireObject): OpenItem {
  const mark = markOf(item);
  if (mark !== undefined) assembly.openReasoning(() => jsonBytes(mark), mark.id);
  let part: OpenPart | undefined;
  // A message that stays empty becomes no part: providers refuse empty text when it is handed back.
  const append = (text: string | undefined): ModelChunk | undefined =>
    text === undefined || text === "" ? undefined : (part ??= assembly.openText()).append(text);
  return {
    take: (event) => {
      const isText = event["type"] === "response.output_text.delta" || event["type"] === "response.refusal.delta";
      return isText ? append(stringField(event, "delta")) : undefined;
    },
    // A server that sends no deltas sends the text here.
    done: (whole) => (part === undefined ? append(textOfMessage(whole)) : undefined),
  };
}

function markOf(item: WireObject): MessageMark | undefined {
  const id = stringField(item, "id") ?? "";
  const phase = stringField(item, "phase");
  if (id === "" || (phase !== "commentary" && phase !== "final_answer")) return undefined;
  return { type: "message", id, phase };
}

function textOfMessage(item: WireObject): string {
  const parts = (listField(item, "content") ?? []).map(wireObject);
  return parts.map((part) => stringField(part, "text") ?? stringField(part, "refusal") ?? "").join("");
}

function openReasoning(assembly: MessageAssembly, item: WireObject): OpenItem {
  let whole: WireObject | undefined;
  let summaryIndex = 0;
  let hasWords = false;
  const part = assembly.openReasoning(() => (whole === undefined ? undefined : jsonBytes(whole)), stringField(item, "id"));
  const append = (text: string, index: number): ModelChunk | undefined => {
    // The pieces of a summary are paragraphs.
    const gap = hasWords && index !== summaryIndex ? "\n\n" : "";
    summaryIndex = index;
    hasWords ||= text !== "";
    return part.append(gap + text);
  };
  return {
    take: (event) => {
      const isSummary = event["type"] === "response.reasoning_summary_text.delta";
      if (!isSummary && event["type"] !== "response.reasoning_text.delta") return undefined;
      const index = indexField(event, isSummary ? "summary_index" : "content_index") ?? 0;
      return append(stringField(event, "delta") ?? "", index);
    },
    done: (done) => {
      const { status: _, ...kept } = done;
      whole = kept;
      if (hasWords) return undefined;
      const words = (listField(done, "summary") ?? []).map((piece) => stringField(wireObject(piece), "text") ?? "");
      return append(words.filter((text) => text !== "").join("\n\n"), 0);
    },
  };
}

function openCall(assembly: MessageAssembly, item: WireObject): OpenItem {
  const call = assembly.openCall();
  let hasArgs = false;
  call.append({ id: stringField(item, "call_id"), name: stringField(item, "name") });
  return {
    take: (event) => {
      if (event["type"] !== "response.function_call_arguments.delta") return undefined;
      hasArgs = true;
      call.append({ args: stringField(event, "delta") });
      return undefined;
    },
    done: (whole) => {
      call.append({ id: stringField(whole, "call_id"), name: stringField(whole, "name") });
      if (!hasArgs) call.append({ args: stringField(whole, "arguments") });
      return undefined;
    },
  };
}

function tokenCounts(usage: unknown): TokenCounts {
  return {
    inputTokens: countAt(usage, "input_tokens") ?? 0,
    outputTokens: countAt(usage, "output_tokens") ?? 0,
    reasoningTokens: countAt(usage, "output_tokens_details", "reasoning_tokens") ?? 0,
  };
}

function factsOf(response: WireObject, usage: unknown): ModelFacts {
  const reason = stringField(objectField(response, "incomplete_details") ?? {}, "reason");
  return {
    stopReason: stopWord(reason ?? stringField(response, "status") ?? "completed"),
    cachedInputTokens: countAt(usage, "input_tokens_details", "cached_tokens"),
    cacheWriteTokens: countAt(usage, "input_tokens_details", "cache_write_tokens"),
  };
}

function listOf(chunk: ModelChunk | undefined): readonly ModelChunk[] {
  return chunk === undefined ? [] : [chunk];
}

const encoder = new TextEncoder();

function jsonBytes(value: object): Uint8Array {
  return encoder.encode(JSON.stringify(value));
}
