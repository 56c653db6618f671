/**
 * The model input hash (I0): the SHA-256 of a model request's JSON text as the contract's SPI writes it. On replay a harness
 * must ask what it asked before, so this text decides whether a journal can be replayed, here and by every other
 * implementation.
 *
 * Invariants:
 * - Fields come in the SPI's order under the SPI's names. An absent list, map or pointer is `null`; those that the SPI marks as
 *   omitted when empty are left out.
 * - What the wire cannot tell apart is written one way: a message without parts has `[]`, empty params, an empty summary and
 *   empty bytes are `null`, an enum value that the contract does not have is the unspecified one.
 */

import { isDeeplyFrozen } from "../base/frozen.ts";
import type { Digest } from "../base/ports.ts";
import {
  Mediation,
  ToolChoice_Mode,
  ToolResult_CodeSchema,
  type FilePart,
  type Message,
  type Part,
  type ReasoningPart,
  type ToolCall,
  type ToolChoice,
  type ToolDefinition,
  type ToolResult,
} from "../gen/agentsessions/v1/common_pb.ts";
import { int32Of, int64Of } from "./checked-leaves.ts";
import { goMap, goString, goStringMap } from "./go-json.ts";
import { base64 } from "./json-text.ts";
import { EVENT_DEPTH, Path } from "./path.ts";

/** What is hashed of a model request; the SPI's ModelRequest is one. */
export interface HashedRequest {
  readonly model: string;
  readonly messages: readonly Message[];
  readonly params?: Readonly<Record<string, string>> | undefined;
  readonly tools?: readonly ToolDefinition[] | undefined;
  readonly toolChoice?: ToolChoice | undefined;
}

/** The SPI's words for enum values; a value without a word is `""`. */
const MEDIATION_WORDS: Readonly<Record<number, string>> = {
  [Mediation.IN_HARNESS_REPORTED]: "IN_HARNESS_REPORTED",
  [Mediation.CONTROLLER_MEDIATED]: "CONTROLLER_MEDIATED",
  [Mediation.REQUIRES_APPROVAL]: "REQUIRES_APPROVAL",
};
const MODE_WORDS: Readonly<Record<number, string>> = {
  [ToolChoice_Mode.AUTO]: "AUTO",
  [ToolChoice_Mode.NONE]: "NONE",
  [ToolChoice_Mode.REQUIRED]: "REQUIRED",
};

/** The lowercase hex SHA-256 of `inputHashJson(request)`. */
export function inputHash(request: HashedRequest, digest: Digest): string {
  return digest.sha256Hex(inputHashJson(request));
}

/**
 * The text that the input hash covers. Throws INVALID_ARGUMENT, with the field path, for what Go's JSON cannot hold (NaN,
 * infinities, lone surrogates) and for integers in tool arguments beyond ±(2^53−1).
 */
export function inputHashJson(request: HashedRequest): string {
  const head = headJson(request.model);
  if (request.messages.length === 0) return `${head}null${tailJson(request)}`;
  let text = head;
  for (let index = 0; index < request.messages.length; index++) text += messageAtJson(request.messages[index]!, index);
  return `${text}]${tailJson(request)}`;
}

// The messages then stand as deep as recorded ones do, so that whatever could be recorded can be asked about.
const ROOT = Path.root("", EVENT_DEPTH);

/** What the text begins with, up to the list of messages. */
export function headJson(model: string): string {
  return `{"Model":${goString(model, ROOT, "model")},"Messages":`;
}

/** The message of a request at an index, with what stands before it in the list. */
export function messageAtJson(message: Message, index: number): string {
  return `${index === 0 ? "[" : ","}${messageJson(message, ROOT.child("messages", index))}`;
}

/** What the text ends with, behind the list of messages. */
export function tailJson({ params, tools, toolChoice }: HashedRequest): string {
  const at = ROOT;
  let text = `,"Params":${goStringMap(params, at, "params")}`;
  if (tools !== undefined && tools.length > 0) {
    text += `,"Tools":[${tools.map((tool, index) => toolDefinitionJson(tool, at.child("tools", index))).join(",")}]`;
  }
  if (toolChoice !== undefined) text += `,"ToolChoice":${toolChoiceJson(toolChoice, at.child("tool_choice"))}`;
  return `${text}}`;
}

function messageJson(message: Message, at: Path): string {
  return `{"Role":${goString(message.role, at, "role")},"Parts":${partsJson(message.parts, at, "parts")}}`;
}

function partsJson(parts: readonly Part[], at: Path, name: string): string {
  return `[${parts.map((part, index) => partJson(part, at.child(name, index))).join(",")}]`;
}

