/**
 * A session never becomes unusable: whatever a journal holds and wherever it is cut, the request that the chat harness builds
 * from it is one that the providers accept. The rules are those of `model-rules.ts`; `model-server.test.ts` shows that each of them can fail.
 */

import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { seqOf } from "../base/ids.ts";
import { inputHash } from "../canon/index.ts";
import {
  EventSchema,
  MessageSchema,
  ToolCallSchema,
  ToolResultSchema,
  type Event,
  type Message,
} from "../gen/agentsessions/v1/common_pb.ts";
import { Conversation } from "../harnesses/index.ts";
import { anthropicRequestBody } from "../models/anthropic-request.ts";
import { googleRequest } from "../models/google-request.ts";
import { openAiRequestBody } from "../models/openai-request.ts";
import { responsesRequestBody } from "../models/responses-request.ts";
import { EventKind, textMessage, type ModelRequest } from "../spi/index.ts";
import { MODEL_PROTOCOLS, refusalOf, type ModelProtocol } from "./model-rules.ts";
import { testDigest } from "./ports.ts";

type Parts = NonNullable<NonNullable<Parameters<typeof create<typeof MessageSchema>>[1]>["parts"]>;
type PartInit = Parts[number];

const encode = (text: string) => new TextEncoder().encode(text);
const callId = fc.constantFrom("a", "b", "c.1:0", "", `${"x".repeat(80)}1`, `${"x".repeat(80)}2`);
const words = fc.constantFrom("", " ", "hello", "  trailing ", "😀");
const textPart = words.map((text): PartInit => ({ part: { case: "text", value: { text } } }));
const callPart = fc
  .tuple(callId, fc.constantFrom("read", "files.read", ""))
  .map(([id, tool]): PartInit => ({ part: { case: "toolCall", value: { id, tool, args: { n: 1 } } } }));
const filePart = fc
  .constantFrom("image/png", "application/pdf", "text/plain", "video/mp4", "")
  .map((mime): PartInit => ({ part: { case: "file", value: { mime, source: { case: "bytes", value: encode("x") } } } }));
const resultPart = fc
  .tuple(callId, fc.boolean(), fc.array(fc.oneof(textPart, filePart), { maxLength: 2 }))
  .map(([id, isError, content]): PartInit => ({ part: { case: "toolResult", value: { id, isError, content } } }));
const thinking = fc
  .tuple(
    fc.constantFrom(
      '{"type":"thinking","thinking":"hm","signature":"S"}',
      '{"type":"redacted_thinking","data":"D"}',
      '{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"E"}',
      '{"type":"message","id":"msg_1","phase":"commentary"}',
      '{"text":"","thoughtSignature":"AAAA"}',
      '{"text":"hm","thought":true,"thoughtSignature":"AAAA"}',
      '{"thoughtSignature":"BBBB"}',
      "not a block",
    ),
    fc.constantFrom("anthropic", "openai", "google"),
    fc.constantFrom("m", "another"),
  )
  .map(([block, provider, modelId]): PartInit => ({
    part: { case: "reasoning", value: { provider, modelId, opaque: { case: "opaqueBytes", value: encode(block) } } },
  }));
const nothing = fc.constant<PartInit>({ part: { case: undefined } });

const messageOf = (role: fc.Arbitrary<string>, part: fc.Arbitrary<PartInit>): fc.Arbitrary<Message> =>
  fc.tuple(role, fc.array(part, { maxLength: 4 })).map(([name, parts]) => create(MessageSchema, { role: name, parts }));
const inputMessage = messageOf(
  fc.constantFrom("user", "tool", "assistant", "system", "", "robot"),
  fc.oneof(textPart, resultPart, filePart, callPart, nothing),
);
/** Anthropic's thinking comes first in what a model says; other providers' comes anywhere. */
const outputMessage = fc
  .tuple(
    fc.array(thinking, { maxLength: 2 }),
    messageOf(
      fc.constantFrom("assistant", ""),
      fc.oneof(
        { weight: 3, arbitrary: textPart },
        { weight: 3, arbitrary: callPart },
        { weight: 1, arbitrary: thinking.filter(({ part }) => part?.case === "reasoning" && part.value.provider !== "anthropic") },
      ),
    ),
  )
  .map(([first, rest]) =>
    create(MessageSchema, { role: rest.role, parts: [...create(MessageSchema, { parts: first }).parts, ...rest.parts] }),
  );

