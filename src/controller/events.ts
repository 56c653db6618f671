/**
 * The events that the host writes. Harness-made content is taken as it is; `execution_id`, `ts`, `actor` and `schema_version`
 * are always the host's.
 */

import { create } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { ExecutionId, Seq, SessionUid } from "../base/ids.ts";
import type { Clock } from "../base/ports.ts";
import { normaliseEvent } from "../canon/index.ts";
import {
  EventKind,
  Lifecycle_Kind,
  UsageSchema,
  type ApprovalRequest,
  type ApprovalResult,
  type Error as EventError,
  type Event,
  type ExecutionStart,
  type HarnessEnd,
  type IdentityRef,
  type Lifecycle,
  type ModelCall,
} from "../gen/agentsessions/v1/common_pb.ts";
import type { EndState, NewEvent, RecordedSnapshot } from "../journal/index.ts";
import { baselineDetail, textMessage, type Message, type ModelRequest, type ToolCall, type ToolResult, type Usage } from "../spi/index.ts";
import type { CancelReason, ExecInvocation } from "./contract.ts";

/** The version of event bodies that this host writes. */
export const SCHEMA_VERSION = 1;

/** Stamps the events of one execution. */
export interface EventStamp {
  readonly executionId: ExecutionId | "";
  readonly clock: Clock;
}

type EventBody = Event["body"];

/** Bodies come with their fields and no more: normalising makes the message that is recorded. */
function stamped(stamp: EventStamp, kind: EventKind, body: EventBody, actor: IdentityRef | undefined): NewEvent {
  const ts = timestampOf(stamp.clock.nowMs());
  const fields = { executionId: stamp.executionId, ts, schemaVersion: SCHEMA_VERSION, kind, body };
  const event: Event = { $typeName: "agentsessions.v1.Event", ...fields };
  if (actor !== undefined) event.actor = actor;
  return { event: normaliseEvent(event) };
}

/** The same of a body that is normalised already, and nobody else's: it is taken as it is. */
function stampedOwn(stamp: EventStamp, kind: EventKind, body: EventBody, actor: IdentityRef | undefined): NewEvent {
  const made = stamped(stamp, kind, { case: undefined }, actor);
  made.event.body = body;
  return made;
}

function timestampOf(timeMs: number): Timestamp {
  const seconds = Math.floor(timeMs / 1_000);
  return { $typeName: "google.protobuf.Timestamp", seconds: BigInt(seconds), nanos: (timeMs - seconds * 1_000) * 1_000_000 };
}

/** The longest description of an error that is recorded, in UTF-16 code units. */
const DESCRIPTION_CHARS_MAX = 4_096;

/** A description as it is recorded: a harness's words may be of any length, and ill-formed. */
export function recordable(description: string): string {
  return description.slice(0, DESCRIPTION_CHARS_MAX).toWellFormed();
}

function errorOf(code: number, description: string): EventError {
  return { $typeName: "agentsessions.v1.Error", code, description: recordable(description) };
}

const NO_LIFECYCLE: Lifecycle = {
  $typeName: "agentsessions.v1.Lifecycle",
  kind: Lifecycle_Kind.LIFECYCLE_UNSPECIFIED,
  detail: "",
  snapshotLocal: "",
  snapshotExternalUri: "",
  snapshotMemory: false,
  snapshotSealed: false,
};

function lifecycleOf(kind: Lifecycle_Kind, fields: Partial<Lifecycle> = {}): Lifecycle {
  return { ...NO_LIFECYCLE, ...fields, kind };
}

/** EXECUTION_START: everything that recovery needs to build the same Start again. */
export function executionStartEvent(
  stamp: EventStamp,
  start: { readonly invocation: ExecInvocation; readonly harness: string; readonly harnessVersion: string },
  actor: IdentityRef | undefined,
): NewEvent {
  const value: ExecutionStart = {
    $typeName: "agentsessions.v1.ExecutionStart",
    config: start.invocation.config,
    resumeFromSeq: start.invocation.resumeFromSeq,
    inputCount: BigInt(start.invocation.inputs.length),
    harness: start.harness,
    harnessVersion: start.harnessVersion,
  };
  return stamped(stamp, EventKind.EVENT_EXECUTION_START, { case: "executionStart", value }, actor);
}

