/**
 * The echo provider: needs no key, no network and no time. It answers `echo:` and the text of the last user message, in up to
 * three pieces.
 *
 * Its usage is a count of words, a word being a run of characters that are not white space: input, the text parts of all
 * messages; output, the answer. Equal requests cost the same on every host.
 */

import { textMessage, messageText, type ModelChunk, type ModelProvider, type ModelRequest } from "../spi/index.ts";
import { abortErrorOf } from "./fault.ts";
import { usageOf, wordCounts } from "./usage.ts";

/** Pieces at most, so that a stream is one. */
const PIECES_MAX = 3;

/** The echo provider. */
export function createEchoProvider(): ModelProvider {
  return { name: "echo", complete };
}

async function* complete(request: ModelRequest, { signal }: { readonly signal: AbortSignal }): AsyncGenerator<ModelChunk> {
  const last = request.messages.findLast((message) => message.role === "user");
  const answer = `echo:${last === undefined ? "" : messageText(last)}`;
  for (const text of piecesOf(answer)) {
    if (signal.aborted) throw abortErrorOf(signal);
    yield { kind: "text", partIndex: 0, text };
  }
  if (signal.aborted) throw abortErrorOf(signal);
  const usage = usageOf(request.model, wordCounts(request, answer));
  yield { kind: "completed", response: { message: textMessage("assistant", answer), usage }, facts: { stopReason: "stop", attempts: 1 } };
}

/** `text` in pieces of about the same length, none of which ends inside a surrogate pair. */
function piecesOf(text: string): string[] {
  const length = Math.ceil(text.length / PIECES_MAX);
  const pieces: string[] = [];
  for (let start = 0; start < text.length;) {
    let end = Math.min(start + length, text.length);
    const before = text.charCodeAt(end - 1);
    if (end < text.length && before >= 0xd800 && before <= 0xdbff) end++;
    pieces.push(text.slice(start, end));
    start = end;
  }
  return pieces;
}
