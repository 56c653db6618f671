/**
 * A model request as the body of Gemini's generateContent. Pure.
 *
 * - System messages before the conversation become `systemInstruction`, in their order. Later ones stay at their place, as the user's side.
 * - Messages in a row that speak for one side are one content; in a user's, function responses come first.
 * - A thought signature goes back byte for byte on the part that it came with (I2), to the model that made it: another model refuses it.
 *   Where a step's first call has none, because another model made the call, the value that the vendor documents for such a case stands in.
 * - What a place cannot hold is said in words; see `content.ts`. Text of no characters is not sent, unless a signature came with it.
 */

import { invalidArgument } from "../base/errors.ts";
import type { FilePart, Message, ModelRequest, Part, ReasoningPart, ToolDefinition, ToolResult } from "../spi/index.ts";
import {
  base64,
  calledTool,
  checkRequest,
  fileContent,
  fileInWords,
  opaqueOf,
  parsedOpaque,
  partInWords,
  RequestCallIds,
  resultFiles,
  resultText,
  roleOf,
  systemInWords,
  textOfFile,
  toolSelection,
  withoutPrefix,
} from "./content.ts";
import { readGoogleParams } from "./google-params.ts";
import type { GoogleContent, GoogleFunction, GooglePart, GoogleRequestBody } from "./google-wire.ts";

/** The provider's name in reasoning parts. */
export const GOOGLE = "google";

/** How the provider wants its requests. */
export interface GoogleRequestOptions {
  /** The routing prefix that is taken off the model's id; "" for none. */
  readonly modelPrefix: string;
}

/** A request as it is sent. */
export interface GoogleRequest {
  /** The model's id, for the path. */
  readonly model: string;
  readonly body: GoogleRequestBody;
}

/** What stands in for a signature that a call of another model cannot have; models before Gemini 3 want none. */
export const NO_SIGNATURE = "skip_thought_signature_validator";
const WANTS_NO_SIGNATURES = /^(models\/)?gemini-[12]\b/;

/** A request. Throws INVALID_ARGUMENT naming the field that is wrong. */
export function googleRequest(request: ModelRequest, options: GoogleRequestOptions): GoogleRequest {
  checkRequest(request);
  const { generationConfig, cachedContent } = readGoogleParams(request.params);
  const model = withoutPrefix(request.model, options.modelPrefix);
  const mapping = new Mapping(request.model, model);
  for (const [index, message] of request.messages.entries()) mapping.add(message, index);
  const { system, contents } = mapping.finish();
  if (contents.length === 0) throw invalidArgument("messages", "must have at least one message of a user with something in it");
  const tools = (request.tools ?? []).map(functionOf);
  const toolConfig = toolConfigOf(request);
  const body: GoogleRequestBody = {
    ...(system.length > 0 ? { systemInstruction: { parts: system } } : {}),
    contents,
    ...(tools.length > 0 ? { tools: [{ functionDeclarations: tools }] } : {}),
    ...(toolConfig === undefined ? {} : { toolConfig }),
    ...(generationConfig === undefined ? {} : { generationConfig }),
    ...(cachedContent === undefined ? {} : { cachedContent }),
  };
  return { model, body };
}

/** The messages of one request as contents. */
class Mapping {
  readonly #requestModel: string;
  readonly #needsSignatures: boolean;
  readonly #system: GooglePart[] = [];
  readonly #contents: GoogleContent[] = [];
  readonly #ids = new RequestCallIds();
  /** The tool of each call, by the id that the request gives it: a response has to name it again. */
  readonly #names = new Map<string, string>();

  constructor(requestModel: string, model: string) {
    this.#requestModel = requestModel;
    this.#needsSignatures = !WANTS_NO_SIGNATURES.test(model);
  }

