/**
 * The canonical text of an Event, written directly: RFC 8785 over the pinned proto3-JSON mapping, without a JSON value in
 * between.
 *
 * Invariants:
 * - Every message's keys stand here in sorted order, so nothing is sorted at run time but maps and Structs.
 * - Unpopulated fields are left out; a message field or a oneof that is set is written, empty or not.
 * - Property tests hold this equal to the slow path (protobuf-es JSON, then a third-party RFC 8785 library).
 */

import type { DescEnum, JsonObject } from "@bufbuild/protobuf";
import {
  EventKindSchema,
  Lifecycle_KindSchema,
  MediationSchema,
  ToolChoice_ModeSchema,
  ToolResult_CodeSchema,
  type ApprovalRef,
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
  type ToolChoice,
  type ToolDefinition,
  type ToolResult,
  type Usage,
} from "../gen/agentsessions/v1/common_pb.ts";
import { base64, numberText, objectText, sortedKeys, stringText, timestampText } from "./json-text.ts";

/** The text of each enum value by its number. A number without a name is written as it is. */
function enumTexts(schema: DescEnum): readonly string[] {
  const texts: string[] = [];
  for (const value of schema.values) texts[value.number] = `"${value.name}"`;
  return texts;
}

const EVENT_KIND = enumTexts(EventKindSchema);
const LIFECYCLE_KIND = enumTexts(Lifecycle_KindSchema);
const MEDIATION = enumTexts(MediationSchema);
const MODE = enumTexts(ToolChoice_ModeSchema);
const CODE = enumTexts(ToolResult_CodeSchema);

function enumText(texts: readonly string[], value: number): string {
  return texts[value] ?? numberText(value);
}

/** `members` and one more. `key` comes quoted, with its colon. */
function member(members: string, key: string, value: string): string {
  return members === "" ? key + value : `${members},${key}${value}`;
}

function stringMember(members: string, key: string, value: string): string {
  return value === "" ? members : member(members, key, stringText(value));
}

function int64Member(members: string, key: string, value: bigint): string {
  return value === 0n ? members : member(members, key, `"${value}"`);
}

function structMember(members: string, key: string, value: JsonObject | undefined): string {
  return value === undefined ? members : member(members, key, objectText(value));
}

/** The RFC 8785 text of the pinned JSON mapping of `event`. Throws INVALID_ARGUMENT for what has no JSON form. */
export function canonicalEvent(event: Event): string {
  const { body } = event;
  let text = "";
  if (event.actor !== undefined) text = member(text, '"actor":', identityText(event.actor));
  if (body.case === "approval") text = member(text, '"approval":', approvalText(body.value));
  if (body.case === "approvalResult") text = member(text, '"approval_result":', approvalResultText(body.value));
  if (body.case === "end") text = member(text, '"end":', endText(body.value));
  if (body.case === "error") text = member(text, '"error":', errorText(body.value));
  text = stringMember(text, '"execution_id":', event.executionId);
  if (body.case === "executionStart") text = member(text, '"execution_start":', executionStartText(body.value));
  if (event.kind !== 0) text = member(text, '"kind":', enumText(EVENT_KIND, event.kind));
  if (body.case === "lifecycle") text = member(text, '"lifecycle":', lifecycleText(body.value));
  if (body.case === "message") text = member(text, '"message":', messageText(body.value));
  if (body.case === "model") text = member(text, '"model":', modelCallText(body.value));
  if (body.case === "parked") text = member(text, '"parked":', approvalRefText(body.value));
  if (body.case === "result") text = member(text, '"result":', toolResultText(body.value));
  if (event.schemaVersion !== 0) text = member(text, '"schema_version":', numberText(event.schemaVersion));
  if (body.case === "tool") text = member(text, '"tool":', toolCallText(body.value));
  if (event.ts !== undefined) text = member(text, '"ts":', timestampText(event.ts.seconds, event.ts.nanos));
  if (body.case === "usage") text = member(text, '"usage":', usageText(body.value));
  return `{${text}}`;
}

