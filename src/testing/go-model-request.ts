/**
 * A slow model of how Go's encoding/json prints a model request, written apart from the writer that tests hold equal to it:
 * values of Go types are built first and printed afterwards, strings character by character, numbers from their digits, maps
 * sorted by their real UTF-8 bytes.
 */

import type { JsonValue } from "@bufbuild/protobuf";
import type { Message, Part, ToolCall, ToolResult } from "../gen/agentsessions/v1/common_pb.ts";
import type { ModelRequest } from "../spi/model.ts";

class GoFloat {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}
class GoMap {
  readonly entries: readonly (readonly [string, GoValue])[];
  constructor(entries: readonly (readonly [string, GoValue])[]) {
    this.entries = entries.toSorted(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  }
}
/** A struct is its fields in order; one with `undefined` is omitted. */
type GoStruct = readonly (readonly [string, GoValue | undefined])[];
class GoStructValue {
  readonly fields: GoStruct;
  constructor(fields: GoStruct) {
    this.fields = fields;
  }
}
type GoValue = null | boolean | bigint | string | GoFloat | GoMap | GoStructValue | readonly GoValue[];

function printGo(value: GoValue): string {
  if (value === null) return "null";
  if (typeof value === "boolean" || typeof value === "bigint") return String(value);
  if (typeof value === "string") return printGoString(value);
  if (value instanceof GoFloat) return printGoFloat(value.value);
  if (value instanceof GoMap) return `{${value.entries.map(([key, held]) => `${printGoString(key)}:${printGo(held)}`).join(",")}}`;
  if (value instanceof GoStructValue) {
    const present = value.fields.filter((field): field is readonly [string, GoValue] => field[1] !== undefined);
    return `{${present.map(([name, held]) => `"${name}":${printGo(held)}`).join(",")}}`;
  }
  return `[${value.map(printGo).join(",")}]`;
}

function printGoString(text: string): string {
  const short: Readonly<Record<number, string>> = {
    0x22: '\\"',
    0x5c: "\\\\",
    0x0a: "\\n",
    0x0d: "\\r",
    0x09: "\\t",
    0x08: "\\b",
    0x0c: "\\f",
  };
  let out = '"';
  for (const char of text) {
    const code = char.codePointAt(0)!;
    const escaped = code < 0x20 || [0x3c, 0x3e, 0x26, 0x2028, 0x2029].includes(code);
    out += short[code] ?? (escaped ? `\\u${code.toString(16).padStart(4, "0")}` : char);
  }
  return `${out}"`;
}

function printGoFloat(value: number): string {
  if (Object.is(value, -0)) return "-0";
  if (value === 0) return "0";
  const [mantissa = "", exponentText = ""] = Math.abs(value).toExponential().split("e");
  const digits = mantissa.replace(".", "");
  const exponent = Number(exponentText);
  const sign = value < 0 ? "-" : "";
  if (exponent < -6 || exponent >= 21) {
    const fraction = digits.length > 1 ? `.${digits.slice(1)}` : "";
    return `${sign}${digits[0]}${fraction}e${exponent < 0 ? "-" : "+"}${Math.abs(exponent)}`;
  }
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  const rest = digits.slice(exponent + 1);
  return `${sign}${whole}${rest === "" ? "" : `.${rest}`}`;
}

const go = (...fields: GoStruct): GoStructValue => new GoStructValue(fields);
const orNull = <T>(value: T | undefined, make: (value: T) => GoValue): GoValue => (value === undefined ? null : make(value));
const goBytes = (bytes: Uint8Array): GoValue => (bytes.length === 0 ? null : Buffer.from(bytes).toString("base64"));
const goStruct = (object: object): GoMap => new GoMap(Object.entries(object as Record<string, JsonValue>).map(([k, v]) => [k, goAny(v)]));

function goAny(value: JsonValue): GoValue {
  if (typeof value === "number") return new GoFloat(value);
  if (Array.isArray(value)) return value.map(goAny);
  return typeof value === "object" && value !== null ? goStruct(value) : value;
}

/** The JSON text of a model request as Go's encoder prints the SPI's struct. */
export function goRequestJson(request: ModelRequest): string {
  return printGo(goRequest(request));
}

function goRequest(request: ModelRequest): GoValue {
  const params = Object.entries(request.params ?? {});
  const { tools = [], toolChoice } = request;
  return go(
    ["Model", request.model],
    ["Messages", request.messages.length === 0 ? null : request.messages.map(goMessage)],
    ["Params", params.length === 0 ? null : new GoMap(params)],
    [
      "Tools",
      tools.length === 0
        ? undefined
        : tools.map((tool) =>
            go(["Name", tool.name], ["Description", tool.description], ["InputSchema", orNull(tool.inputSchema, goStruct)]),
          ),
    ],
    [
      "ToolChoice",
      toolChoice === undefined
        ? undefined
        : go(["Mode", ["", "AUTO", "NONE", "REQUIRED"][toolChoice.mode] ?? ""], ["Name", toolChoice.name]),
    ],
  );
}

const goMessage = (message: Message): GoValue => go(["Role", message.role], ["Parts", message.parts.map(goPart)]);

function goPart({ part }: Part): GoValue {
  return go(
    ["Text", part.case === "text" ? go(["Text", part.value.text]) : null],
    ["File", part.case === "file" ? goFile(part.value) : null],
    ["Data", part.case === "data" ? orNull(part.value.data, goStruct) : null],
    ["Reasoning", part.case === "reasoning" ? goReasoning(part.value) : null],
    ["ToolCall", part.case === "toolCall" ? goCall(part.value) : undefined],
    ["ToolResult", part.case === "toolResult" ? goResult(part.value) : undefined],
  );
}

function goFile(file: Extract<Part["part"], { case: "file" }>["value"]): GoValue {
  const { source } = file;
  return go(
    ["MIME", file.mime],
    ["Bytes", source.case === "bytes" ? goBytes(source.value) : null],
    ["URI", source.case === "uri" ? source.value : ""],
    ["Digest", file.digest],
    ["Name", file.name],
  );
}

function goReasoning(reasoning: Extract<Part["part"], { case: "reasoning" }>["value"]): GoValue {
  const { opaque } = reasoning;
  return go(
    ["Provider", reasoning.provider],
    ["ModelID", reasoning.modelId],
    ["Opaque", opaque.case === "opaqueBytes" ? goBytes(opaque.value) : null],
    ["OpaqueURI", opaque.case === "opaqueUri" ? opaque.value : ""],
    ["OpaqueDigest", reasoning.opaqueDigest],
    ["Summary", reasoning.summary.length === 0 ? null : reasoning.summary.map(goPart)],
    ["ItemID", reasoning.itemId],
    ["Ordinal", BigInt(reasoning.ordinal)],
    ["ValidityScope", reasoning.validityScope],
  );
}

function goCall(call: ToolCall): GoValue {
  return go(
    ["ID", call.id],
    ["Tool", call.tool],
    ["Args", orNull(call.args, goStruct)],
    ["Mediation", ["", "IN_HARNESS_REPORTED", "CONTROLLER_MEDIATED", "REQUIRES_APPROVAL"][call.mediation] ?? ""],
    ["IdempotencyKey", call.idempotencyKey],
  );
}

function goResult(result: ToolResult): GoValue {
  return go(
    ["ID", result.id],
    ["Output", orNull(result.output, goStruct)],
    ["OutputURI", result.outputUri],
    ["OutputDigest", result.outputDigest],
    ["IsError", result.isError],
    ["Error", result.error],
    ["Content", result.content.length === 0 ? undefined : result.content.map(goPart)],
    ["Code", [1, 2].includes(result.code) ? BigInt(result.code) : undefined],
    ["ApprovalRequestSeq", result.approvalRequestSeq === 0n ? undefined : result.approvalRequestSeq],
    ["ApprovalDecisionSeq", result.approvalDecisionSeq === 0n ? undefined : result.approvalDecisionSeq],
  );
}
