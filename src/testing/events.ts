/**
 * Random events for property tests: every message of the contract, every oneof arm, set-but-empty fields, and values that
 * are awkward for text (control characters, astral characters, keys that sort differently in UTF-8 and UTF-16) and for
 * numbers (−0, 1e21, the edges of 2^53, int32 and int64).
 *
 * Everything made here has a canonical form. What has none is the business of the tests that refuse it.
 */

import { create, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import {
  ApprovalRefSchema,
  ApprovalRequestSchema,
  ApprovalResultSchema,
  ErrorSchema,
  EventKind,
  EventSchema,
  ExecutionStartSchema,
  FilePartSchema,
  HarnessEndSchema,
  IdentityRefSchema,
  LifecycleSchema,
  LogRecordSchema,
  MessageSchema,
  ModelCallSchema,
  PartSchema,
  ReasoningPartSchema,
  ToolCallSchema,
  ToolChoiceSchema,
  ToolDefinitionSchema,
  ToolResultSchema,
  UsageSchema,
  type Error as EventError,
  type Event,
  type LogRecord,
  type Message,
  type ModelCall,
  type Part,
  type ToolCall,
  type ToolDefinition,
  type ToolResult,
} from "../gen/agentsessions/v1/common_pb.ts";
import type { ModelRequest } from "../spi/model.ts";

/** What the generated events may hold. */
export interface EventOptions {
  /**
   * `any`: whatever the wire can say. `recordable`: only what `normaliseEvent` accepts (no park, tool arguments with integers
   * that doubles hold one by one); it may still change it. Default `any`.
   */
  readonly scope?: "any" | "recordable" | undefined;
}

const AWKWARD_TEXTS = [
  "", " ", '"', "\\", "/", "\b\f\n\r\t", "\u0000\u0001\u001f", "\u007f", "<script>&amp;</script>", "\u2028\u2029", "\u00e9", "e\u0301",
  "\ufffd", "\ufeffbom", "\uffff", "\ue000", "\u{1f600}", "a\u{10ffff}z", "漢字", "null", "0", "-1", "__proto__", "constructor", "toJSON",
  "x".repeat(31), "x".repeat(32), "x".repeat(33), "x".repeat(72), "y".repeat(73), "z".repeat(128), "é".repeat(60), `${"w".repeat(200)}\u{1f680}`,
];
const AWKWARD_NUMBERS = [
  0, -0, 1, -1, 0.1, 1.5, -2.5, 1 / 3, 1e20, 1e21, -1e21, 1.2e21, 123456789012345680000, 1e-6, 1e-7, 1.5e-7, 9.5e-7,
  2 ** 53 - 1, 2 ** 53, 2 ** 53 + 2, -(2 ** 53), 2 ** 63, 1e300, Number.MAX_VALUE, Number.MIN_VALUE, Number.EPSILON, 333333333.3333333,
];
const AWKWARD_INT64 = [
  0n, 1n, -1n, 127n, 128n, 16383n, 16384n, 2n ** 31n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n,
  2n ** 63n - 1n, -(2n ** 63n), -(2n ** 31n), -(2n ** 53n) - 1n,
];
const AWKWARD_INT32 = [0, 1, -1, 127, 128, 16383, 16384, 2 ** 31 - 1, -(2 ** 31)];

/** Well-formed text, often awkward. */
export function awkwardText(): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...AWKWARD_TEXTS) },
    { weight: 1, arbitrary: fc.string({ maxLength: 12 }) },
    { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 12 }) },
    { weight: 1, arbitrary: fc.array(fc.constantFrom(...AWKWARD_TEXTS.slice(1, 20)), { maxLength: 4 }).map((texts) => texts.join("")) },
  );
}

/** A finite number, often awkward. `safe` keeps integers within ±(2^53−1). */
export function awkwardNumber(safe = false): fc.Arbitrary<number> {
  const any = fc.oneof(fc.constantFrom(...AWKWARD_NUMBERS), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer());
  return safe ? any.map((value) => (Number.isInteger(value) && !Number.isSafeInteger(value) ? value % 1e6 : value)) : any;
}

