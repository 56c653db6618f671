/**
 * Random events for property tests: every message of the contract, every oneof arm, set-but-empty fields, awkward values.
 *
 * Everything made here has a canonical form. What has none is the business of the tests that refuse it.
 */

import { create } from "@bufbuild/protobuf";
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
import { awkwardText, bytes, int32, int64, jsonObject, timestamp } from "./awkward-values.ts";

/** What the generated events may hold. */
export interface EventOptions {
  /**
   * `any`: whatever the wire can say. `recordable`: only what `normaliseEvent` accepts (no park, tool arguments with integers
   * that doubles hold one by one); it may still change it. Default `any`.
   */
  readonly scope?: "any" | "recordable" | undefined;
}

/** Any number of an open enum: known ones most of the time. */
function enumNumber(knownMax: number): fc.Arbitrary<number> {
  return fc.oneof({ weight: 8, arbitrary: fc.nat(knownMax) }, { weight: 1, arbitrary: fc.constantFrom(-1, 99, 2 ** 31 - 1) });
}

const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined });

const identity = () =>
  fc.record({ principal: awkwardText(), issuer: awkwardText(), subject: awkwardText() }).map((init) => create(IdentityRefSchema, init));

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
  fc.record({ executionId: awkwardText(), toolCallId: awkwardText(), requestSeq: int64() }).map((init) => create(ApprovalRefSchema, init));

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
