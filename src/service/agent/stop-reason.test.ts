import { expect, it } from "vitest";
import { stopReasonOf } from "./stop-reason.ts";

it.each([
  ["stop", "end_turn"],
  ["end_turn", "end_turn"],
  ["", "end_turn"],
  ["tool_use", "end_turn"],
  ["length", "max_tokens"],
  ["MAX_TOKENS", "max_tokens"],
  ["max_output_tokens", "max_tokens"],
  ["content_filter", "refusal"],
  ["SAFETY", "refusal"],
  ["stop_sequence", "stop_sequence"],
  ["constructor", "end_turn"],
  ["a provider's own words", "end_turn"],
])("a turn whose last completion stopped for %j ends with %s", (word, reason) => {
  expect(stopReasonOf(word)).toBe(reason);
});