/** INPUT: one message of the caller. */
export function inputEvent(stamp: EventStamp, message: Message, caller: IdentityRef | undefined): NewEvent {
  return stamped(stamp, EventKind.EVENT_INPUT, { case: "message", value: message }, caller);
}

/** MODEL_CALL: the intent. The messages and tools themselves are never recorded; their hash is. */
export function modelCallEvent(
  stamp: EventStamp,
  call: { readonly request: ModelRequest; readonly inputHash: string; readonly id: string },
  actor: IdentityRef | undefined,
): NewEvent {
  const { request, inputHash, id } = call;
  const { model, params = {} } = request;
  const value: ModelCall = {
    $typeName: "agentsessions.v1.ModelCall",
    model,
    params: { ...params },
    inputHash,
    id,
    messages: [],
    tools: [],
  };
  return stamped(stamp, EventKind.EVENT_MODEL_CALL, { case: "model", value }, actor);
}

/** OUTPUT: a completion, or text that the harness produced. The message is normalised, and becomes the event's. */
export function outputEvent(stamp: EventStamp, message: Message, actor: IdentityRef | undefined): NewEvent {
  return stampedOwn(stamp, EventKind.EVENT_OUTPUT, { case: "message", value: message }, actor);
}

/** OUTPUT of plain text. */
export function textOutputEvent(stamp: EventStamp, text: string, actor: IdentityRef | undefined): NewEvent {
  return outputEvent(stamp, textMessage("assistant", text), actor);
}

/** USAGE: accounting, as given. A harness in plain JavaScript may leave fields out. */
export function usageEvent(stamp: EventStamp, usage: Usage, actor: IdentityRef | undefined): NewEvent {
  return stamped(stamp, EventKind.EVENT_USAGE, { case: "usage", value: create(UsageSchema, usage) }, actor);
}

/** TOOL_CALL: the intent, with everything that is needed to drive it again. The call is normalised, and becomes the event's. */
export function toolCallEvent(stamp: EventStamp, call: ToolCall, actor: IdentityRef | undefined): NewEvent {
  return stampedOwn(stamp, EventKind.EVENT_TOOL_CALL, { case: "tool", value: call }, actor);
}

/** APPROVAL_REQUEST: a call waits for a decision. */
export function approvalRequestEvent(stamp: EventStamp, call: ToolCall, actor: IdentityRef | undefined, why?: string): NewEvent {
  const reason = why ?? `${call.tool} requires approval`;
  const value: ApprovalRequest = { $typeName: "agentsessions.v1.ApprovalRequest", toolCallId: call.id, reason };
  return stamped(stamp, EventKind.EVENT_APPROVAL_REQUEST, { case: "approval", value }, actor);
}

/** APPROVAL_RESULT: a decision. */
export function approvalResultEvent(
  stamp: EventStamp,
  decision: { readonly toolCallId: string; readonly requestSeq: Seq; readonly approved: boolean; readonly reason: string },
  actor: IdentityRef | undefined,
): NewEvent {
  const { toolCallId, approved, reason } = decision;
  const requestSeq = BigInt(decision.requestSeq);
  const value: ApprovalResult = { $typeName: "agentsessions.v1.ApprovalResult", toolCallId, approved, reason, requestSeq };
  return stamped(stamp, EventKind.EVENT_APPROVAL_RESULT, { case: "approvalResult", value }, actor);
}

/** TOOL_RESULT: what a tool answered. */
export function toolResultEvent(stamp: EventStamp, result: ToolResult, actor: IdentityRef | undefined): NewEvent {
  return stamped(stamp, EventKind.EVENT_TOOL_RESULT, { case: "result", value: result }, actor);
}

