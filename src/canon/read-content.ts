/** The part of the reader that reads content: messages and their parts, calls and results, and the Structs in them. */

import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ListValueSchema, StructSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import {
  DataPartSchema,
  FilePartSchema,
  Mediation,
  MessageSchema,
  ModelCallSchema,
  PartSchema,
  ReasoningPartSchema,
  TextPartSchema,
  ToolCallSchema,
  ToolChoiceSchema,
  ToolDefinitionSchema,
  ToolResult_Code,
  ToolResultSchema,
  type DataPart,
  type FilePart,
  type Message,
  type ModelCall,
  type Part,
  type ReasoningPart,
  type TextPart,
  type ToolCall,
  type ToolChoice,
  type ToolDefinition,
  type ToolResult,
} from "../gen/agentsessions/v1/common_pb.ts";
import { setOwn } from "./own-keys.ts";
import { fieldMask, strangeTag, WireFault, type WireReader } from "./wire-reader.ts";

const MESSAGE = fieldMask(MessageSchema);
const PART = fieldMask(PartSchema);
const TEXT = fieldMask(TextPartSchema);
const FILE = fieldMask(FilePartSchema);
const DATA = fieldMask(DataPartSchema);
const REASONING = fieldMask(ReasoningPartSchema);
const MODEL_CALL = fieldMask(ModelCallSchema);
const TOOL_CHOICE = fieldMask(ToolChoiceSchema);
const TOOL_DEFINITION = fieldMask(ToolDefinitionSchema);
const TOOL_CALL = fieldMask(ToolCallSchema);
const TOOL_RESULT = fieldMask(ToolResultSchema);
const STRUCT = fieldMask(StructSchema);
const LIST = fieldMask(ListValueSchema);
const VALUE = fieldMask(ValueSchema);
/** A map's entry has a key and a value. */
const ENTRY = 0b110;

export function newMessage(): Message {
  return { $typeName: "agentsessions.v1.Message", role: "", parts: [] };
}

export function readMessage(reader: WireReader, outer: number, message: Message): Message {
  const end = reader.enter(outer);
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag === 0x0a) message.role = reader.string(end);
    else if (tag === 0x12) message.parts.push(readPart(reader, end));
    else throw strangeTag(tag, MESSAGE);
  }
  reader.leave(end);
  return message;
}

function readPart(reader: WireReader, outer: number): Part {
  const end = reader.enter(outer);
  let arm: Part["part"] = { case: undefined };
  while (reader.at < end) arm = readArm(reader, end, reader.natural(), arm);
  reader.leave(end);
  return { $typeName: "agentsessions.v1.Part", part: arm };
}

function readArm(reader: WireReader, end: number, tag: number, arm: Part["part"]): Part["part"] {
  switch (tag) {
    case 0x0a:
      return { case: "text", value: readText(reader, end, arm.case === "text" ? arm.value : newText()) };
    case 0x12:
      return { case: "file", value: readFile(reader, end, arm.case === "file" ? arm.value : newFile()) };
    case 0x1a:
      return { case: "data", value: readData(reader, end, arm.case === "data" ? arm.value : { $typeName: "agentsessions.v1.DataPart" }) };
    case 0x22:
      return { case: "reasoning", value: readReasoning(reader, end, arm.case === "reasoning" ? arm.value : newReasoning()) };
    case 0x2a:
      return { case: "toolCall", value: readToolCall(reader, end, arm.case === "toolCall" ? arm.value : newToolCall()) };
    case 0x32:
      return { case: "toolResult", value: readToolResult(reader, end, arm.case === "toolResult" ? arm.value : newToolResult()) };
    default:
      throw strangeTag(tag, PART);
  }
}

function newText(): TextPart {
  return { $typeName: "agentsessions.v1.TextPart", text: "" };
}

function readText(reader: WireReader, outer: number, text: TextPart): TextPart {
  const end = reader.enter(outer);
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag !== 0x0a) throw strangeTag(tag, TEXT);
    text.text = reader.string(end);
  }
  reader.leave(end);
  return text;
}

function newFile(): FilePart {
  return { $typeName: "agentsessions.v1.FilePart", mime: "", source: { case: undefined }, name: "", digest: "" };
}

