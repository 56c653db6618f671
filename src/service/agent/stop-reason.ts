/** Why a turn ended, in the words of the wire. Providers have words of their own, and what is none of them stays here. Pure. */

/** What a TurnComplete says. The contract names the first three. */
export type StopReason = "end_turn" | "max_tokens" | "cancelled" | "stop_sequence" | "refusal" | "max_steps" | "error" | "interrupted";

const WORDS: Readonly<Record<string, StopReason>> = {
  max_tokens: "max_tokens",
  length: "max_tokens",
  max_output_tokens: "max_tokens",
  model_length: "max_tokens",
  model_context_window_exceeded: "max_tokens",
  stop_sequence: "stop_sequence",
  refusal: "refusal",
  content_filter: "refusal",
  safety: "refusal",
  recitation: "refusal",
  blocklist: "refusal",
  prohibited_content: "refusal",
  spii: "refusal",
};

/** Why a turn ended that completed, by its last completion's word; "" where there was none. */
export function stopReasonOf(word: string): StopReason {
  const known = word.toLowerCase();
  return Object.hasOwn(WORDS, known) ? (WORDS[known] ?? "end_turn") : "end_turn";
}