const int64 = (): fc.Arbitrary<bigint> =>
  fc.oneof(fc.constantFrom(...AWKWARD_INT64), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }));
const int32 = (): fc.Arbitrary<number> => fc.oneof(fc.constantFrom(...AWKWARD_INT32), fc.integer());
const bytes = (): fc.Arbitrary<Uint8Array> => fc.uint8Array({ maxLength: 9 });

/** Any number of an open enum: known ones most of the time. */
function enumNumber(knownMax: number): fc.Arbitrary<number> {
  return fc.oneof({ weight: 8, arbitrary: fc.nat(knownMax) }, { weight: 1, arbitrary: fc.constantFrom(-1, 99, 2 ** 31 - 1) });
}

/** A JSON object as a Struct holds it. `safe` keeps integers within ±(2^53−1). */
export function jsonObject(safe = false): fc.Arbitrary<JsonObject> {
  const { object } = fc.letrec<{ object: JsonObject; value: JsonValue }>((tie) => ({
    object: fc.dictionary(awkwardText(), tie("value"), { maxKeys: 4, depthIdentifier: "json" }),
    value: fc.oneof(
      { maxDepth: 3, depthIdentifier: "json", withCrossShrink: true },
      fc.constant(null),
      awkwardText(),
      awkwardNumber(safe),
      fc.boolean(),
      fc.array(tie("value"), { maxLength: 3, depthIdentifier: "json" }),
      tie("object"),
    ),
  }));
  return object;
}

const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined });

/** A Timestamp with 0, 3, 6 or 9 fraction digits, from year 1 to year 9999. */
export function timestamp(): fc.Arbitrary<Timestamp> {
  const seconds = fc.oneof(
    fc.constantFrom(-62_135_596_800n, 253_402_300_799n, 0n, -1n, 951_782_399n, 951_782_400n, 1_764_500_000n),
    fc.bigInt({ min: -62_135_596_800n, max: 253_402_300_799n }),
  );
  const nanos = fc.oneof(
    fc.constantFrom(0, 1, 1_000, 1_000_000, 10_000_000, 123_000_000, 123_456_000, 999_999_999),
    fc.nat(999_999_999),
  );
  return fc.record({ seconds, nanos }).map((ts) => ({ $typeName: "google.protobuf.Timestamp", ...ts }));
}

const identity = () =>
  fc
    .record({ principal: awkwardText(), issuer: awkwardText(), subject: awkwardText() })
    .map((init) => create(IdentityRefSchema, init));

const errorMessage = (): fc.Arbitrary<EventError> =>
  fc.record({ code: int32(), description: awkwardText() }).map((init) => create(ErrorSchema, init));

/** A tool call. `safe` is about its arguments. */
export function toolCall(safe = false): fc.Arbitrary<ToolCall> {
  return fc
    .record({
      id: awkwardText(),
      tool: awkwardText(),
      args: maybe(jsonObject(safe)),
      mediation: enumNumber(3),
      idempotencyKey: awkwardText(),
    })
    .map((init) => create(ToolCallSchema, init as ToolCallInit));
}
/** fast-check gives `undefined` where a field is absent, and plain numbers for enums; protobuf-es takes both. */
type ToolCallInit = Parameters<typeof create<typeof ToolCallSchema>>[1];

/** A tool definition with any JSON object as its schema. */
export function toolDefinition(): fc.Arbitrary<ToolDefinition> {
  return fc
    .record({ name: awkwardText(), description: awkwardText(), inputSchema: maybe(jsonObject()) })
    .map((init) => create(ToolDefinitionSchema, init));
}

