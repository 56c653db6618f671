/**
 * A model request as the body of OpenAI's Responses API. Pure.
 *
 * - Nothing is stored at the provider (`store: false`): every request holds the whole conversation.
 * - A reasoning item goes back exactly as it came, in its place (I2). It is left out where it cannot go back: another provider's, one without
 *   encrypted content, one that no message or call of its answer follows.
 * - A phase that a message of the assistant had goes back with its id. Messages without one, and calls, go without an item id, which a
 *   request that refers to nothing stored does not need.
 * - What a place cannot hold is said in words; see `content.ts`. A message of which nothing is left is not sent.
 */

import type {
  ResponseCreateParamsStreaming,
  ResponseInputContent,
  ResponseInputItem,
  ResponseOutputMessage,
  ResponseReasoningItem,
  Tool,
} from "openai/resources/responses/responses";
import { invalidArgument } from "../base/errors.ts";
import type { FilePart, Message, ModelRequest, Part, ReasoningPart, ToolDefinition, ToolResult } from "../spi/index.ts";
import {
  argsText,
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
  shortId,
  textOfFile,
  toolSelection,
  withoutPrefix,
  type ToolSelection,
} from "./content.ts";
import { readParams } from "./params.ts";
import { RESPONSES_PARAMS } from "./responses-params.ts";
import { isWellFormedJson } from "./well-formed.ts";

/** How a provider wants its requests. */
export interface ResponsesRequestOptions {
  /** The provider's name in reasoning parts. */
  readonly provider: string;
  /** The routing prefix that is taken off the model's id; "" for none. */
  readonly modelPrefix: string;
}

/** The body of a request. Throws INVALID_ARGUMENT naming the field that is wrong. */
export function responsesRequestBody(request: ModelRequest, options: ResponsesRequestOptions): ResponseCreateParamsStreaming {
  checkRequest(request);
  const params = readParams(request.params, RESPONSES_PARAMS);
  const ids = new RequestCallIds(shortId);
  const input = request.messages.flatMap((message, index) => inputItems(message, index, ids, options.provider));
  if (input.length === 0) throw invalidArgument("messages", "must have something to say; all of them are empty");
  const tools = request.tools ?? [];
  const choice = toolChoiceOf(toolSelection(request));
  const model = withoutPrefix(request.model, options.modelPrefix);
  return {
    model,
    input,
    ...(tools.length > 0 ? { tools: tools.map(toolOf) } : {}),
    ...(choice === undefined ? {} : { tool_choice: choice }),
    ...params,
    store: false,
    ...(NO_REASONING.test(model) ? {} : { include: ["reasoning.encrypted_content"] }),
    stream: true,
  };
}

/** Models that do not reason refuse to be asked for the encrypted content of their reasoning. */
const NO_REASONING = /^(gpt-3|gpt-4|chatgpt-)/;

function inputItems(message: Message, index: number, ids: RequestCallIds, provider: string): ResponseInputItem[] {
  const role = roleOf(message, index);
  if (role === "assistant") return assistantItems(message.parts, ids, provider);
  if (role === "system") {
    const text = message.parts.flatMap((part) => partInWords(part) ?? []).join("\n");
    return text === "" ? [] : [{ type: "message", role: "system", content: text }];
  }
  const outputs: ResponseInputItem[] = [];
  const content: ResponseInputContent[] = [];
  for (const part of message.parts) {
    if (part.part.case === "toolResult") outputs.push(outputItem(part.part.value, ids));
    else content.push(...contentOf(part));
  }
  return content.length === 0 ? outputs : [...outputs, { type: "message", role: "user", content }];
}

function assistantItems(parts: readonly Part[], ids: RequestCallIds, provider: string): ResponseInputItem[] {
  const items: ResponseInputItem[] = [];
  // Reasoning, and the phase of a message, belong to what follows them in the same answer; what nothing follows is not sent.
  let reasoning: ResponseReasoningItem[] = [];
  let mark: MessageMark | undefined;
  const add = (item: ResponseInputItem): void => {
    items.push(...reasoning, item);
    reasoning = [];
    mark = undefined;
  };
  for (const part of parts) {
    if (part.part.case === "reasoning") {
      const item = opaqueItem(part.part.value, provider);
      if (item?.type === "reasoning") reasoning.push(item);
      if (item?.type === "message") mark = item;
    } else if (part.part.case === "toolCall") {
      const call = part.part.value;
      add({ type: "function_call", call_id: ids.call(call.id), name: calledTool(call.tool), arguments: argsText(call) });
    } else {
      const text = partInWords(part);
      if (text !== undefined) add(mark === undefined ? { type: "message", role: "assistant", content: text } : markedMessage(mark, text));
    }
  }
  return items;
}

