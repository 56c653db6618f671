/**
 * Reads a LogRecord from its bytes: what it returns is what the library reads, for bytes in which nothing is hidden, and in a
 * fraction of the library's time once records of many kinds come one after the other.
 *
 * Invariants:
 * - Bytes that hold more than the message that is hashed are a fault: see `wire-reader.ts`. So is a Value without a kind, which
 *   has no JSON form and which the library takes for null.
 * - A message is read into the one that its field has already, as protobuf merges a field that occurs twice.
 */

import {
  ApprovalRefSchema,
  ApprovalRequestSchema,
  ApprovalResultSchema,
  ErrorSchema,
  EventKind,
  EventSchema,
  ExecutionStartSchema,
  HarnessEndSchema,
  IdentityRefSchema,
  LifecycleSchema,
  LogRecordSchema,
  UsageSchema,
  type ApprovalRef,
  type ApprovalRequest,
  type ApprovalResult,
  type Error as EventError,
  type Event,
  type ExecutionStart,
  type HarnessEnd,
  type IdentityRef,
  type Lifecycle,
  type LogRecord,
  type Usage,
} from "../gen/agentsessions/v1/common_pb.ts";
import { TimestampSchema, type Timestamp } from "@bufbuild/protobuf/wkt";
import {
  newMessage,
  newModelCall,
  newToolCall,
  newToolResult,
  readMessage,
  readModelCall,
  readToolCall,
  readToolResult,
} from "./read-content.ts";
import { fieldMask, strangeTag, WireFault, WireReader } from "./wire-reader.ts";

const RECORD = fieldMask(LogRecordSchema);
const EVENT = fieldMask(EventSchema);
const TIMESTAMP = fieldMask(TimestampSchema);
const IDENTITY = fieldMask(IdentityRefSchema);
const APPROVAL = fieldMask(ApprovalRequestSchema);
const APPROVAL_RESULT = fieldMask(ApprovalResultSchema);
const APPROVAL_REF = fieldMask(ApprovalRefSchema);
const USAGE = fieldMask(UsageSchema);
const LIFECYCLE = fieldMask(LifecycleSchema);
const END = fieldMask(HarnessEndSchema);
const ERROR = fieldMask(ErrorSchema);
const START = fieldMask(ExecutionStartSchema);

/** A record, or why its bytes hold none that can be vouched for: words for a report, with the record as their subject. */
export type RecordReading = { readonly kind: "read"; readonly record: LogRecord } | { readonly kind: "fault"; readonly reason: string };

/** Reads the LogRecord that `bytes` are. Bytes in it are views, not copies. */
export function readLogRecord(bytes: Uint8Array): RecordReading {
  try {
    return { kind: "read", record: readRecord(new WireReader(bytes), bytes.length) };
  } catch (error) {
    if (error instanceof WireFault) return { kind: "fault", reason: error.message };
    throw error;
  }
}

function readRecord(reader: WireReader, end: number): LogRecord {
  const record: LogRecord = { $typeName: "agentsessions.v1.LogRecord", seq: 0n, prevHash: "", contentHash: "", fence: 0n };
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag === 0x08) record.seq = reader.int64();
    else if (tag === 0x12) record.prevHash = reader.string(end);
    else if (tag === 0x1a) record.contentHash = reader.string(end);
    else if (tag === 0x20) record.fence = reader.int64();
    else if (tag === 0x2a) record.event = readEvent(reader, end, record.event);
    else throw strangeTag(tag, RECORD);
  }
  reader.finish(end);
  return record;
}

function newEvent(): Event {
  return {
    $typeName: "agentsessions.v1.Event",
    executionId: "",
    schemaVersion: 0,
    kind: EventKind.EVENT_KIND_UNSPECIFIED,
    body: { case: undefined },
  };
}

function readEvent(reader: WireReader, outer: number, event = newEvent()): Event {
  const end = reader.enter(outer);
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag === 0x12) event.executionId = reader.string(end);
    else if (tag === 0x1a) event.ts = readTimestamp(reader, end, event.ts);
    else if (tag === 0x20) event.schemaVersion = reader.int32();
    else if (tag === 0x38) event.kind = reader.int32() as EventKind;
    else if (tag === 0x92) event.actor = readIdentity(reader, end, event.actor);
    else event.body = readBody(reader, end, tag, event.body);
  }
  reader.leave(end);
  return event;
}