function readFile(reader: WireReader, outer: number, file: FilePart): FilePart {
  const end = reader.enter(outer);
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag === 0x0a) file.mime = reader.string(end);
    else if (tag === 0x12) file.source = { case: "bytes", value: reader.bytes(end) };
    else if (tag === 0x1a) file.source = { case: "uri", value: reader.string(end) };
    else if (tag === 0x22) file.name = reader.string(end);
    else if (tag === 0x2a) file.digest = reader.string(end);
    else throw strangeTag(tag, FILE);
  }
  reader.leave(end);
  return file;
}

function readData(reader: WireReader, outer: number, data: DataPart): DataPart {
  const end = reader.enter(outer);
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag !== 0x0a) throw strangeTag(tag, DATA);
    data.data = readStruct(reader, end, data.data);
  }
  reader.leave(end);
  return data;
}

function newReasoning(): ReasoningPart {
  return {
    $typeName: "agentsessions.v1.ReasoningPart",
    provider: "",
    modelId: "",
    opaque: { case: undefined },
    summary: [],
    itemId: "",
    ordinal: 0,
    validityScope: "",
    opaqueDigest: "",
  };
}

function readReasoning(reader: WireReader, outer: number, reasoning: ReasoningPart): ReasoningPart {
  const end = reader.enter(outer);
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag === 0x0a) reasoning.provider = reader.string(end);
    else if (tag === 0x12) reasoning.modelId = reader.string(end);
    else if (tag === 0x1a) reasoning.opaque = { case: "opaqueBytes", value: reader.bytes(end) };
    else if (tag === 0x22) reasoning.opaque = { case: "opaqueUri", value: reader.string(end) };
    else if (tag === 0x2a) reasoning.summary.push(readPart(reader, end));
    else if (tag === 0x32) reasoning.itemId = reader.string(end);
    else if (tag === 0x38) reasoning.ordinal = reader.int32();
    else if (tag === 0x42) reasoning.validityScope = reader.string(end);
    else if (tag === 0x4a) reasoning.opaqueDigest = reader.string(end);
    else throw strangeTag(tag, REASONING);
  }
  reader.leave(end);
  return reasoning;
}

export function newModelCall(): ModelCall {
  return { $typeName: "agentsessions.v1.ModelCall", model: "", params: {}, inputHash: "", id: "", messages: [], tools: [] };
}

export function readModelCall(reader: WireReader, outer: number, call: ModelCall): ModelCall {
  const end = reader.enter(outer);
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag === 0x0a) call.model = reader.string(end);
    else if (tag === 0x12) readParam(reader, end, call.params);
    else if (tag === 0x1a) call.inputHash = reader.string(end);
    else if (tag === 0x22) call.id = reader.string(end);
    else if (tag === 0x2a) call.messages.push(readMessage(reader, end, newMessage()));
    else if (tag === 0x32) call.tools.push(readToolDefinition(reader, end));
    else if (tag === 0x3a) call.toolChoice = readToolChoice(reader, end, call.toolChoice);
    else throw strangeTag(tag, MODEL_CALL);
  }
  reader.leave(end);
  return call;
}

function readParam(reader: WireReader, outer: number, params: Record<string, string>): void {
  const end = reader.fieldEnd(outer);
  let key = "";
  let value = "";
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag === 0x0a) key = reader.string(end);
    else if (tag === 0x12) value = reader.string(end);
    else throw strangeTag(tag, ENTRY);
  }
  reader.finish(end);
  setOwn(params, key, value);
}

function newToolChoice(): ToolChoice {
  return { $typeName: "agentsessions.v1.ToolChoice", mode: 0, name: "" };
}

function readToolChoice(reader: WireReader, outer: number, choice = newToolChoice()): ToolChoice {
  const end = reader.enter(outer);
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag === 0x08) choice.mode = reader.int32() as ToolChoice["mode"];
    else if (tag === 0x12) choice.name = reader.string(end);
    else throw strangeTag(tag, TOOL_CHOICE);
  }
  reader.leave(end);
  return choice;
}

function readToolDefinition(reader: WireReader, outer: number): ToolDefinition {
  const tool: ToolDefinition = { $typeName: "agentsessions.v1.ToolDefinition", name: "", description: "" };
  const end = reader.enter(outer);
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag === 0x0a) tool.name = reader.string(end);
    else if (tag === 0x12) tool.description = reader.string(end);
    else if (tag === 0x1a) tool.inputSchema = readStruct(reader, end, tool.inputSchema);
    else throw strangeTag(tag, TOOL_DEFINITION);
  }
  reader.leave(end);
  return tool;
}