function identityText(identity: IdentityRef): string {
  let text = stringMember("", '"issuer":', identity.issuer);
  text = stringMember(text, '"principal":', identity.principal);
  return `{${stringMember(text, '"subject":', identity.subject)}}`;
}

function messageText(message: Message): string {
  let text = message.parts.length === 0 ? "" : `"parts":${partsText(message.parts)}`;
  text = stringMember(text, '"role":', message.role);
  return `{${text}}`;
}

function partsText(parts: readonly Part[]): string {
  let text = "";
  for (const part of parts) text += text === "" ? partText(part) : `,${partText(part)}`;
  return `[${text}]`;
}

function partText(part: Part): string {
  const { part: arm } = part;
  switch (arm.case) {
    case "text":
      return `{"text":{${stringMember("", '"text":', arm.value.text)}}}`;
    case "file":
      return `{"file":${filePartText(arm.value)}}`;
    case "data":
      return `{"data":{${structMember("", '"data":', arm.value.data)}}}`;
    case "reasoning":
      return `{"reasoning":${reasoningPartText(arm.value)}}`;
    case "toolCall":
      return `{"tool_call":${toolCallText(arm.value)}}`;
    case "toolResult":
      return `{"tool_result":${toolResultText(arm.value)}}`;
    case undefined:
      return "{}";
  }
}

function filePartText(file: FilePart): string {
  const { source } = file;
  let text = source.case === "bytes" ? `"bytes":"${base64(source.value)}"` : "";
  text = stringMember(text, '"digest":', file.digest);
  text = stringMember(text, '"mime":', file.mime);
  text = stringMember(text, '"name":', file.name);
  if (source.case === "uri") text = member(text, '"uri":', stringText(source.value));
  return `{${text}}`;
}

function reasoningPartText(reasoning: ReasoningPart): string {
  const { opaque } = reasoning;
  let text = stringMember("", '"item_id":', reasoning.itemId);
  text = stringMember(text, '"model_id":', reasoning.modelId);
  if (opaque.case === "opaqueBytes") text = member(text, '"opaque_bytes":', `"${base64(opaque.value)}"`);
  text = stringMember(text, '"opaque_digest":', reasoning.opaqueDigest);
  if (opaque.case === "opaqueUri") text = member(text, '"opaque_uri":', stringText(opaque.value));
  if (reasoning.ordinal !== 0) text = member(text, '"ordinal":', numberText(reasoning.ordinal));
  text = stringMember(text, '"provider":', reasoning.provider);
  if (reasoning.summary.length > 0) text = member(text, '"summary":', partsText(reasoning.summary));
  return `{${stringMember(text, '"validity_scope":', reasoning.validityScope)}}`;
}

function modelCallText(call: ModelCall): string {
  let text = stringMember("", '"id":', call.id);
  text = stringMember(text, '"input_hash":', call.inputHash);
  if (call.messages.length > 0) text = member(text, '"messages":', `[${call.messages.map(messageText).join(",")}]`);
  text = stringMember(text, '"model":', call.model);
  const params = sortedKeys(call.params);
  if (params.length > 0) {
    const entries = params.map((key) => `${stringText(key)}:${stringText(call.params[key]!)}`);
    text = member(text, '"params":', `{${entries.join(",")}}`);
  }
  if (call.toolChoice !== undefined) text = member(text, '"tool_choice":', toolChoiceText(call.toolChoice));
  if (call.tools.length > 0) text = member(text, '"tools":', `[${call.tools.map(toolDefinitionText).join(",")}]`);
  return `{${text}}`;
}

function toolChoiceText(choice: ToolChoice): string {
  const text = choice.mode === 0 ? "" : `"mode":${enumText(MODE, choice.mode)}`;
  return `{${stringMember(text, '"name":', choice.name)}}`;
}

function toolDefinitionText(tool: ToolDefinition): string {
  let text = stringMember("", '"description":', tool.description);
  text = structMember(text, '"input_schema":', tool.inputSchema);
  return `{${stringMember(text, '"name":', tool.name)}}`;
}