function readBody(reader: WireReader, end: number, tag: number, body: Event["body"]): Event["body"] {
  switch (tag) {
    case 0x42:
      return { case: "message", value: readMessage(reader, end, body.case === "message" ? body.value : newMessage()) };
    case 0x4a:
      return { case: "model", value: readModelCall(reader, end, body.case === "model" ? body.value : newModelCall()) };
    case 0x52:
      return { case: "tool", value: readToolCall(reader, end, body.case === "tool" ? body.value : newToolCall()) };
    case 0x5a:
      return { case: "result", value: readToolResult(reader, end, body.case === "result" ? body.value : newToolResult()) };
    case 0x62:
      return { case: "approval", value: readApproval(reader, end, body.case === "approval" ? body.value : undefined) };
    case 0x6a:
      return { case: "approvalResult", value: readApprovalResult(reader, end, body.case === "approvalResult" ? body.value : undefined) };
    case 0x72:
      return { case: "usage", value: readUsage(reader, end, body.case === "usage" ? body.value : undefined) };
    case 0x7a:
      return { case: "lifecycle", value: readLifecycle(reader, end, body.case === "lifecycle" ? body.value : undefined) };
    case 0x82:
      return { case: "end", value: readEnd(reader, end, body.case === "end" ? body.value : undefined) };
    case 0x8a:
      return { case: "error", value: readError(reader, end, body.case === "error" ? body.value : undefined) };
    case 0x9a:
      return { case: "executionStart", value: readStart(reader, end, body.case === "executionStart" ? body.value : undefined) };
    case 0xa2:
      return { case: "parked", value: readApprovalRef(reader, end, body.case === "parked" ? body.value : undefined) };
    default:
      throw strangeTag(tag, EVENT);
  }
}

function newTimestamp(): Timestamp {
  return { $typeName: "google.protobuf.Timestamp", seconds: 0n, nanos: 0 };
}

function readTimestamp(reader: WireReader, outer: number, ts = newTimestamp()): Timestamp {
  const end = reader.enter(outer);
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag === 0x08) ts.seconds = reader.int64();
    else if (tag === 0x10) ts.nanos = reader.int32();
    else throw strangeTag(tag, TIMESTAMP);
  }
  reader.leave(end);
  return ts;
}

function newIdentity(): IdentityRef {
  return { $typeName: "agentsessions.v1.IdentityRef", principal: "", issuer: "", subject: "" };
}

function readIdentity(reader: WireReader, outer: number, identity = newIdentity()): IdentityRef {
  const end = reader.enter(outer);
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag === 0x0a) identity.principal = reader.string(end);
    else if (tag === 0x12) identity.issuer = reader.string(end);
    else if (tag === 0x1a) identity.subject = reader.string(end);
    else throw strangeTag(tag, IDENTITY);
  }
  reader.leave(end);
  return identity;
}

function newApproval(): ApprovalRequest {
  return { $typeName: "agentsessions.v1.ApprovalRequest", toolCallId: "", reason: "" };
}

function readApproval(reader: WireReader, outer: number, request = newApproval()): ApprovalRequest {
  const end = reader.enter(outer);
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag === 0x0a) request.toolCallId = reader.string(end);
    else if (tag === 0x12) request.reason = reader.string(end);
    else throw strangeTag(tag, APPROVAL);
  }
  reader.leave(end);
  return request;
}

function newApprovalResult(): ApprovalResult {
  return { $typeName: "agentsessions.v1.ApprovalResult", toolCallId: "", approved: false, reason: "", requestSeq: 0n };
}

function readApprovalResult(reader: WireReader, outer: number, result = newApprovalResult()): ApprovalResult {
  const end = reader.enter(outer);
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag === 0x0a) result.toolCallId = reader.string(end);
    else if (tag === 0x10) result.approved = reader.bool();
    else if (tag === 0x1a) result.reason = reader.string(end);
    else if (tag === 0x20) result.requestSeq = reader.int64();
    else throw strangeTag(tag, APPROVAL_RESULT);
  }
  reader.leave(end);
  return result;
}