export function newToolCall(): ToolCall {
  return { $typeName: "agentsessions.v1.ToolCall", id: "", tool: "", mediation: Mediation.UNSPECIFIED, idempotencyKey: "" };
}

export function readToolCall(reader: WireReader, outer: number, call: ToolCall): ToolCall {
  const end = reader.enter(outer);
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag === 0x0a) call.id = reader.string(end);
    else if (tag === 0x12) call.tool = reader.string(end);
    else if (tag === 0x1a) call.args = readStruct(reader, end, call.args);
    else if (tag === 0x20) call.mediation = reader.int32() as Mediation;
    else if (tag === 0x2a) call.idempotencyKey = reader.string(end);
    else throw strangeTag(tag, TOOL_CALL);
  }
  reader.leave(end);
  return call;
}

export function newToolResult(): ToolResult {
  return {
    $typeName: "agentsessions.v1.ToolResult",
    id: "",
    outputUri: "",
    isError: false,
    error: "",
    outputDigest: "",
    content: [],
    code: ToolResult_Code.CODE_UNSPECIFIED,
    approvalRequestSeq: 0n,
    approvalDecisionSeq: 0n,
  };
}

export function readToolResult(reader: WireReader, outer: number, result: ToolResult): ToolResult {
  const end = reader.enter(outer);
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag === 0x0a) result.id = reader.string(end);
    else if (tag === 0x12) result.output = readStruct(reader, end, result.output);
    else if (tag === 0x1a) result.outputUri = reader.string(end);
    else if (tag === 0x20) result.isError = reader.bool();
    else if (tag === 0x2a) result.error = reader.string(end);
    else if (tag === 0x32) result.outputDigest = reader.string(end);
    else if (tag === 0x3a) result.content.push(readPart(reader, end));
    else if (tag === 0x40) result.code = reader.int32() as ToolResult_Code;
    else if (tag === 0x48) result.approvalRequestSeq = reader.int64();
    else if (tag === 0x50) result.approvalDecisionSeq = reader.int64();
    else throw strangeTag(tag, TOOL_RESULT);
  }
  reader.leave(end);
  return result;
}

function readStruct(reader: WireReader, outer: number, object: JsonObject = {}): JsonObject {
  const end = reader.enter(outer);
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag !== 0x0a) throw strangeTag(tag, STRUCT);
    readEntry(reader, end, object);
  }
  reader.leave(end);
  return object;
}

function readEntry(reader: WireReader, outer: number, object: JsonObject): void {
  const end = reader.fieldEnd(outer);
  let key = "";
  let value: JsonValue | undefined;
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag === 0x0a) key = reader.string(end);
    else if (tag === 0x12) value = readValue(reader, end, value);
    else throw strangeTag(tag, ENTRY);
  }
  reader.finish(end);
  if (value === undefined) throw withoutKind();
  setOwn(object, key, value);
}

function readValue(reader: WireReader, outer: number, before?: JsonValue): JsonValue {
  const end = reader.enter(outer);
  let value = before;
  while (reader.at < end) value = readKind(reader, end, reader.natural(), value);
  reader.leave(end);
  if (value === undefined) throw withoutKind();
  return value;
}

function readKind(reader: WireReader, end: number, tag: number, before: JsonValue | undefined): JsonValue {
  switch (tag) {
    case 0x08:
      reader.int32();
      return null;
    case 0x11:
      return reader.double(end);
    case 0x1a:
      return reader.string(end);
    case 0x20:
      return reader.bool();
    case 0x2a:
      return readStruct(reader, end, isObject(before) ? before : {});
    case 0x32:
      return readList(reader, end, Array.isArray(before) ? before : []);
    default:
      throw strangeTag(tag, VALUE);
  }
}

function readList(reader: WireReader, outer: number, list: JsonValue[]): JsonValue[] {
  const end = reader.enter(outer);
  while (reader.at < end) {
    const tag = reader.natural();
    if (tag !== 0x0a) throw strangeTag(tag, LIST);
    list.push(readValue(reader, end));
  }
  reader.leave(end);
  return list;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function withoutKind(): WireFault {
  return new WireFault("holds a value without a kind");
}