/** What is kept of a message of the assistant besides its text. */
export interface MessageMark {
  readonly type: "message";
  readonly id: string;
  readonly phase: "commentary" | "final_answer";
}

function markedMessage({ id, phase }: MessageMark, text: string): ResponseOutputMessage {
  return { type: "message", id, role: "assistant", status: "completed", content: [{ type: "output_text", text, annotations: [] }], phase };
}

function opaqueItem(reasoning: ReasoningPart, provider: string): ResponseReasoningItem | MessageMark | undefined {
  const item = parsedOpaque(opaqueOf(reasoning, provider));
  return isReasoningItem(item) || isMark(item) ? item : undefined;
}

/** The provider refuses a request with a lone surrogate in it, and a changed item too: such reasoning has to stay behind. */
function isReasoningItem(
  item: Readonly<Record<string, unknown>> | undefined,
): item is Readonly<Record<string, unknown>> & ResponseReasoningItem {
  return (
    item?.["type"] === "reasoning" &&
    typeof item["encrypted_content"] === "string" &&
    Array.isArray(item["summary"]) &&
    isWellFormedJson(item)
  );
}

function isMark(item: Readonly<Record<string, unknown>> | undefined): item is Readonly<Record<string, unknown>> & MessageMark {
  return (
    item?.["type"] === "message" &&
    typeof item["id"] === "string" &&
    item["id"].isWellFormed() &&
    (item["phase"] === "commentary" || item["phase"] === "final_answer")
  );
}

function outputItem(result: ToolResult, ids: RequestCallIds): ResponseInputItem {
  const text = resultText(result);
  const files = resultFiles(result).flatMap(filePart);
  const output = files.length === 0 ? text : [{ type: "input_text" as const, text }, ...files];
  return { type: "function_call_output", call_id: ids.result(result.id), output };
}

/** What a message of a user and a tool's output hold alike. */
type Content = Extract<ResponseInputContent, { type: "input_text" | "input_image" | "input_file" }>;

function contentOf(part: Part): Content[] {
  if (part.part.case === "file") return filePart(part.part.value);
  const text = partInWords(part);
  return text === undefined ? [] : [{ type: "input_text", text }];
}

function filePart(part: FilePart): Content[] {
  const file = fileContent(part);
  const text = textOfFile(file);
  if (text !== undefined && text !== "") return [{ type: "input_text", text }];
  const mime = file.mime.toLowerCase();
  if (file.kind === "url" && mime.startsWith("image/")) return [{ type: "input_image", image_url: file.url, detail: "auto" }];
  if (file.kind === "url" && mime === "application/pdf") return [{ type: "input_file", file_url: file.url }];
  const takes = !/^(audio|video)\//.test(mime);
  if (file.kind !== "bytes" || file.bytes.byteLength === 0 || !takes) return [{ type: "input_text", text: fileInWords(file) }];
  const data = `data:${file.mime || "application/octet-stream"};base64,${base64(file.bytes)}`;
  if (mime.startsWith("image/")) return [{ type: "input_image", image_url: data, detail: "auto" }];
  return [{ type: "input_file", filename: file.name || "file", file_data: data }];
}

function toolOf(tool: ToolDefinition): Tool {
  return {
    type: "function",
    name: tool.name,
    ...(tool.description === "" ? {} : { description: tool.description }),
    parameters: tool.inputSchema ?? { type: "object", properties: {} },
    // Strict is this API's default, and refuses most schemas that tools have.
    strict: false,
  };
}

function toolChoiceOf(choice: ToolSelection): ResponseCreateParamsStreaming["tool_choice"] {
  switch (choice.kind) {
    case "default":
      return undefined;
    case "tool":
      return { type: "function", name: choice.name };
    case "auto":
    case "none":
    case "required":
      return choice.kind;
  }
}
