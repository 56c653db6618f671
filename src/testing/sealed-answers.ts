/**
 * Answers whose reasoning a provider wants back as it was: for each wire format, what the model server sends, and the bytes that have to stand in
 * later requests. Made by hand from what the providers document.
 */

import type { ModelProtocol } from "./model-rules.ts";
import type { StreamStep } from "./model-server.ts";
import { googleChunk, googleEnd, googleText } from "./model-streams-google.ts";
import { responsesCall, responsesEnd, responsesReasoning, responsesStart, responsesText } from "./model-streams-responses.ts";
import { anthropicBlock, anthropicEnd, anthropicStart, anthropicText, openAiChunk, openAiEnd, openAiText } from "./model-streams.ts";

/** What the reasoning of one answer is made of. */
export interface Awkward {
  /** What a person may read of it. */
  readonly thought: string;
  /** What only the provider can read: base64. */
  readonly seal: string;
}

export interface SealedAnswer {
  readonly steps: readonly StreamStep[];
  /** The JSON that a request has to hold for this answer, byte for byte, in this order. */
  readonly kept: readonly string[];
}

/** One way in which providers send reasoning and want it back. */
export interface SealedWire {
  readonly name: string;
  readonly protocol: ModelProtocol;
  readonly model: string;
  /** Answer `n`, with the text `answer n.`; with a call of `look`, whose id is `call_n`, where `calls` is set. */
  answer(n: number, awkward: Awkward, calls: boolean): SealedAnswer;
  /** How many pieces of reasoning a request's body holds. */
  count(json: unknown): number;
}

/** Texts that are easily changed on their way: each is handed back as it came, or the signature over it is worth nothing. */
export const AWKWARD: readonly Awkward[] = [
  { thought: "plain", seal: base64("plain") },
  { thought: "", seal: base64("thinking that is not shown") },
  { thought: "é e\u0301 ß \u212b 漢字 עברית \u{1f468}\u200d\u{1f469}\u200d\u{1f467} \u{10ffff}", seal: base64("\u{10ffff}é") },
  { thought: '" \\ \\" / \\/ \\u0041 </script> {"signature":"x"} ${x} %s', seal: "+/+/AA==" },
  { thought: "\u0000\u0001\b\t\n\v\f\r\r\n\u001f\u007f\u0085\u00a0\u2028\u2029\ufeff\ufffd\uffff", seal: base64("\u0000\r\n") },
  { thought: "\ufeff begins with a mark, and ends in white space \n\n", seal: base64("\ufeff") },
  { thought: "data: {}\n\nevent: message_stop\n\n: comment\n\n[DONE]\n\n", seal: base64("data: [DONE]\n\n") },
  { thought: "a long one, \u{1f680} ".repeat(4_000), seal: base64("a very long seal ÿ ".repeat(5_000)) },
];

/** Texts of middling size, for conversations that have to be made shorter. */
export const MIDDLING: readonly Awkward[] = AWKWARD.slice(0, -1).map(({ thought, seal }, index) => ({
  thought: `${thought}${" and so on".repeat(index)}`,
  seal,
}));

/** The arguments of a call as its model writes them. */
const ARGS = '{"at": 1.50, "é": "\u2028"}';

/** What the vendor documents for a call whose signature is gone. It is none. */
const STAND_IN = "skip_thought_signature_validator";

