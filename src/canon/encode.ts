/**
 * The protobuf encoding of Event and LogRecord: the bytes that stores keep and the wire carries.
 *
 * Invariants:
 * - The bytes are the ones that protobuf-es writes for the same message; property tests hold both equal. The order of map
 *   entries is the order of the object's keys.
 * - Fields that the contract does not have (`$unknown`) are not written: the hash does not cover them.
 */

import type { Fence, Seq } from "../base/ids.ts";
import type {
  ApprovalRef,
  ApprovalRequest,
  ApprovalResult,
  Error as EventError,
  Event,
  ExecutionStart,
  FilePart,
  HarnessEnd,
  IdentityRef,
  Lifecycle,
  Message,
  ModelCall,
  Part,
  ReasoningPart,
  ToolCall,
  ToolChoice,
  ToolDefinition,
  ToolResult,
  Usage,
} from "../gen/agentsessions/v1/common_pb.ts";
import { bool, encoded, int32, int64, LENGTH, message, messages, string, struct, VARINT, writer } from "./fields.ts";

/** What a LogRecord is made of. */
export interface RecordFields {
  readonly seq: Seq;
  readonly prevHash: string;
  readonly contentHash: string;
  readonly fence: Fence;
  readonly event: Event;
}

/** The bytes of a LogRecord. The caller owns them. */
export function encodeLogRecord(record: RecordFields): Uint8Array {
  writer.begin();
  message(5, record.event, writeEvent);
  if (record.fence !== 0) writer.natural((4 << 3) | VARINT, record.fence);
  string(3, record.contentHash);
  string(2, record.prevHash);
  if (record.seq !== 0) writer.natural((1 << 3) | VARINT, record.seq);
  return writer.finish();
}

/** The bytes of an Event. The caller owns them. */
export function encodeEvent(event: Event): Uint8Array {
  return encoded(event, writeEvent);
}

/** The bytes of a Message. The caller owns them. */
export function encodeMessage(value: Message): Uint8Array {
  return encoded(value, writeMessage);
}

function writeEvent(event: Event): void {
  const { body } = event;
  if (body.case === "parked") message(20, body.value, writeApprovalRef);
  if (body.case === "executionStart") message(19, body.value, writeExecutionStart);
  if (event.actor !== undefined) message(18, event.actor, writeIdentity);
  writeBody(body);
  int32(7, event.kind);
  int32(4, event.schemaVersion);
  if (event.ts !== undefined) message(3, event.ts, writeTimestamp);
  string(2, event.executionId);
}

/** The arms whose numbers lie between `kind` and `actor`. */
function writeBody(body: Event["body"]): void {
  switch (body.case) {
    case "message":
      return message(8, body.value, writeMessage);
    case "model":
      return message(9, body.value, writeModelCall);
    case "tool":
      return message(10, body.value, writeToolCall);
    case "result":
      return message(11, body.value, writeToolResult);
    case "approval":
      return message(12, body.value, writeApprovalRequest);
    case "approvalResult":
      return message(13, body.value, writeApprovalResult);
    case "usage":
      return message(14, body.value, writeUsage);
    case "lifecycle":
      return message(15, body.value, writeLifecycle);
    case "end":
      return message(16, body.value, writeEnd);
    case "error":
      return message(17, body.value, writeError);
    case "executionStart":
    case "parked":
    case undefined:
      return undefined;
  }
}

function writeTimestamp(ts: { readonly seconds: bigint; readonly nanos: number }): void {
  int32(2, ts.nanos);
  int64(1, ts.seconds);
}

function writeIdentity(identity: IdentityRef): void {
  string(3, identity.subject);
  string(2, identity.issuer);
  string(1, identity.principal);
}

export function writeMessage(value: Message): void {
  messages(2, value.parts, writePart);
  string(1, value.role);
}

function writePart({ part }: Part): void {
  switch (part.case) {
    case "text":
      return message(1, part.value, (text) => string(1, text.text));
    case "file":
      return message(2, part.value, writeFilePart);
    case "data":
      return message(3, part.value, (data) => struct(1, data.data));
    case "reasoning":
      return message(4, part.value, writeReasoningPart);
    case "toolCall":
      return message(5, part.value, writeToolCall);
    case "toolResult":
      return message(6, part.value, writeToolResult);
    case undefined:
      return undefined;
  }
}

