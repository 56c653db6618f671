/**
 * A model request as lines that a person compares: model, params, tools, then each message as its role and its parts. Pure.
 *
 * Whatever the request's hash covers is in these lines, large bytes by their digest; keys stand in order, so that two requests with one
 * hash have the same lines.
 */

import type { DescEnum, JsonValue } from "@bufbuild/protobuf";
import type { Digest } from "../base/ports.ts";
import {
  MediationSchema,
  ToolChoice_ModeSchema,
  type Message,
  type ModelCall,
  type Part,
  type ToolCall,
  type ToolDefinition,
  type ToolResult,
} from "../gen/agentsessions/v1/common_pb.ts";
import { plain } from "./plain.ts";

const INDENT = "  ";

/** The lines of a request. */
export function requestLines(call: ModelCall, digest: Digest): readonly string[] {
  const lines = [`model ${call.model}`];
  for (const [key, value] of Object.entries(call.params).toSorted(byKey)) lines.push(`param ${key} = ${value}`);
  if (call.toolChoice !== undefined) {
    const { mode, name } = call.toolChoice;
    lines.push(`tool choice ${words(wordOf(ToolChoice_ModeSchema, mode, "MODE_"), name)}`);
  }
  for (const tool of call.tools) lines.push(...toolLines(tool));
  for (const message of call.messages) lines.push(...messageLines(message, digest));
  return lines.flatMap((line) => plain(line).split("\n"));
}

function byKey([left]: readonly [string, unknown], [right]: readonly [string, unknown]): number {
  return left < right ? -1 : 1;
}

function words(...parts: readonly (string | undefined)[]): string {
  return parts.filter((part) => part !== undefined && part !== "").join(" ");
}

/** The name of an enum's value without the prefix that all of them have; nothing for the unset one. */
function wordOf(desc: DescEnum, value: number, prefix: string): string {
  return value === 0 ? "" : (desc.value[value]?.name.replace(prefix, "") ?? `${value}`);
}

function toolLines({ name, description, inputSchema }: ToolDefinition): readonly string[] {
  const lines = [`tool ${name}`];
  if (description !== "") lines.push(...indented(description));
  if (inputSchema !== undefined) lines.push(...jsonLines("input schema", inputSchema));
  return lines;
}

function messageLines(message: Message, digest: Digest): readonly string[] {
  return [`${message.role}:`, ...message.parts.flatMap((part) => partLines(part, digest)).map((line) => `${INDENT}${line}`)];
}

function partLines({ part }: Part, digest: Digest): readonly string[] {
  switch (part.case) {
    case "text":
      return part.value.text.split("\n");
    case "file": {
      const { mime, name, source, digest: recorded } = part.value;
      return [`[file ${words(mime, name, source.case === "uri" ? source.value : undefined, recorded)}]`, ...opaque(source, digest)];
    }
    case "data":
      return part.value.data === undefined ? ["[data]"] : jsonLines("[data]", part.value.data);
    case "reasoning": {
      const { provider, modelId, opaque: content, opaqueDigest, itemId, ordinal, validityScope, summary } = part.value;
      const uri = content.case === "opaqueUri" ? content.value : undefined;
      return [
        `[reasoning ${words(provider, modelId, itemId, ordinal === 0 ? undefined : `${ordinal}`, validityScope, uri, opaqueDigest)}]`,
        ...opaque(content, digest),
        ...summary.flatMap((inner) => partLines(inner, digest)).map((line) => `${INDENT}${line}`),
      ];
    }
    case "toolCall":
      return callLines(part.value);
    case "toolResult":
      return resultLines(part.value, digest);
    case undefined:
      return ["[empty]"];
  }
}

function opaque(source: { readonly value?: unknown }, digest: Digest): readonly string[] {
  if (!(source.value instanceof Uint8Array)) return [];
  return [`${INDENT}${source.value.length} bytes, sha256 ${digest.sha256Hex(source.value)}`];
}

function callLines({ id, tool, args, mediation, idempotencyKey }: ToolCall): readonly string[] {
  const head = `[calls ${words(tool, id, wordOf(MediationSchema, mediation, "MEDIATION_"), idempotencyKey)}]`;
  return args === undefined ? [head] : jsonLines(head, args);
}

function resultLines(result: ToolResult, digest: Digest): readonly string[] {
  const { id, isError, error, output, outputUri, outputDigest, content, code, approvalRequestSeq, approvalDecisionSeq } = result;
  const numbers = [code, approvalRequestSeq, approvalDecisionSeq].map(Number);
  const marks = numbers.some((number) => number !== 0) ? numbers.join("/") : undefined;
  const head = `[result ${words(id, isError ? "failed" : undefined, error, outputUri, outputDigest, marks)}]`;
  const lines = output === undefined ? [head] : [...jsonLines(head, output)];
  return [...lines, ...content.flatMap((part) => partLines(part, digest)).map((line) => `${INDENT}${line}`)];
}

/** JSON after its name: on the same line where it is short, else a line a value. */
function jsonLines(name: string, value: JsonValue): readonly string[] {
  const short = JSON.stringify(ordered(value));
  if (short.length <= 80) return [`${name} ${short}`];
  return [
    name,
    ...JSON.stringify(ordered(value), undefined, 2)
      .split("\n")
      .map((line) => `${INDENT}${line}`),
  ];
}

/** The same value with the keys of its objects in order. */
function ordered(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(ordered);
  if (typeof value !== "object" || value === null) return Object.is(value, -0) ? "-0" : value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(byKey)
      .map(([key, inner]) => [key, ordered(inner)]),
  );
}

function indented(text: string): readonly string[] {
  return text.split("\n").map((line) => `${INDENT}${line}`);
}