export const SEALED_WIRES: readonly SealedWire[] = [
  {
    name: "anthropic: thinking with a signature, and redacted thinking",
    protocol: "anthropic",
    model: "claude-x",
    answer: (n, { thought, seal }, calls) => {
      const signature = `${seal}"\\é`;
      return {
        steps: [
          ...anthropicStart(),
          ...anthropicBlock(0, { type: "thinking", thinking: "", signature: "" }, [
            ...pieces(thought).map((thinking) => ({ type: "thinking_delta", thinking })),
            ...pieces(signature).map((part) => ({ type: "signature_delta", signature: part })),
          ]),
          ...anthropicBlock(1, { type: "redacted_thinking", data: seal }, []),
          ...anthropicText(2, `answer ${n}.`),
          ...(calls
            ? anthropicBlock(3, { type: "tool_use", id: `call_${n}`, name: "look", input: {} }, [
                { type: "input_json_delta", partial_json: ARGS },
              ])
            : []),
          ...anthropicEnd(calls ? "tool_use" : "end_turn"),
        ],
        kept: [
          JSON.stringify({ type: "thinking", thinking: thought, signature }),
          JSON.stringify({ type: "redacted_thinking", data: seal }),
        ],
      };
    },
    count: (json) => blocksOf(json, "messages", "content").filter(({ type }) => type === "thinking" || type === "redacted_thinking").length,
  },
  {
    name: "responses: encrypted reasoning items, and the phase of a message",
    protocol: "responses",
    model: "gpt-x",
    answer: (n, { thought, seal }, calls) => {
      const summary = thought === "" ? [] : [{ type: "summary_text", text: thought }];
      const first = { id: `rs_${n}_0`, type: "reasoning", summary, encrypted_content: `${seal}"\\é` };
      // What a later version of the API may add is nobody's to drop.
      const second = {
        encrypted_content: seal,
        type: "reasoning",
        id: `rs_${n}_1`,
        summary: [],
        "z.later": { b: [1.5, null, true], a: "\u2028" },
      };
      const phase = calls ? "commentary" : "final_answer";
      return {
        steps: [
          ...responsesStart(),
          ...responsesReasoning(0, { status: "completed", ...first } as { id: string }, pieces(thought)),
          ...responsesReasoning(1, second),
          ...responsesText(2, [`answer ${n}.`], { id: `msg_${n}`, phase }),
          ...(calls ? responsesCall(3, `call_${n}`, "look", [ARGS]) : []),
          ...responsesEnd(),
        ],
        kept: [JSON.stringify(first), JSON.stringify(second)],
      };
    },
    count: (json) => listOf(json, "input").filter(({ type }) => type === "reasoning").length,
  },
  {
    name: "google: signatures of thoughts, texts and calls",
    protocol: "google",
    model: "gemini-3-x",
    answer: (n, { thought, seal }, calls) => {
      const whole = { text: thought, thought: true, thoughtSignature: seal };
      const text = { text: `answer ${n}.`, thoughtSignature: base64(`text ${n}`) };
      const call = {
        functionCall: { id: `call_${n}`, name: "look", args: JSON.parse(ARGS) as object },
        thoughtSignature: `AAAA${seal}`,
      };
      return {
        steps: [
          googleChunk([{ text: "unsigned thoughts are for people", thought: true }]),
          googleChunk([whole]),
          ...(calls
            ? [googleChunk([text]), googleChunk([call])]
            : [...googleText(`answer ${n}.`), googleChunk([{ text: "", thoughtSignature: seal }])]),
          ...googleEnd(),
        ],
        kept: [
          JSON.stringify(whole),
          ...(calls
            ? [JSON.stringify(text), `"thoughtSignature":${JSON.stringify(call.thoughtSignature)}`]
            : [JSON.stringify({ text: "", thoughtSignature: seal })]),
        ],
      };
    },
    count: (json) =>
      blocksOf(json, "contents", "parts").filter(({ thoughtSignature: kept }) => kept !== undefined && kept !== STAND_IN).length,
  },
  ...(["reasoning_content", "reasoning"] as const).map((field): SealedWire => ({
    name: `compatible servers: ${field}`,
    protocol: "openai",
    model: field === "reasoning" ? "local-thinker" : "deepseek-x",
    answer: (n, { thought }, calls) => {
      // An answer without words to read has no reasoning at all here.
      const text = thought === "" ? "hm" : thought;
      return {
        steps: chatSteps(n, calls, { deltas: pieces(text).map((piece) => ({ [field]: piece })) }),
        kept: [`${JSON.stringify(field)}:${JSON.stringify(text)}`],
      };
    },
    count: (json) => listOf(json, "messages").filter((message) => message[field] !== undefined && message[field] !== "").length,
  })),
  {
    name: "compatible servers: reasoning_details, signed and encrypted",
    protocol: "openai",
    model: "routed/thinker",
    answer: (n, { thought, seal }, calls) => {
      const block = { type: "reasoning.text", format: "f-1", index: 0 };
      const encrypted = { type: "reasoning.encrypted", data: seal, id: `call_${n}`, index: 1, "z.later": { b: [1.5, null], a: "\u2028" } };
      const deltas = [
        ...pieces(thought).map((text) => ({ reasoning: text, reasoning_details: [{ ...block, text }] })),
        { reasoning_details: [{ ...block, ...(thought === "" ? { text: "" } : {}), signature: `${seal}"\\é` }] },
        { reasoning_details: [encrypted] },
      ];
      const details = [{ ...block, text: thought, signature: `${seal}"\\é` }, encrypted];
      return { steps: chatSteps(n, calls, { deltas }), kept: [`"reasoning_details":${JSON.stringify(details)}`] };
    },
    count: (json) => listOf(json, "messages").filter((message) => message["reasoning_details"] !== undefined).length,
  },
  {
    name: "compatible servers: the extra content of a call",
    protocol: "openai",
    model: "gemini-3-x",
    answer: (n, { seal }, calls) => {
      const extra = { google: { thought_signature: seal, "z.later": [1.5, { é: null }] } };
      return {
        steps: chatSteps(n, calls, { call: { extra_content: extra } }),
        kept: calls ? [`"extra_content":${JSON.stringify(extra)}`] : [],
      };
    },
    count: (json) => blocksOf(json, "messages", "tool_calls").filter((call) => call["extra_content"] !== undefined).length,
  },
];

/** An answer of a chat server: what it adds to its deltas, then text, and a call with what it adds to that. */
function chatSteps(
  n: number,
  calls: boolean,
  more: { readonly deltas?: readonly object[]; readonly call?: object },
): readonly StreamStep[] {
  const call = { index: 0, id: `call_${n}`, type: "function", function: { name: "look", arguments: ARGS }, ...more.call };
  return [
    ...(more.deltas ?? []).map((delta) => openAiChunk(delta)),
    ...openAiText(`answer ${n}.`),
    ...(calls ? [openAiChunk({ tool_calls: [call] })] : []),
    ...openAiEnd(calls ? "tool_calls" : "stop"),
  ];
}

/** A text in pieces that end in awkward places: between the halves of a pair, too. */
function pieces(text: string): readonly string[] {
  const length = Math.max(1, Math.ceil(text.length / 7));
  return Array.from({ length: Math.ceil(text.length / length) }, (_, index) => text.slice(index * length, (index + 1) * length));
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

type Block = Readonly<Record<string, unknown>>;

function listOf(json: unknown, name: string): readonly Block[] {
  return (json as Readonly<Record<string, readonly Block[] | undefined>>)[name] ?? [];
}

/** The blocks of all messages that have a list of them. */
function blocksOf(json: unknown, messages: string, blocks: string): readonly Block[] {
  return listOf(json, messages).flatMap((message) => (Array.isArray(message[blocks]) ? (message[blocks] as readonly Block[]) : []));
}

/** The same answer as servers send it that write nothing but ASCII. */
export function asAscii(steps: readonly StreamStep[]): readonly StreamStep[] {
  return steps.map((step) => (step.kind === "send" ? { kind: "send", text: escaped(step.text) } : step));
}

function escaped(text: string): string {
  return text.replaceAll("/", "\\/").replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
