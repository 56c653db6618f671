/**
 * What happens to an event before it is recorded. The contract's reference converts events into its own form and back, and
 * some of what the wire can say is lost on that way. An event is brought to the form that survives, so that every implementation
 * computes one hash; what has no JSON form at all is refused.
 *
 * Invariants:
 * - The result shares nothing with the argument: whatever a harness does to its objects later, the record stays.
 * - Normalising twice changes nothing more.
 * - A refusal is INVALID_ARGUMENT and names the field path in the contract's names; it never holds a value.
 * - Fields that the contract does not have (`$unknown`) are left out: no hash would cover them.
 */

import {
  EventKind,
  EventKindSchema,
  Lifecycle_Kind,
  Lifecycle_KindSchema,
  Mediation,
  MediationSchema,
  ToolResult_Code,
  ToolResult_CodeSchema,
  type ApprovalRequest,
  type ApprovalResult,
  type Error as EventError,
  type Event,
  type ExecutionStart,
  type FilePart,
  type HarnessEnd,
  type IdentityRef,
  type Lifecycle,
  type Message,
  type ModelCall,
  type Part,
  type ReasoningPart,
  type ToolCall,
  type ToolResult,
  type Usage,
} from "../gen/agentsessions/v1/common_pb.ts";
import { boolOf, bytesOf, enumOf, int32Of, int64Of, isList, structOf, textMapOf, textOf, timestampOf } from "./checked-leaves.ts";
import type { Surrogates } from "./checked-leaves.ts";
import { EVENT_DEPTH, Path } from "./path.ts";

const EVENT_KIND_MAX = EventKindSchema.values.length - 1;
const LIFECYCLE_KIND_MAX = Lifecycle_KindSchema.values.length - 1;
const MEDIATION_MAX = MediationSchema.values.length - 1;
const CODE_MAX = ToolResult_CodeSchema.values.length - 1;

/**
 * `event` as it is recorded. Left out: an actor without a field set, a DataPart without data (its part stays, without an arm),
 * `bytes`, `uri`, `opaque_bytes` and `opaque_uri` that are set but empty, the zero time of year 1, and of a ModelCall what is
 * for the wire only (messages, tools, tool_choice). An enum value that the contract does not have becomes the unspecified one.
 *
 * Throws INVALID_ARGUMENT, with the field path, for what has no JSON form: NaN and infinities, a lone surrogate, a timestamp
 * out of range, what is no JSON value or no value of its field's type; for an integer in tool arguments beyond ±(2^53−1); for
 * more than 100 messages inside one another; and for EVENT_PARKED, which is never journaled.
 */
export function normaliseEvent(event: Event): Event {
  const at = Path.root("", EVENT_DEPTH);
  const kind = enumOf<EventKind>(event.kind, EventKind.EVENT_KIND_UNSPECIFIED, EVENT_KIND_MAX, at, "kind");
  if (kind === EventKind.EVENT_PARKED) throw at.refusal("kind", "must not be EVENT_PARKED, which is never journaled");
  const copy: Event = {
    $typeName: "agentsessions.v1.Event",
    executionId: textOf(event.executionId, at, "execution_id", "refuse"),
    schemaVersion: int32Of(event.schemaVersion, at, "schema_version"),
    kind,
    body: bodyOf(event.body, at),
  };
  const ts = event.ts === undefined ? undefined : timestampOf(event.ts, at, "ts");
  if (ts !== undefined) copy.ts = ts;
  const actor = event.actor === undefined ? undefined : identityOf(event.actor, at.child("actor"));
  if (actor !== undefined) copy.actor = actor;
  return copy;
}

/** A message as it is recorded; `field` is what a refusal calls it (`inputs[2]`). Otherwise like `normaliseEvent`. */
export function normaliseMessage(message: Message, field = "message"): Message {
  return messageOf(message, Path.root(field, EVENT_DEPTH + 1), "refuse");
}

/** A tool call as it is recorded. Otherwise like `normaliseEvent`. */
export function normaliseToolCall(call: ToolCall, field = "tool"): ToolCall {
  return toolCallOf(call, Path.root(field, EVENT_DEPTH + 1), "refuse");
}