function newApprovalRef(): ApprovalRef {
  return { $typeName: "agentsessions.v1.ApprovalRef", executionId: "", toolCallId: "", requestSeq: 0n };
}

function readApprovalRef(reader: WireReader, outer: number, ref = newApprovalRef()): ApprovalRef {
  const end = reader.enter(outer);
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag === 0x0a) ref.executionId = reader.string(end);
    else if (tag === 0x12) ref.toolCallId = reader.string(end);
    else if (tag === 0x18) ref.requestSeq = reader.int64();
    else throw strangeTag(tag, APPROVAL_REF);
  }
  reader.leave(end);
  return ref;
}

function newUsage(): Usage {
  return { $typeName: "agentsessions.v1.Usage", model: "", inputTokens: 0n, outputTokens: 0n, reasoningTokens: 0n };
}

function readUsage(reader: WireReader, outer: number, usage = newUsage()): Usage {
  const end = reader.enter(outer);
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag === 0x0a) usage.model = reader.string(end);
    else if (tag === 0x10) usage.inputTokens = reader.int64();
    else if (tag === 0x18) usage.outputTokens = reader.int64();
    else if (tag === 0x20) usage.reasoningTokens = reader.int64();
    else throw strangeTag(tag, USAGE);
  }
  reader.leave(end);
  return usage;
}

function newLifecycle(): Lifecycle {
  return {
    $typeName: "agentsessions.v1.Lifecycle",
    kind: 0,
    detail: "",
    snapshotLocal: "",
    snapshotExternalUri: "",
    snapshotMemory: false,
    snapshotSealed: false,
  };
}

function readLifecycle(reader: WireReader, outer: number, lifecycle = newLifecycle()): Lifecycle {
  const end = reader.enter(outer);
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag === 0x08) lifecycle.kind = reader.int32() as Lifecycle["kind"];
    else if (tag === 0x12) lifecycle.detail = reader.string(end);
    else if (tag === 0x1a) lifecycle.snapshotLocal = reader.string(end);
    else if (tag === 0x22) lifecycle.snapshotExternalUri = reader.string(end);
    else if (tag === 0x28) lifecycle.snapshotMemory = reader.bool();
    else if (tag === 0x30) lifecycle.snapshotSealed = reader.bool();
    else throw strangeTag(tag, LIFECYCLE);
  }
  reader.leave(end);
  return lifecycle;
}

function newEnd(): HarnessEnd {
  return { $typeName: "agentsessions.v1.HarnessEnd", state: "" };
}

function readEnd(reader: WireReader, outer: number, harnessEnd = newEnd()): HarnessEnd {
  const end = reader.enter(outer);
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag === 0x0a) harnessEnd.state = reader.string(end);
    else if (tag === 0x12) harnessEnd.error = readError(reader, end, harnessEnd.error);
    else throw strangeTag(tag, END);
  }
  reader.leave(end);
  return harnessEnd;
}

function newError(): EventError {
  return { $typeName: "agentsessions.v1.Error", code: 0, description: "" };
}

function readError(reader: WireReader, outer: number, error = newError()): EventError {
  const end = reader.enter(outer);
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag === 0x08) error.code = reader.int32();
    else if (tag === 0x12) error.description = reader.string(end);
    else throw strangeTag(tag, ERROR);
  }
  reader.leave(end);
  return error;
}

function newStart(): ExecutionStart {
  return {
    $typeName: "agentsessions.v1.ExecutionStart",
    config: new Uint8Array(0),
    resumeFromSeq: 0n,
    harness: "",
    harnessVersion: "",
  };
}

function readStart(reader: WireReader, outer: number, start = newStart()): ExecutionStart {
  const end = reader.enter(outer);
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag === 0x0a) start.config = reader.bytes(end);
    else if (tag === 0x10) start.resumeFromSeq = reader.int64();
    else if (tag === 0x18) start.inputCount = reader.int64();
    else if (tag === 0x22) start.harness = reader.string(end);
    else if (tag === 0x2a) start.harnessVersion = reader.string(end);
    else throw strangeTag(tag, START);
  }
  reader.leave(end);
  return start;
}