/** A part of any kind, parts within parts included. `safe` is about tool arguments. */
export function part(safe = false): fc.Arbitrary<Part> {
  const { part: any } = fc.letrec<{ part: Part; result: ToolResult }>((tie) => ({
    part: fc.oneof(
      { maxDepth: 3, depthIdentifier: "part" },
      awkwardText().map((text) => create(PartSchema, { part: { case: "text", value: { text } } })),
      fc.constant(create(PartSchema)),
      filePart(),
      maybe(jsonObject()).map((data) => create(PartSchema, { part: { case: "data", value: { data } } })),
      reasoningPart(fc.array(tie("part"), { maxLength: 2, depthIdentifier: "part" })),
      toolCall(safe).map((value) => create(PartSchema, { part: { case: "toolCall", value } })),
      tie("result").map((value) => create(PartSchema, { part: { case: "toolResult", value } })),
    ),
    result: toolResultOf(fc.array(tie("part"), { maxLength: 2, depthIdentifier: "part" })),
  }));
  return any;
}

function filePart(): fc.Arbitrary<Part> {
  const source = fc.oneof(
    fc.constant({ case: undefined }),
    bytes().map((value) => ({ case: "bytes" as const, value })),
    awkwardText().map((value) => ({ case: "uri" as const, value })),
  );
  return fc
    .record({ mime: awkwardText(), source, name: awkwardText(), digest: awkwardText() })
    .map((init) => create(PartSchema, { part: { case: "file", value: create(FilePartSchema, init) } }));
}

function reasoningPart(summary: fc.Arbitrary<Part[]>): fc.Arbitrary<Part> {
  const opaque = fc.oneof(
    fc.constant({ case: undefined }),
    bytes().map((value) => ({ case: "opaqueBytes" as const, value })),
    awkwardText().map((value) => ({ case: "opaqueUri" as const, value })),
  );
  const [provider, modelId, itemId, validityScope, opaqueDigest] = Array.from({ length: 5 }, awkwardText);
  return fc
    .record({ provider: provider!, modelId: modelId!, opaque, summary, itemId: itemId!, ordinal: int32() })
    .chain((init) => fc.record({ validityScope: validityScope!, opaqueDigest: opaqueDigest! }).map((rest) => ({ ...init, ...rest })))
    .map((init) => create(PartSchema, { part: { case: "reasoning", value: create(ReasoningPartSchema, init) } }));
}

function toolResultOf(content: fc.Arbitrary<Part[]>): fc.Arbitrary<ToolResult> {
  return fc
    .record({
      id: awkwardText(),
      output: maybe(jsonObject()),
      outputUri: awkwardText(),
      isError: fc.boolean(),
      error: awkwardText(),
      outputDigest: awkwardText(),
      content,
      code: enumNumber(2),
      approvalRequestSeq: int64(),
      approvalDecisionSeq: int64(),
    })
    .map((init) => create(ToolResultSchema, init as Parameters<typeof create<typeof ToolResultSchema>>[1]));
}

/** A tool result with any content. */
export function toolResult(safe = false): fc.Arbitrary<ToolResult> {
  return toolResultOf(fc.array(part(safe), { maxLength: 2 }));
}

/** A message of any parts. */
export function message(safe = false): fc.Arbitrary<Message> {
  const role = fc.oneof(fc.constantFrom("system", "user", "assistant", "tool"), awkwardText());
  return fc.record({ role, parts: fc.array(part(safe), { maxLength: 3 }) }).map((init) => create(MessageSchema, init));
}

const toolChoice = () =>
  fc
    .record({ mode: enumNumber(3), name: awkwardText() })
    .map((init) => create(ToolChoiceSchema, init as Parameters<typeof create<typeof ToolChoiceSchema>>[1]));

function modelCall(safe: boolean): fc.Arbitrary<ModelCall> {
  return fc
    .record({
      model: awkwardText(),
      params: fc.dictionary(awkwardText(), awkwardText(), { maxKeys: 4 }),
      inputHash: awkwardText(),
      id: awkwardText(),
      messages: fc.array(message(safe), { maxLength: 2 }),
      tools: fc.array(toolDefinition(), { maxLength: 2 }),
      toolChoice: maybe(toolChoice()),
    })
    .map((init) => create(ModelCallSchema, init));
}