function writeFilePart(file: FilePart): void {
  const { source } = file;
  string(5, file.digest);
  string(4, file.name);
  if (source.case === "uri") writer.string((3 << 3) | LENGTH, source.value);
  if (source.case === "bytes") writer.bytes((2 << 3) | LENGTH, source.value);
  string(1, file.mime);
}

function writeReasoningPart(reasoning: ReasoningPart): void {
  const { opaque } = reasoning;
  string(9, reasoning.opaqueDigest);
  string(8, reasoning.validityScope);
  int32(7, reasoning.ordinal);
  string(6, reasoning.itemId);
  messages(5, reasoning.summary, writePart);
  if (opaque.case === "opaqueUri") writer.string((4 << 3) | LENGTH, opaque.value);
  if (opaque.case === "opaqueBytes") writer.bytes((3 << 3) | LENGTH, opaque.value);
  string(2, reasoning.modelId);
  string(1, reasoning.provider);
}

function writeModelCall(call: ModelCall): void {
  if (call.toolChoice !== undefined) message(7, call.toolChoice, writeToolChoice);
  messages(6, call.tools, writeToolDefinition);
  messages(5, call.messages, writeMessage);
  string(4, call.id);
  string(3, call.inputHash);
  const keys = Object.keys(call.params);
  for (let index = keys.length - 1; index >= 0; index--) message(2, [keys[index]!, call.params[keys[index]!]!], writeParam);
  string(1, call.model);
}

function writeParam([key, value]: readonly [string, string]): void {
  writer.string((2 << 3) | LENGTH, value);
  writer.string((1 << 3) | LENGTH, key);
}

export function writeToolChoice(choice: ToolChoice): void {
  string(2, choice.name);
  int32(1, choice.mode);
}

export function writeToolDefinition(tool: ToolDefinition): void {
  struct(3, tool.inputSchema);
  string(2, tool.description);
  string(1, tool.name);
}

function writeToolCall(call: ToolCall): void {
  string(5, call.idempotencyKey);
  int32(4, call.mediation);
  struct(3, call.args);
  string(2, call.tool);
  string(1, call.id);
}

function writeToolResult(result: ToolResult): void {
  int64(10, result.approvalDecisionSeq);
  int64(9, result.approvalRequestSeq);
  int32(8, result.code);
  messages(7, result.content, writePart);
  string(6, result.outputDigest);
  string(5, result.error);
  bool(4, result.isError);
  string(3, result.outputUri);
  struct(2, result.output);
  string(1, result.id);
}

function writeApprovalRequest(request: ApprovalRequest): void {
  string(2, request.reason);
  string(1, request.toolCallId);
}

function writeApprovalResult(result: ApprovalResult): void {
  int64(4, result.requestSeq);
  string(3, result.reason);
  bool(2, result.approved);
  string(1, result.toolCallId);
}

function writeApprovalRef(ref: ApprovalRef): void {
  int64(3, ref.requestSeq);
  string(2, ref.toolCallId);
  string(1, ref.executionId);
}

function writeUsage(usage: Usage): void {
  int64(4, usage.reasoningTokens);
  int64(3, usage.outputTokens);
  int64(2, usage.inputTokens);
  string(1, usage.model);
}

function writeLifecycle(lifecycle: Lifecycle): void {
  bool(6, lifecycle.snapshotSealed);
  bool(5, lifecycle.snapshotMemory);
  string(4, lifecycle.snapshotExternalUri);
  string(3, lifecycle.snapshotLocal);
  string(2, lifecycle.detail);
  int32(1, lifecycle.kind);
}

function writeEnd(end: HarnessEnd): void {
  if (end.error !== undefined) message(2, end.error, writeError);
  string(1, end.state);
}

function writeError(error: EventError): void {
  string(2, error.description);
  int32(1, error.code);
}

function writeExecutionStart(start: ExecutionStart): void {
  string(5, start.harnessVersion);
  string(4, start.harness);
  if (start.inputCount !== undefined) writer.int64((3 << 3) | VARINT, start.inputCount);
  int64(2, start.resumeFromSeq);
  if (start.config.length > 0) writer.bytes((1 << 3) | LENGTH, start.config);
}
