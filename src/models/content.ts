/**
 * What the two request mappings share: messages sorted by what they hold, and parts as plain text where a provider takes
 * nothing richer.
 *
 * A part that a provider cannot take in its place is described in words instead of being refused. It is journaled already, so
 * a refusal would come back at every later turn and the session could never be used again.
 */

import { HoldfastError, invalidArgument } from "../base/errors.ts";
import {
  ToolChoiceMode,
  type FilePart,
  type Message,
  type ModelRequest,
  type Part,
  type ReasoningPart,
  type ToolCall,
  type ToolResult,
} from "../spi/index.ts";

/** A message's role as the contract has it. */
export type Role = "system" | "user" | "assistant" | "tool";

/** The role of `messages[index]`. Throws INVALID_ARGUMENT for one that the contract does not have. */
export function roleOf(message: Message, index: number): Role {
  const { role } = message;
  if (role === "system" || role === "user" || role === "assistant" || role === "tool") return role;
  throw invalidArgument(`messages[${index}].role`, "must be system, user, assistant or tool");
}

/** Checks what no provider takes: a request without a model or without messages. */
export function checkRequest(request: ModelRequest): void {
  if (request.model === "") throw invalidArgument("model", "must name a model");
  if (request.messages.length === 0) throw invalidArgument("messages", "must have at least one message");
}

/** `model` without the provider's own prefix, which is the host's routing and not the provider's business. Taken off once. */
export function withoutPrefix(model: string, prefix: string): string {
  return prefix !== "" && model.startsWith(prefix) && model.length > prefix.length ? model.slice(prefix.length) : model;
}

/** Whether the model calls a tool, and which. */
export type ToolSelection = { readonly kind: "default" | "auto" | "none" | "required" } | { readonly kind: "tool"; readonly name: string };

/** The tool choice of a request. Throws INVALID_ARGUMENT naming `tool_choice` when it cannot be kept. */
export function toolSelection(request: ModelRequest): ToolSelection {
  const { mode, name } = request.toolChoice ?? { mode: ToolChoiceMode.UNSPECIFIED, name: "" };
  const tools = request.tools ?? [];
  if (name !== "" && mode !== ToolChoiceMode.REQUIRED) throw invalidArgument("tool_choice.name", "goes with MODE_REQUIRED only");
  switch (mode) {
    case ToolChoiceMode.REQUIRED:
      if (tools.length === 0) throw invalidArgument("tool_choice", "needs tools to choose from");
      if (name === "") return { kind: "required" };
      if (!tools.some((tool) => tool.name === name)) throw invalidArgument("tool_choice.name", "must be the name of one of the tools");
      return { kind: "tool", name };
    // Without tools these two say nothing, and providers refuse them.
    case ToolChoiceMode.AUTO:
      return { kind: tools.length === 0 ? "default" : "auto" };
    case ToolChoiceMode.NONE:
      return { kind: tools.length === 0 ? "default" : "none" };
    default:
      return { kind: "default" };
  }
}

/** A file as a provider can be given it. */
export type FileContent =
  | { readonly kind: "bytes"; readonly mime: string; readonly name: string; readonly bytes: Uint8Array }
  | { readonly kind: "url"; readonly mime: string; readonly name: string; readonly url: string }
  /** Nothing that may leave the host: no source, or an address that means something inside it only. */
  | { readonly kind: "absent"; readonly mime: string; readonly name: string };

