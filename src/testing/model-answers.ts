/** Whole answers of the model server, in each of its protocols. */

import type { ModelProtocol } from "./model-rules.ts";
import type { ModelReply, StreamStep } from "./model-server.ts";
import { googleEnd, googleText } from "./model-streams-google.ts";
import { responsesEnd, responsesOpenText, responsesStart } from "./model-streams-responses.ts";
import { anthropicEnd, anthropicStart, anthropicText, openAiEnd, openAiText, sse } from "./model-streams.ts";

/** A whole, ordinary answer with these pieces of text, one event each. */
export function replyText(protocol: ModelProtocol, ...pieces: readonly string[]): ModelReply {
  return { kind: "stream", steps: [...openingSteps(protocol, pieces), ...endingSteps(protocol)] };
}

/** The steps of an answer up to these pieces of text. */
export function openingSteps(protocol: ModelProtocol, pieces: readonly string[]): StreamStep[] {
  switch (protocol) {
    case "openai":
      return openAiText(...pieces);
    case "responses":
      return [...responsesStart(), ...responsesOpenText(0, pieces)];
    case "anthropic":
      return [...anthropicStart(), ...anthropicText(0, ...pieces).slice(0, -1)];
    case "google":
      return googleText(...pieces);
  }
}

/** The steps that end an answer which `openingSteps` began. */
export function endingSteps(protocol: ModelProtocol): StreamStep[] {
  switch (protocol) {
    case "openai":
      return openAiEnd();
    case "responses":
      return responsesEnd();
    case "anthropic":
      return [sse({ type: "content_block_stop", index: 0 }, "content_block_stop"), ...anthropicEnd()];
    case "google":
      return googleEnd();
  }
}