/** A tool result as it is recorded. Otherwise like `normaliseEvent`. */
export function normaliseToolResult(result: ToolResult, field = "result"): ToolResult {
  return toolResultOf(result, Path.root(field, EVENT_DEPTH + 1), "refuse");
}

/**
 * A message that a provider sent, as it is recorded: like `normaliseMessage`, with lone surrogates replaced by U+FFFD, in keys
 * too (of two keys that become one, the later counts). The rest of `normaliseMessage`'s refusals stay.
 */
export function wellFormedMessage(message: Message, field = "message"): Message {
  return messageOf(message, Path.root(field, EVENT_DEPTH + 1), "replace");
}

/** A result that a tool sent, as it is recorded: like `wellFormedMessage`. */
export function wellFormedToolResult(result: ToolResult, field = "result"): ToolResult {
  return toolResultOf(result, Path.root(field, EVENT_DEPTH + 1), "replace");
}

function bodyOf(body: Event["body"], at: Path): Event["body"] {
  switch (body.case) {
    case "message":
      return { case: "message", value: messageOf(body.value, at.child("message"), "refuse") };
    case "model":
      return { case: "model", value: modelCallOf(body.value, at.child("model")) };
    case "tool":
      return { case: "tool", value: toolCallOf(body.value, at.child("tool"), "refuse") };
    case "result":
      return { case: "result", value: toolResultOf(body.value, at.child("result"), "refuse") };
    case "approval":
      return { case: "approval", value: approvalOf(body.value, at.child("approval")) };
    case "approvalResult":
      return { case: "approvalResult", value: approvalResultOf(body.value, at.child("approval_result")) };
    case "usage":
      return { case: "usage", value: usageOf(body.value, at.child("usage")) };
    case "lifecycle":
      return { case: "lifecycle", value: lifecycleOf(body.value, at.child("lifecycle")) };
    case "end":
      return { case: "end", value: endOf(body.value, at.child("end")) };
    case "error":
      return { case: "error", value: errorOf(body.value, at.child("error")) };
    case "executionStart":
      return { case: "executionStart", value: executionStartOf(body.value, at.child("execution_start")) };
    case "parked":
      throw at.refusal("parked", "must not be set: a park is never journaled");
    case undefined:
      return { case: undefined };
  }
}

function identityOf(identity: IdentityRef, at: Path): IdentityRef | undefined {
  const { principal, issuer, subject } = identity;
  if (principal === "" && issuer === "" && subject === "") return undefined;
  return {
    $typeName: "agentsessions.v1.IdentityRef",
    principal: textOf(principal, at, "principal", "refuse"),
    issuer: textOf(issuer, at, "issuer", "refuse"),
    subject: textOf(subject, at, "subject", "refuse"),
  };
}

function messageOf(message: Message, at: Path, surrogates: Surrogates): Message {
  return {
    $typeName: "agentsessions.v1.Message",
    role: textOf(message.role, at, "role", surrogates),
    parts: partsOf(message.parts, at, "parts", surrogates),
  };
}

function partsOf(parts: readonly Part[], at: Path, name: string, surrogates: Surrogates): Part[] {
  if (!isList(parts)) throw at.refusal(name, "must be a list");
  return parts.map((part, index) => ({
    $typeName: "agentsessions.v1.Part",
    part: armOf(part.part, at.child(name, index), surrogates),
  }));
}

function armOf(arm: Part["part"], at: Path, surrogates: Surrogates): Part["part"] {
  switch (arm.case) {
    case "text": {
      const text = textOf(arm.value.text, at.child("text"), "text", surrogates);
      return { case: "text", value: { $typeName: "agentsessions.v1.TextPart", text } };
    }
    case "file":
      return { case: "file", value: filePartOf(arm.value, at.child("file"), surrogates) };
    case "data": {
      if (arm.value.data === undefined) return { case: undefined };
      const data = structOf(arm.value.data, at.child("data"), "data", surrogates, "any");
      return { case: "data", value: { $typeName: "agentsessions.v1.DataPart", data } };
    }
    case "reasoning":
      return { case: "reasoning", value: reasoningPartOf(arm.value, at.child("reasoning"), surrogates) };
    case "toolCall":
      return { case: "toolCall", value: toolCallOf(arm.value, at.child("tool_call"), surrogates) };
    case "toolResult":
      return { case: "toolResult", value: toolResultOf(arm.value, at.child("tool_result"), surrogates) };
    case undefined:
      return { case: undefined };
  }
}