  add(message: Message, index: number): void {
    const role = roleOf(message, index);
    if (role === "system" && this.#contents.length === 0)
      this.#system.push(...message.parts.flatMap((part) => textParts(partInWords(part))));
    else if (role === "system") this.#append("user", textParts(systemInWords(message)));
    else if (role === "assistant") this.#append("model", this.#modelParts(message.parts));
    else
      this.#append(
        "user",
        message.parts.flatMap((part) => this.#userParts(part)),
      );
  }

  finish(): { readonly system: GooglePart[]; readonly contents: GoogleContent[] } {
    for (const { role, parts } of this.#contents) {
      if (role === "user") parts.sort((a, b) => responseRank(a) - responseRank(b));
      else if (this.#needsSignatures) signFirstCall(parts);
    }
    // A conversation has to begin with the user.
    if (this.#contents[0]?.role === "model") this.#contents.unshift({ role: "user", parts: [{ text: OPENING }] });
    return { system: this.#system, contents: this.#contents };
  }

  #append(role: GoogleContent["role"], parts: GooglePart[]): void {
    if (parts.length === 0) return;
    const last = this.#contents.at(-1);
    if (last?.role === role) last.parts.push(...parts);
    else this.#contents.push({ role, parts });
  }

  #modelParts(parts: readonly Part[]): GooglePart[] {
    const made: GooglePart[] = [];
    let signature: string | undefined;
    for (const { part } of parts) {
      if (part.case === "reasoning") {
        const kept = this.#kept(part.value);
        if (kept !== undefined && "text" in kept) made.push(kept);
        signature = kept !== undefined && !("text" in kept) ? kept.thoughtSignature : undefined;
        continue;
      }
      const signed = signature === undefined ? {} : { thoughtSignature: signature };
      signature = undefined;
      if (part.case === "toolCall") {
        const id = this.#ids.call(part.value.id);
        const name = calledTool(part.value.tool, /[^a-zA-Z0-9_.:-]/g);
        this.#names.set(id, name);
        made.push({ functionCall: { id, name, args: part.value.args ?? {} }, ...signed });
      } else {
        const text = partInWords({ $typeName: "agentsessions.v1.Part", part });
        if (text !== undefined) made.push({ text, ...signed });
      }
    }
    return made;
  }

  #kept(reasoning: ReasoningPart): KeptPart | undefined {
    if (reasoning.modelId !== this.#requestModel) return undefined;
    const kept = parsedOpaque(opaqueOf(reasoning, GOOGLE));
    return isKept(kept) ? kept : undefined;
  }

  #userParts(part: Part): GooglePart[] {
    if (part.part.case === "file") return fileParts(part.part.value);
    if (part.part.case !== "toolResult") return textParts(partInWords(part));
    return this.#responseParts(part.part.value);
  }

  #responseParts(result: ToolResult): GooglePart[] {
    const id = this.#ids.result(result.id);
    const text = resultText(result);
    const response = result.isError ? { error: text } : { output: text };
    return [{ functionResponse: { id, name: this.#names.get(id) ?? "unknown", response } }, ...resultFiles(result).flatMap(fileParts)];
  }
}

/** What the reasoning parts of this provider hold: a whole part, or the signature of the part that follows. */
type KeptPart = Extract<GooglePart, { text: string }> | { readonly thoughtSignature: string };

function isKept(kept: Readonly<Record<string, unknown>> | undefined): kept is Readonly<Record<string, unknown>> & KeptPart {
  if (typeof kept?.["thoughtSignature"] !== "string" || !kept["thoughtSignature"].isWellFormed()) return false;
  return kept["text"] === undefined || (typeof kept["text"] === "string" && kept["text"].isWellFormed());
}

function signFirstCall(parts: GooglePart[]): void {
  const index = parts.findIndex((part) => "functionCall" in part);
  const first = parts[index];
  if (first === undefined || !("functionCall" in first) || first.thoughtSignature !== undefined) return;
  parts[index] = { ...first, thoughtSignature: NO_SIGNATURE };
}

const OPENING = "(The conversation begins with the assistant.)";

function responseRank(part: GooglePart): number {
  return "functionResponse" in part ? 0 : 1;
}

function textParts(text: string | undefined): GooglePart[] {
  return text === undefined ? [] : [{ text }];
}

function fileParts(part: FilePart): GooglePart[] {
  const file = fileContent(part);
  const text = textOfFile(file);
  if (text !== undefined && text !== "") return [{ text }];
  const mimeType = file.mime.toLowerCase();
  const takes = /^(image|audio|video)\/|^application\/pdf$/.test(mimeType);
  if (takes && file.kind === "url") return [{ fileData: { mimeType, fileUri: file.url } }];
  if (takes && file.kind === "bytes" && file.bytes.byteLength > 0) return [{ inlineData: { mimeType, data: base64(file.bytes) } }];
  return [{ text: fileInWords(file) }];
}

function functionOf(tool: ToolDefinition): GoogleFunction {
  return {
    name: tool.name,
    ...(tool.description === "" ? {} : { description: tool.description }),
    parametersJsonSchema: tool.inputSchema ?? { type: "object", properties: {} },
  };
}

function toolConfigOf(request: ModelRequest): GoogleRequestBody["toolConfig"] {
  const choice = toolSelection(request);
  switch (choice.kind) {
    case "default":
      return undefined;
    case "auto":
      return { functionCallingConfig: { mode: "AUTO" } };
    case "none":
      return { functionCallingConfig: { mode: "NONE" } };
    case "required":
      return { functionCallingConfig: { mode: "ANY" } };
    case "tool":
      return { functionCallingConfig: { mode: "ANY", allowedFunctionNames: [choice.name] } };
  }
}