function partJson({ part }: Part, at: Path): string {
  const { case: arm } = part;
  const text = arm === "text" ? `{"Text":${goString(part.value.text, at, "text.text")}}` : "null";
  const file = arm === "file" ? filePartJson(part.value, at.child("file")) : "null";
  const data = arm === "data" ? goMap(part.value.data, at.child("data"), "data") : "null";
  const reasoning = arm === "reasoning" ? reasoningPartJson(part.value, at.child("reasoning")) : "null";
  // These two came into the SPI later and are left out when absent, so that older requests keep their hash.
  const call = arm === "toolCall" ? `,"ToolCall":${toolCallJson(part.value, at.child("tool_call"))}` : "";
  const result = arm === "toolResult" ? `,"ToolResult":${toolResultJson(part.value, at.child("tool_result"))}` : "";
  return `{"Text":${text},"File":${file},"Data":${data},"Reasoning":${reasoning}${call}${result}}`;
}

function bytesJson(bytes: Uint8Array | undefined): string {
  return bytes === undefined || bytes.length === 0 ? "null" : `"${base64(bytes)}"`;
}

function filePartJson(file: FilePart, at: Path): string {
  const { source } = file;
  const uri = source.case === "uri" ? source.value : "";
  return (
    `{"MIME":${goString(file.mime, at, "mime")},"Bytes":${bytesJson(source.case === "bytes" ? source.value : undefined)}` +
    `,"URI":${goString(uri, at, "uri")},"Digest":${goString(file.digest, at, "digest")},"Name":${goString(file.name, at, "name")}}`
  );
}

function reasoningPartJson(reasoning: ReasoningPart, at: Path): string {
  const { opaque, summary } = reasoning;
  const uri = opaque.case === "opaqueUri" ? opaque.value : "";
  return (
    `{"Provider":${goString(reasoning.provider, at, "provider")},"ModelID":${goString(reasoning.modelId, at, "model_id")}` +
    `,"Opaque":${bytesJson(opaque.case === "opaqueBytes" ? opaque.value : undefined)}` +
    `,"OpaqueURI":${goString(uri, at, "opaque_uri")},"OpaqueDigest":${goString(reasoning.opaqueDigest, at, "opaque_digest")}` +
    `,"Summary":${summary.length === 0 ? "null" : partsJson(summary, at, "summary")}` +
    `,"ItemID":${goString(reasoning.itemId, at, "item_id")},"Ordinal":${int32Of(reasoning.ordinal, at, "ordinal")}` +
    `,"ValidityScope":${goString(reasoning.validityScope, at, "validity_scope")}}`
  );
}

function toolCallJson(call: ToolCall, at: Path): string {
  return (
    `{"ID":${goString(call.id, at, "id")},"Tool":${goString(call.tool, at, "tool")},"Args":${goMap(call.args, at, "args", true)}` +
    `,"Mediation":"${MEDIATION_WORDS[call.mediation] ?? ""}"` +
    `,"IdempotencyKey":${goString(call.idempotencyKey, at, "idempotency_key")}}`
  );
}

function toolResultJson(result: ToolResult, at: Path): string {
  const { content, code } = result;
  const requestSeq = int64Of(result.approvalRequestSeq, at, "approval_request_seq");
  const decisionSeq = int64Of(result.approvalDecisionSeq, at, "approval_decision_seq");
  let text =
    `{"ID":${goString(result.id, at, "id")},"Output":${goMap(result.output, at, "output")}` +
    `,"OutputURI":${goString(result.outputUri, at, "output_uri")},"OutputDigest":${goString(result.outputDigest, at, "output_digest")}` +
    `,"IsError":${result.isError},"Error":${goString(result.error, at, "error")}`;
  if (content.length > 0) text += `,"Content":${partsJson(content, at, "content")}`;
  if (code !== 0 && ToolResult_CodeSchema.value[code] !== undefined) text += `,"Code":${code}`;
  if (requestSeq !== 0n) text += `,"ApprovalRequestSeq":${requestSeq}`;
  if (decisionSeq !== 0n) text += `,"ApprovalDecisionSeq":${decisionSeq}`;
  return `${text}}`;
}

/** The texts of definitions that cannot change: a turn offers the same ones with every request. */
const DEFINITIONS = new WeakMap<ToolDefinition, string>();

function toolDefinitionJson(tool: ToolDefinition, at: Path): string {
  const known = DEFINITIONS.get(tool);
  if (known !== undefined) return known;
  const text = freshDefinitionJson(tool, at);
  if (isDeeplyFrozen(tool)) DEFINITIONS.set(tool, text);
  return text;
}

function freshDefinitionJson(tool: ToolDefinition, at: Path): string {
  return (
    `{"Name":${goString(tool.name, at, "name")},"Description":${goString(tool.description, at, "description")}` +
    `,"InputSchema":${goMap(tool.inputSchema, at, "input_schema")}}`
  );
}

function toolChoiceJson(choice: ToolChoice, at: Path): string {
  return `{"Mode":"${MODE_WORDS[choice.mode] ?? ""}","Name":${goString(choice.name, at, "name")}}`;
}