/** What a file part holds. Only http and https addresses are handed on. */
export function fileContent(file: FilePart): FileContent {
  const { mime, name, source } = file;
  if (source.case === "bytes") return { kind: "bytes", mime, name, bytes: source.value };
  if (source.case === "uri" && /^https?:\/\//i.test(source.value)) return { kind: "url", mime, name, url: source.value };
  return { kind: "absent", mime, name };
}

/** The bytes as base64. */
export function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

/** A file in words, for a provider that does not take it. */
export function fileInWords(file: FileContent): string {
  const what = [file.name === "" ? undefined : JSON.stringify(file.name), file.mime || undefined].filter((word) => word !== undefined);
  const where = file.kind === "url" ? ` at ${file.url}` : "";
  return `[file${what.length > 0 ? ` ${what.join(", ")}` : ""}${where}; its content is not part of this request]`;
}

/** A text file's content, or undefined for another file. */
export function textOfFile(file: FileContent): string | undefined {
  if (file.kind !== "bytes" || !/^(text\/|application\/json\b)/i.test(file.mime)) return undefined;
  return new TextDecoder().decode(file.bytes);
}

/** A part as plain text; undefined for a part that says nothing to a model (reasoning of another, an empty text). */
export function partInWords(part: Part): string | undefined {
  switch (part.part.case) {
    case "text":
      return part.part.value.text || undefined;
    case "data":
      return part.part.value.data === undefined ? undefined : JSON.stringify(part.part.value.data);
    case "file": {
      const file = fileContent(part.part.value);
      return textOfFile(file) ?? fileInWords(file);
    }
    case "toolCall":
      return `[call of the tool ${JSON.stringify(part.part.value.tool)} with ${argsText(part.part.value)}]`;
    case "toolResult":
      return `[result of a tool: ${resultText(part.part.value)}]`;
    case "reasoning":
    case undefined:
      return undefined;
  }
}

/**
 * What the system says in the middle of a conversation, for a provider that takes such words before it only: they stand at their place, where
 * they belong and where the request begins like the one before it. Undefined where they say nothing.
 */
export function systemInWords({ parts }: Message): string | undefined {
  const words = parts.flatMap((part) => partInWords(part) ?? []).join("\n");
  return words.trim() === "" ? undefined : `[The system says:]\n${words}`;
}

/**
 * The name of a tool that was called once, in letters that a provider takes: another provider, or no provider, may have given it. What
 * was on offer there is not offered here, so nothing has to be found by it again.
 */
export function calledTool(name: string, refused = /[^a-zA-Z0-9_-]/g): string {
  return name.replace(refused, "_").slice(0, 64) || "tool";
}

/** An id of a call no longer than OpenAI takes, with room for a number behind it. */
export function shortId(id: string): string {
  return id.length <= 56 ? id : id.slice(0, 56).toWellFormed();
}

/** A call's arguments as JSON text; a call whose arguments were malformed has none and counts as the empty object. */
export function argsText(call: ToolCall): string {
  return JSON.stringify(call.args ?? {});
}

/** The text of a tool's result: its error, its output as JSON, the words of its content, each once. Never empty. */
export function resultText(result: ToolResult): string {
  const lines: string[] = [];
  if (result.isError) lines.push(`error: ${result.error || "the tool failed"}`);
  if (result.output !== undefined) lines.push(JSON.stringify(result.output));
  const words = result.content.flatMap((part) => (part.part.case === "file" ? [] : (partInWords(part) ?? [])));
  // A tool that failed says why in its content, and that is its error.
  if (!result.isError || words.join("\n") !== result.error) lines.push(...words);
  // What was cut says so itself.
  if (result.outputUri !== "" && result.content.length === 0 && result.output === undefined) {
    lines.push("[the output is too large for this request and was left out]");
  }
  return lines.join("\n").trim() === "" ? "(no output)" : lines.join("\n");
}

/** The files of a tool's result. */
export function resultFiles(result: ToolResult): readonly FilePart[] {
  return result.content.flatMap((part) => (part.part.case === "file" ? [part.part.value] : []));
}

/** The opaque bytes of a reasoning part of `provider`; undefined for another's, or for one that has nothing to hand back. */
export function opaqueOf(reasoning: ReasoningPart, provider: string): Uint8Array | undefined {
  if (reasoning.provider !== provider) return undefined;
  if (reasoning.opaque.case === "opaqueUri") {
    // Leaving it out would break I2 without a word.
    throw new HoldfastError("failed_precondition", "messages: a reasoning part lies in the blob store and was not read back");
  }
  return reasoning.opaque.case === "opaqueBytes" ? reasoning.opaque.value : undefined;
}

/** Opaque bytes that are a JSON object; undefined for none, and for another host's form, which cannot be handed back. */
export function parsedOpaque(bytes: Uint8Array | undefined): Readonly<Record<string, unknown>> | undefined {
  if (bytes === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The ids of the calls and results of one request, as a provider takes them. Providers want every id once; a conversation whose
 * models gave the same id twice keeps its calls apart by a number behind it. Results answer equal ids in the order of the calls.
 */
export class RequestCallIds {
  readonly #spell: (id: string) => string;
  readonly #used = new Set<string>();
  readonly #waiting = new Map<string, string[]>();

  /** `spell` writes an id in the letters that the provider takes. */
  constructor(spell: (id: string) => string = (id) => id) {
    this.#spell = spell;
  }

  /** The id of the next call. */
  call(id: string): string {
    const spelt = this.#spell(id);
    let unique = spelt;
    for (let count = 2; this.#used.has(unique) || unique === ""; count++) unique = `${spelt}_${count}`;
    this.#used.add(unique);
    this.#waiting.set(id, [...(this.#waiting.get(id) ?? []), unique]);
    return unique;
  }

  /** The id of the next result. One that answers no call keeps its own, and the provider refuses it. */
  result(id: string): string {
    return this.#waiting.get(id)?.shift() ?? this.#spell(id);
  }
}

/** The ids of all tool calls in a request's messages. */
export function callIdsOf(messages: readonly Message[]): ReadonlySet<string> {
  const ids = new Set<string>();
  for (const message of messages) {
    for (const part of message.parts) if (part.part.case === "toolCall") ids.add(part.part.value.id);
  }
  return ids;
}