const event: fc.Arbitrary<Event> = fc.oneof(
  inputMessage.map((value) => create(EventSchema, { kind: EventKind.EVENT_INPUT, body: { case: "message", value } })),
  outputMessage.map((value) => create(EventSchema, { kind: EventKind.EVENT_OUTPUT, body: { case: "message", value } })),
  callId.map((id) =>
    create(EventSchema, {
      kind: EventKind.EVENT_TOOL_RESULT,
      body: { case: "result", value: create(ToolResultSchema, { id, output: { ok: true } }) },
    }),
  ),
  callId.map((id) =>
    create(EventSchema, {
      kind: EventKind.EVENT_TOOL_CALL,
      body: { case: "tool", value: { $typeName: "agentsessions.v1.ToolCall", id, tool: "t", mediation: 1, idempotencyKey: "" } },
    }),
  ),
  fc.constantFrom("tool", "observed").map((kind) => {
    const id = "observation.e";
    return kind === "tool"
      ? create(EventSchema, {
          kind: EventKind.EVENT_TOOL_CALL,
          executionId: "e",
          body: { case: "tool", value: create(ToolCallSchema, { id, tool: "eyes", mediation: 1 }) },
        })
      : create(EventSchema, {
          kind: EventKind.EVENT_TOOL_RESULT,
          body: { case: "result", value: create(ToolResultSchema, { id, output: { seen: "a cup" } }) },
        });
  }),
  fc.constant(
    create(EventSchema, {
      kind: EventKind.EVENT_END,
      body: { case: "end", value: { $typeName: "agentsessions.v1.HarnessEnd", state: "FAILED" } },
    }),
  ),
);

function requestFrom(events: readonly Event[]): readonly Message[] {
  const conversation = new Conversation();
  conversation.addPage({ firstSeq: seqOf(1), events });
  conversation.addInput(textMessage("user", "and now?"));
  return conversation.messages();
}

/** Each provider's body, with the options that want most of a history. */
const BODIES: Readonly<Record<ModelProtocol, (request: ModelRequest) => object>> = {
  openai: (request) =>
    openAiRequestBody(request, { provider: "openai", modelPrefix: "", maxTokensField: "max_tokens", includeUsage: true }),
  responses: (request) => responsesRequestBody(request, { provider: "openai", modelPrefix: "" }),
  anthropic: (request) =>
    anthropicRequestBody({ ...request, params: { thinking_budget_tokens: "1024" } }, { modelPrefix: "", maxTokensDefault: 100 }),
  google: (request) => googleRequest(request, { modelPrefix: "" }).body,
};

describe("the request from any prefix of any journal", () => {
  it("is accepted by every provider, and can be hashed", () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 12 }), (journal) => {
        for (let length = 0; length <= journal.length; length++) {
          const request = { model: "m", messages: requestFrom(journal.slice(0, length)) };
          for (const protocol of MODEL_PROTOCOLS) expect(refusalOf(protocol, structuredClone(BODIES[protocol](request)))).toBeUndefined();
          inputHash(request, testDigest);
        }
      }),
      { seed: 20261130, numRuns: 1_000 },
    );
  });

  it("has behind each message with calls one message with their results, in their order, and no other results", () => {
    const idsOf = (message: Message | undefined, kind: "toolCall" | "toolResult"): string[] =>
      (message?.parts ?? []).flatMap(({ part }) => (part.case === kind ? [part.value.id] : []));
    fc.assert(
      fc.property(fc.array(event, { maxLength: 12 }), (journal) => {
        const messages = requestFrom(journal);
        for (const [index, message] of messages.entries()) {
          const before = messages[index - 1];
          const expected = before?.role === "assistant" ? idsOf(before, "toolCall") : [];
          expect(idsOf(message, "toolResult")).toEqual(expected);
        }
      }),
      { seed: 4, numRuns: 500 },
    );
  });
});