function filePartOf(file: FilePart, at: Path, surrogates: Surrogates): FilePart {
  return {
    $typeName: "agentsessions.v1.FilePart",
    mime: textOf(file.mime, at, "mime", surrogates),
    source: sourceOf(file.source, at, surrogates),
    name: textOf(file.name, at, "name", surrogates),
    digest: textOf(file.digest, at, "digest", surrogates),
  };
}

function sourceOf(source: FilePart["source"], at: Path, surrogates: Surrogates): FilePart["source"] {
  if (source.case === undefined || source.value.length === 0) return { case: undefined };
  if (source.case === "uri") return { case: "uri", value: textOf(source.value, at, "uri", surrogates) };
  return { case: "bytes", value: bytesOf(source.value, at, "bytes") };
}

function reasoningPartOf(reasoning: ReasoningPart, at: Path, surrogates: Surrogates): ReasoningPart {
  return {
    $typeName: "agentsessions.v1.ReasoningPart",
    provider: textOf(reasoning.provider, at, "provider", surrogates),
    modelId: textOf(reasoning.modelId, at, "model_id", surrogates),
    opaque: opaqueOf(reasoning.opaque, at, surrogates),
    summary: partsOf(reasoning.summary, at, "summary", surrogates),
    itemId: textOf(reasoning.itemId, at, "item_id", surrogates),
    ordinal: int32Of(reasoning.ordinal, at, "ordinal"),
    validityScope: textOf(reasoning.validityScope, at, "validity_scope", surrogates),
    opaqueDigest: textOf(reasoning.opaqueDigest, at, "opaque_digest", surrogates),
  };
}

function opaqueOf(opaque: ReasoningPart["opaque"], at: Path, surrogates: Surrogates): ReasoningPart["opaque"] {
  if (opaque.case === undefined || opaque.value.length === 0) return { case: undefined };
  if (opaque.case === "opaqueUri") return { case: "opaqueUri", value: textOf(opaque.value, at, "opaque_uri", surrogates) };
  return { case: "opaqueBytes", value: bytesOf(opaque.value, at, "opaque_bytes") };
}

function modelCallOf(call: ModelCall, at: Path): ModelCall {
  return {
    $typeName: "agentsessions.v1.ModelCall",
    model: textOf(call.model, at, "model", "refuse"),
    params: textMapOf(call.params, at.child("params"), "refuse"),
    inputHash: textOf(call.inputHash, at, "input_hash", "refuse"),
    id: textOf(call.id, at, "id", "refuse"),
    messages: [],
    tools: [],
  };
}

function toolCallOf(call: ToolCall, at: Path, surrogates: Surrogates): ToolCall {
  const copy: ToolCall = {
    $typeName: "agentsessions.v1.ToolCall",
    id: textOf(call.id, at, "id", surrogates),
    tool: textOf(call.tool, at, "tool", surrogates),
    mediation: enumOf<Mediation>(call.mediation, Mediation.UNSPECIFIED, MEDIATION_MAX, at, "mediation"),
    idempotencyKey: textOf(call.idempotencyKey, at, "idempotency_key", surrogates),
  };
  if (call.args !== undefined) copy.args = structOf(call.args, at, "args", surrogates, "safe");
  return copy;
}

