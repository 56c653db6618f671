/** Ready-made answers of the model server in the chunks of Gemini's generateContent. */

import type { StreamStep } from "./model-server.ts";
import { sse, USAGE, type ScriptedUsage } from "./model-streams.ts";

/** One chunk with these parts. */
export function googleChunk(parts: readonly unknown[], more: object = {}): StreamStep {
  return sse({ candidates: [{ content: { role: "model", parts }, index: 0, ...more }], modelVersion: "scripted-2026-01-01" });
}

/** One chunk for each piece of text. */
export function googleText(...pieces: readonly string[]): StreamStep[] {
  return pieces.map((text) => googleChunk([{ text }]));
}

/** The last chunk: finish reason and usage. */
export function googleEnd(usage: ScriptedUsage = USAGE, finishReason = "STOP"): StreamStep[] {
  const reasoning = usage.reasoningTokens ?? 0;
  const usageMetadata = {
    promptTokenCount: usage.inputTokens,
    candidatesTokenCount: usage.outputTokens - reasoning,
    thoughtsTokenCount: reasoning,
    cachedContentTokenCount: usage.cachedTokens ?? 0,
    totalTokenCount: usage.inputTokens + usage.outputTokens,
  };
  return [sse({ candidates: [{ content: { role: "model", parts: [] }, finishReason, index: 0 }], usageMetadata })];
}