/** TOOL_RESULT of a result that is normalised, and becomes the event's. */
export function ownResultEvent(stamp: EventStamp, result: ToolResult, actor: IdentityRef | undefined): NewEvent {
  return stampedOwn(stamp, EventKind.EVENT_TOOL_RESULT, { case: "result", value: result }, actor);
}

/** ERROR: audit. It ends nothing. */
export function errorEvent(stamp: EventStamp, grpcCode: number, description: string, actor: IdentityRef | undefined): NewEvent {
  return stamped(stamp, EventKind.EVENT_ERROR, { case: "error", value: errorOf(grpcCode, description) }, actor);
}

/** END: the one event that ends a turn. */
export function endEvent(
  stamp: EventStamp,
  state: EndState,
  error: { readonly grpcCode: number; readonly description: string } | undefined,
  actor: IdentityRef | undefined,
): NewEvent {
  const value: HarnessEnd = { $typeName: "agentsessions.v1.HarnessEnd", state };
  if (error !== undefined) value.error = errorOf(error.grpcCode, error.description);
  return stamped(stamp, EventKind.EVENT_END, { case: "end", value }, actor);
}

/** LIFECYCLE CANCEL: why a turn was cancelled. */
export function cancelEvent(stamp: EventStamp, reason: CancelReason, actor: IdentityRef | undefined): NewEvent {
  const value = lifecycleOf(Lifecycle_Kind.LIFECYCLE_CANCEL, { detail: reason });
  return stamped(stamp, EventKind.EVENT_LIFECYCLE, { case: "lifecycle", value }, actor);
}

/** LIFECYCLE BASELINE: what a model is sent from here on begins anew; the account of how is the harness's own. */
export function baselineEvent(stamp: EventStamp, account: string, actor: IdentityRef | undefined): NewEvent {
  const value = lifecycleOf(Lifecycle_Kind.LIFECYCLE_BASELINE, { detail: baselineDetail(account) });
  return stamped(stamp, EventKind.EVENT_LIFECYCLE, { case: "lifecycle", value }, actor);
}

/** LIFECYCLE SUSPEND: compute was freed; the snapshot is what restore needs. */
export function suspendEvent(clock: Clock, snapshot: RecordedSnapshot, actor: IdentityRef | undefined): NewEvent {
  const value = lifecycleOf(Lifecycle_Kind.LIFECYCLE_SUSPEND, {
    snapshotLocal: snapshot.local,
    snapshotExternalUri: snapshot.externalUri,
    snapshotMemory: snapshot.memory,
    snapshotSealed: snapshot.sealed,
  });
  return stamped({ executionId: "", clock }, EventKind.EVENT_LIFECYCLE, { case: "lifecycle", value }, actor);
}

/** LIFECYCLE RESUME: compute is back. */
export function resumeEvent(clock: Clock, actor: IdentityRef | undefined): NewEvent {
  const value = lifecycleOf(Lifecycle_Kind.LIFECYCLE_RESUME);
  return stamped({ executionId: "", clock }, EventKind.EVENT_LIFECYCLE, { case: "lifecycle", value }, actor);
}

/** LIFECYCLE FORK: a child's first own record. Its link to the parent's record is its `prev_hash`; `detail` says it in words. */
export function forkEvent(clock: Clock, parent: SessionUid, atSeq: Seq): NewEvent {
  const value = lifecycleOf(Lifecycle_Kind.LIFECYCLE_FORK, { detail: `${parent}@${atSeq}` });
  return stamped({ executionId: "", clock }, EventKind.EVENT_LIFECYCLE, { case: "lifecycle", value }, undefined);
}

/** LIFECYCLE DELETE: the durable intent to delete. It belongs to no execution. */
export function deleteEvent(clock: Clock, actor: IdentityRef | undefined): NewEvent {
  const value = lifecycleOf(Lifecycle_Kind.LIFECYCLE_DELETE);
  return stamped({ executionId: "", clock }, EventKind.EVENT_LIFECYCLE, { case: "lifecycle", value }, actor);
}