function toolResultOf(result: ToolResult, at: Path, surrogates: Surrogates): ToolResult {
  const copy: ToolResult = {
    $typeName: "agentsessions.v1.ToolResult",
    id: textOf(result.id, at, "id", surrogates),
    outputUri: textOf(result.outputUri, at, "output_uri", surrogates),
    isError: boolOf(result.isError, at, "is_error"),
    error: textOf(result.error, at, "error", surrogates),
    outputDigest: textOf(result.outputDigest, at, "output_digest", surrogates),
    content: partsOf(result.content, at, "content", surrogates),
    code: enumOf<ToolResult_Code>(result.code, ToolResult_Code.CODE_UNSPECIFIED, CODE_MAX, at, "code"),
    approvalRequestSeq: int64Of(result.approvalRequestSeq, at, "approval_request_seq"),
    approvalDecisionSeq: int64Of(result.approvalDecisionSeq, at, "approval_decision_seq"),
  };
  if (result.output !== undefined) copy.output = structOf(result.output, at, "output", surrogates, "any");
  return copy;
}

function approvalOf(request: ApprovalRequest, at: Path): ApprovalRequest {
  return {
    $typeName: "agentsessions.v1.ApprovalRequest",
    toolCallId: textOf(request.toolCallId, at, "tool_call_id", "refuse"),
    reason: textOf(request.reason, at, "reason", "refuse"),
  };
}

function approvalResultOf(result: ApprovalResult, at: Path): ApprovalResult {
  return {
    $typeName: "agentsessions.v1.ApprovalResult",
    toolCallId: textOf(result.toolCallId, at, "tool_call_id", "refuse"),
    approved: boolOf(result.approved, at, "approved"),
    reason: textOf(result.reason, at, "reason", "refuse"),
    requestSeq: int64Of(result.requestSeq, at, "request_seq"),
  };
}

function usageOf(usage: Usage, at: Path): Usage {
  return {
    $typeName: "agentsessions.v1.Usage",
    model: textOf(usage.model, at, "model", "refuse"),
    inputTokens: int64Of(usage.inputTokens, at, "input_tokens"),
    outputTokens: int64Of(usage.outputTokens, at, "output_tokens"),
    reasoningTokens: int64Of(usage.reasoningTokens, at, "reasoning_tokens"),
  };
}

function lifecycleOf(lifecycle: Lifecycle, at: Path): Lifecycle {
  return {
    $typeName: "agentsessions.v1.Lifecycle",
    kind: enumOf<Lifecycle_Kind>(lifecycle.kind, Lifecycle_Kind.LIFECYCLE_UNSPECIFIED, LIFECYCLE_KIND_MAX, at, "kind"),
    detail: textOf(lifecycle.detail, at, "detail", "refuse"),
    snapshotLocal: textOf(lifecycle.snapshotLocal, at, "snapshot_local", "refuse"),
    snapshotExternalUri: textOf(lifecycle.snapshotExternalUri, at, "snapshot_external_uri", "refuse"),
    snapshotMemory: boolOf(lifecycle.snapshotMemory, at, "snapshot_memory"),
    snapshotSealed: boolOf(lifecycle.snapshotSealed, at, "snapshot_sealed"),
  };
}

function endOf(end: HarnessEnd, at: Path): HarnessEnd {
  const copy: HarnessEnd = { $typeName: "agentsessions.v1.HarnessEnd", state: textOf(end.state, at, "state", "refuse") };
  if (end.error !== undefined) copy.error = errorOf(end.error, at.child("error"));
  return copy;
}

function errorOf(error: EventError, at: Path): EventError {
  return {
    $typeName: "agentsessions.v1.Error",
    code: int32Of(error.code, at, "code"),
    description: textOf(error.description, at, "description", "refuse"),
  };
}

function executionStartOf(start: ExecutionStart, at: Path): ExecutionStart {
  const copy: ExecutionStart = {
    $typeName: "agentsessions.v1.ExecutionStart",
    config: bytesOf(start.config, at, "config"),
    resumeFromSeq: int64Of(start.resumeFromSeq, at, "resume_from_seq"),
    harness: textOf(start.harness, at, "harness", "refuse"),
    harnessVersion: textOf(start.harnessVersion, at, "harness_version", "refuse"),
  };
  if (start.inputCount !== undefined) copy.inputCount = int64Of(start.inputCount, at, "input_count");
  return copy;
}
