/** Journals to look at and to tamper with: one that has every kind of event, and chains of any events. */

import { create, toJson, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import type { Fence, Seq } from "../base/ids.ts";
import { contentHash, decodeLogRecord, encodeLogRecord, normaliseEvent } from "../canon/index.ts";
import {
  EventKind,
  EventSchema,
  IdentityRefSchema,
  Lifecycle_Kind as LifecycleKind,
  LogRecordSchema,
  Mediation,
  ToolResult_Code as ToolResultCode,
  type Event,
} from "../gen/agentsessions/v1/common_pb.ts";
import type { StoredRecord } from "../journal/record.ts";
import { testDigest } from "./ports.ts";

/** The chain of `events`, each normalised, from seq 1 on, under one fence. */
export function chainOf(events: Iterable<Event>, fence = 3 as Fence): StoredRecord[] {
  const records: StoredRecord[] = [];
  for (const any of events) {
    const event = normaliseEvent(any);
    const seq = (records.length + 1) as Seq;
    const prevHash = records.at(-1)?.contentHash ?? "";
    const hash = contentHash({ event, prevHash, seq }, testDigest);
    const bytes = encodeLogRecord({ seq, prevHash, contentHash: hash, fence, event });
    records.push({ seq, kind: event.kind, contentHash: hash, fence, bytes });
  }
  return records;
}

/** Records as an export has them: proto3 JSON with the proto's field names. */
export function exported(records: readonly StoredRecord[]): JsonObject[] {
  return records.map((record) => toJson(LogRecordSchema, decodeLogRecord(record.bytes), { useProtoFieldName: true }) as JsonObject);
}

/** A session with every kind of event and every field of the contract that is recorded. */
export function sampleEvents(): Event[] {
  let millis = 1_764_500_000_000;
  return sampleInits().map((init) => {
    millis += 1_001;
    const event = create(EventSchema, init);
    event.executionId = "0199-exec";
    event.ts = create(TimestampSchema, { seconds: BigInt(Math.floor(millis / 1000)), nanos: (millis % 1000) * 1_000_000 });
    event.schemaVersion = 1;
    event.actor = create(IdentityRefSchema, { principal: "agent://sample", issuer: "https://issuer.example", subject: "session-1" });
    return event;
  });
}

type EventInit = MessageInitShape<typeof EventSchema>;

function sampleInits(): EventInit[] {
  const args = { city: "Zürich", days: 2, nested: { list: [null, true, false, 1.5, "x", { "": 0 }], empty: {} } };
  const call = { id: "c1", tool: "weather", args, mediation: Mediation.REQUIRES_APPROVAL, idempotencyKey: "k1" };
  const receipt = { id: "c1", output: { celsius: -3.25 }, approvalRequestSeq: 6n, approvalDecisionSeq: 8n };
  const failed = { id: "c2", isError: true, error: "it failed", code: ToolResultCode.EXECUTOR_ERROR };
  const large = {
    id: "c3",
    outputUri: "blob://x",
    outputDigest: "sha256:00",
    content: [{ part: { case: "text" as const, value: { text: "see file" } } }],
  };
  return [
    start(),
    { kind: EventKind.EVENT_INPUT, body: { case: "message", value: inputMessage() } },
    {
      kind: EventKind.EVENT_MODEL_CALL,
      body: { case: "model", value: { model: "m", params: { temperature: "0" }, inputHash: "ab", id: "m1" } },
    },
    { kind: EventKind.EVENT_OUTPUT, body: { case: "message", value: outputMessage(call) } },
    { kind: EventKind.EVENT_TOOL_CALL, body: { case: "tool", value: call } },
    { kind: EventKind.EVENT_APPROVAL_REQUEST, body: { case: "approval", value: { toolCallId: "c1", reason: "it costs money" } } },
    lifecycle(LifecycleKind.LIFECYCLE_SUSPEND),
    {
      kind: EventKind.EVENT_APPROVAL_RESULT,
      body: { case: "approvalResult", value: { toolCallId: "c1", approved: true, reason: "fine", requestSeq: 6n } },
    },
    { kind: EventKind.EVENT_TOOL_RESULT, body: { case: "result", value: receipt } },
    { kind: EventKind.EVENT_TOOL_RESULT, body: { case: "result", value: failed } },
    { kind: EventKind.EVENT_TOOL_RESULT, body: { case: "result", value: large } },
    {
      kind: EventKind.EVENT_USAGE,
      body: { case: "usage", value: { model: "m", inputTokens: 12n, outputTokens: 2n ** 53n + 1n, reasoningTokens: 7n } },
    },
    { kind: EventKind.EVENT_ERROR, body: { case: "error", value: { code: 14, description: "unavailable" } } },
    { kind: EventKind.EVENT_END, body: { case: "end", value: { state: "FAILED", error: { code: 13, description: "gave up" } } } },
  ];
}

function start(): EventInit {
  const config = new TextEncoder().encode('{"system_prompt":"be brief"}');
  return {
    kind: EventKind.EVENT_EXECUTION_START,
    body: {
      case: "executionStart",
      value: { config, resumeFromSeq: 2n ** 53n + 1n, inputCount: 1n, harness: "chat", harnessVersion: "1.2.3" },
    },
  };
}

function lifecycle(kind: LifecycleKind): EventInit {
  const snapshot = { snapshotLocal: "node-1/7", snapshotExternalUri: "blob://7", snapshotMemory: true, snapshotSealed: true };
  return { kind: EventKind.EVENT_LIFECYCLE, body: { case: "lifecycle", value: { kind, detail: "parked", ...snapshot } } };
}

type MessageInit = NonNullable<Extract<EventInit["body"], { case: "message" }>>["value"];

function inputMessage(): MessageInit {
  const bytes = { case: "bytes" as const, value: new Uint8Array([0, 255, 32]) };
  const uri = { case: "uri" as const, value: "https://files.example/a.png" };
  return {
    role: "user",
    parts: [
      { part: { case: "text", value: { text: 'tabs\tand "quotes", \\ and \u0001, é, \u{1f600}, <b>&\u2028' } } },
      { part: { case: "file", value: { mime: "image/png", source: bytes, name: "a.png", digest: "sha256:aa" } } },
      { part: { case: "file", value: { mime: "image/png", source: uri, name: "b.png", digest: "sha256:bb" } } },
      { part: { case: "data", value: { data: { "\ue000": 1e21, "\u{10000}": 1e-7, b: [0.1, -5e-324], a: "x" } } } },
    ],
  };
}

function outputMessage(call: NonNullable<Extract<EventInit["body"], { case: "tool" }>>["value"]): MessageInit {
  const summary = [{ part: { case: "text" as const, value: { text: "thinking" } } }];
  const opaque = { case: "opaqueBytes" as const, value: new Uint8Array([1, 2, 3, 4]) };
  const rest = { itemId: "rs_1", ordinal: 3, validityScope: "0199-exec", opaqueDigest: "sha256:cc" };
  return {
    role: "assistant",
    parts: [
      { part: { case: "reasoning", value: { provider: "anthropic", modelId: "m", opaque, summary, ...rest } } },
      { part: { case: "reasoning", value: { provider: "openai", opaque: { case: "opaqueUri", value: "blob://r" } } } },
      { part: { case: "text", value: {} } },
      { part: { case: "toolCall", value: call } },
      { part: { case: "toolResult", value: { id: "c0", content: summary } } },
    ],
  };
}