function toolCallText(call: ToolCall): string {
  let text = structMember("", '"args":', call.args);
  text = stringMember(text, '"id":', call.id);
  text = stringMember(text, '"idempotency_key":', call.idempotencyKey);
  if (call.mediation !== 0) text = member(text, '"mediation":', enumText(MEDIATION, call.mediation));
  return `{${stringMember(text, '"tool":', call.tool)}}`;
}

function toolResultText(result: ToolResult): string {
  let text = int64Member("", '"approval_decision_seq":', result.approvalDecisionSeq);
  text = int64Member(text, '"approval_request_seq":', result.approvalRequestSeq);
  if (result.code !== 0) text = member(text, '"code":', enumText(CODE, result.code));
  if (result.content.length > 0) text = member(text, '"content":', partsText(result.content));
  text = stringMember(text, '"error":', result.error);
  text = stringMember(text, '"id":', result.id);
  if (result.isError) text = member(text, '"is_error":', "true");
  text = structMember(text, '"output":', result.output);
  text = stringMember(text, '"output_digest":', result.outputDigest);
  return `{${stringMember(text, '"output_uri":', result.outputUri)}}`;
}

function approvalText(request: ApprovalRequest): string {
  const text = stringMember("", '"reason":', request.reason);
  return `{${stringMember(text, '"tool_call_id":', request.toolCallId)}}`;
}

function approvalResultText(result: ApprovalResult): string {
  let text = result.approved ? '"approved":true' : "";
  text = stringMember(text, '"reason":', result.reason);
  text = int64Member(text, '"request_seq":', result.requestSeq);
  return `{${stringMember(text, '"tool_call_id":', result.toolCallId)}}`;
}

function approvalRefText(ref: ApprovalRef): string {
  let text = stringMember("", '"execution_id":', ref.executionId);
  text = int64Member(text, '"request_seq":', ref.requestSeq);
  return `{${stringMember(text, '"tool_call_id":', ref.toolCallId)}}`;
}

function usageText(usage: Usage): string {
  let text = int64Member("", '"input_tokens":', usage.inputTokens);
  text = stringMember(text, '"model":', usage.model);
  text = int64Member(text, '"output_tokens":', usage.outputTokens);
  return `{${int64Member(text, '"reasoning_tokens":', usage.reasoningTokens)}}`;
}

function errorText(error: EventError): string {
  const text = error.code === 0 ? "" : `"code":${numberText(error.code)}`;
  return `{${stringMember(text, '"description":', error.description)}}`;
}

function endText(end: HarnessEnd): string {
  const text = end.error === undefined ? "" : `"error":${errorText(end.error)}`;
  return `{${stringMember(text, '"state":', end.state)}}`;
}

function lifecycleText(lifecycle: Lifecycle): string {
  let text = stringMember("", '"detail":', lifecycle.detail);
  if (lifecycle.kind !== 0) text = member(text, '"kind":', enumText(LIFECYCLE_KIND, lifecycle.kind));
  text = stringMember(text, '"snapshot_external_uri":', lifecycle.snapshotExternalUri);
  text = stringMember(text, '"snapshot_local":', lifecycle.snapshotLocal);
  if (lifecycle.snapshotMemory) text = member(text, '"snapshot_memory":', "true");
  if (lifecycle.snapshotSealed) text = member(text, '"snapshot_sealed":', "true");
  return `{${text}}`;
}

function executionStartText(start: ExecutionStart): string {
  let text = start.config.length === 0 ? "" : `"config":"${base64(start.config)}"`;
  text = stringMember(text, '"harness":', start.harness);
  text = stringMember(text, '"harness_version":', start.harnessVersion);
  if (start.inputCount !== undefined) text = member(text, '"input_count":', `"${start.inputCount}"`);
  return `{${int64Member(text, '"resume_from_seq":', start.resumeFromSeq)}}`;
}