/** A model request as a harness asks for it. Its tool arguments hold safe integers. */
export function modelRequest(): fc.Arbitrary<ModelRequest> {
  return fc.record({
    model: awkwardText(),
    messages: fc.array(message(true), { maxLength: 3 }),
    params: maybe(fc.dictionary(awkwardText(), awkwardText(), { maxKeys: 4 })),
    tools: maybe(fc.array(toolDefinition(), { maxLength: 2 })),
    toolChoice: maybe(toolChoice()),
  });
}

const usage = () =>
  fc
    .record({ model: awkwardText(), inputTokens: int64(), outputTokens: int64(), reasoningTokens: int64() })
    .map((init) => create(UsageSchema, init));

const lifecycle = () =>
  fc
    .record({
      kind: enumNumber(6),
      detail: awkwardText(),
      snapshotLocal: awkwardText(),
      snapshotExternalUri: awkwardText(),
      snapshotMemory: fc.boolean(),
      snapshotSealed: fc.boolean(),
    })
    .map((init) => create(LifecycleSchema, init as Parameters<typeof create<typeof LifecycleSchema>>[1]));

const executionStart = () =>
  fc
    .record({
      config: bytes(),
      resumeFromSeq: int64(),
      inputCount: maybe(int64()),
      harness: awkwardText(),
      harnessVersion: awkwardText(),
    })
    .map((init) => create(ExecutionStartSchema, init));

const approvalRef = () =>
  fc
    .record({ executionId: awkwardText(), toolCallId: awkwardText(), requestSeq: int64() })
    .map((init) => create(ApprovalRefSchema, init));

function body(safe: boolean): fc.Arbitrary<Event["body"]> {
  const approval = fc.record({ toolCallId: awkwardText(), reason: awkwardText() });
  const decision = fc.record({ toolCallId: awkwardText(), approved: fc.boolean(), reason: awkwardText(), requestSeq: int64() });
  const end = fc.record({ state: awkwardText(), error: maybe(errorMessage()) });
  const arms: fc.Arbitrary<Event["body"]>[] = [
    fc.constant({ case: undefined }),
    message(safe).map((value) => ({ case: "message", value })),
    modelCall(safe).map((value) => ({ case: "model", value })),
    toolCall(safe).map((value) => ({ case: "tool", value })),
    toolResult(safe).map((value) => ({ case: "result", value })),
    approval.map((init) => ({ case: "approval", value: create(ApprovalRequestSchema, init) })),
    decision.map((init) => ({ case: "approvalResult", value: create(ApprovalResultSchema, init) })),
    usage().map((value) => ({ case: "usage", value })),
    lifecycle().map((value) => ({ case: "lifecycle", value })),
    end.map((init) => ({ case: "end", value: create(HarnessEndSchema, init) })),
    errorMessage().map((value) => ({ case: "error", value })),
    executionStart().map((value) => ({ case: "executionStart", value })),
  ];
  if (!safe) arms.push(approvalRef().map((value) => ({ case: "parked", value })));
  return fc.oneof(...arms);
}

/** An event of any kind with any body; kind and body need not go together, as on the wire. */
export function event(options: EventOptions = {}): fc.Arbitrary<Event> {
  const safe = options.scope === "recordable";
  const kind = enumNumber(safe ? EventKind.EVENT_EXECUTION_START : EventKind.EVENT_PARKED);
  return fc
    .record({
      executionId: awkwardText(),
      ts: maybe(timestamp()),
      schemaVersion: int32(),
      kind,
      body: body(safe),
      actor: maybe(identity()),
    })
    .map((init) => create(EventSchema, init as Parameters<typeof create<typeof EventSchema>>[1]));
}

/** A LogRecord whose hashes are whatever; for encoders, not for chains. */
export function logRecord(): fc.Arbitrary<LogRecord> {
  const natural = fc.oneof(fc.constantFrom(0n, 1n, 127n, 128n, 2n ** 32n, 2n ** 53n - 1n), fc.bigInt({ min: 0n, max: 2n ** 53n - 1n }));
  return fc
    .record({ seq: natural, prevHash: awkwardText(), contentHash: awkwardText(), fence: natural, event: event() })
    .map((init) => create(LogRecordSchema, init));
}
