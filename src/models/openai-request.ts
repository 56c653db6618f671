/**
 * A model request as the body of a chat completion. Pure.
 *
 * - A tool's results become one `tool` message each; their files follow in a user message, since `tool` messages hold text only.
 * - Reasoning goes back to the model that made it, in the fields of its server in which it came (`chat-reasoning.ts`). Where one message has
 *   `reasoning_content`, others with calls have it too, empty if need be: servers that ask for it ask for it on each.
 * - What a place cannot hold is said in words; see `content.ts`. A message of which nothing is left is not sent.
 */

import type {
  ChatCompletionAssistantMessageParam,
  ChatCompletionContentPart,
  ChatCompletionCreateParamsStreaming,
  ChatCompletionMessageFunctionToolCall,
  ChatCompletionMessageParam,
  ChatCompletionTool,
  ChatCompletionToolChoiceOption,
} from "openai/resources/chat/completions";
import { invalidArgument } from "../base/errors.ts";
import type { FilePart, Message, ModelRequest, Part, ToolCall, ToolDefinition } from "../spi/index.ts";
import { keptReasoning, type CallReasoning, type MessageReasoning, type ReasoningFor } from "./chat-reasoning.ts";
import {
  argsText,
  base64,
  calledTool,
  checkRequest,
  fileContent,
  fileInWords,
  partInWords,
  RequestCallIds,
  resultFiles,
  resultText,
  roleOf,
  type Role,
  shortId,
  textOfFile,
  toolSelection,
  withoutPrefix,
  type ToolSelection,
} from "./content.ts";
import { openAiParams, type MaxTokensField } from "./openai-params.ts";
import { readParams } from "./params.ts";

/** How a provider wants its requests. */
export interface OpenAiRequestOptions {
  /** The provider's name in reasoning parts. */
  readonly provider: string;
  /** The routing prefix that is taken off the model's id; "" for none. */
  readonly modelPrefix: string;
  readonly maxTokensField: MaxTokensField;
  /** Ask for usage in the stream. */
  readonly includeUsage: boolean;
}

/** The body of a request. Throws INVALID_ARGUMENT naming the field that is wrong. */
export function openAiRequestBody(request: ModelRequest, options: OpenAiRequestOptions): ChatCompletionCreateParamsStreaming {
  checkRequest(request);
  const { reasoningHistory = "keep", ...params } = readParams(request.params, openAiParams(options.maxTokensField));
  const whom = reasoningHistory === "keep" ? { provider: options.provider, model: request.model } : undefined;
  const ids = new RequestCallIds(shortId);
  const messages = withReasoningOnCalls(request.messages.flatMap((message, index) => openAiMessages(message, index, ids, whom)));
  if (messages.length === 0) throw invalidArgument("messages", "must have something to say; all of them are empty");
  const tools = request.tools ?? [];
  const choice = toolChoiceOf(toolSelection(request));
  return {
    model: withoutPrefix(request.model, options.modelPrefix),
    messages,
    ...(tools.length > 0 ? { tools: tools.map(toolOf) } : {}),
    ...(choice === undefined ? {} : { tool_choice: choice }),
    ...params,
    stream: true,
    ...(options.includeUsage ? { stream_options: { include_usage: true } } : {}),
  };
}

function openAiMessages(
  message: Message,
  index: number,
  ids: RequestCallIds,
  whom: ReasoningFor | undefined,
): ChatCompletionMessageParam[] {
  const role = roleOf(message, index);
  const [only] = message.parts;
  // Most of a long conversation is messages of one text each.
  if (message.parts.length === 1 && only?.part.case === "text") return textMessages(role, only.part.value.text);
  if (role === "assistant") return assistantMessages(message, ids, whom);
  if (role === "system") return systemMessages(message);
  const results = message.parts.flatMap((part) => (part.part.case === "toolResult" ? [part.part.value] : []));
  const content = [
    ...message.parts.flatMap((part) => (part.part.case === "toolResult" ? [] : contentParts(part))),
    ...results.flatMap(resultFiles).flatMap((file) => filePart(file)),
  ];
  const tools = results.map((result) => ({ role: "tool" as const, tool_call_id: ids.result(result.id), content: resultText(result) }));
  return content.length === 0 ? tools : [...tools, { role: "user", content: plainContent(content) }];
}

function textMessages(role: Role, text: string): ChatCompletionMessageParam[] {
  return text === "" ? [] : [{ role: role === "tool" ? "user" : role, content: text }];
}

function systemMessages(message: Message): ChatCompletionMessageParam[] {
  const text = wordsOf(message.parts);
  return text === "" ? [] : [{ role: "system", content: text }];
}

/** A message of the assistant with what its server wants back. */
type AssistantMessage = ChatCompletionAssistantMessageParam & Partial<MessageReasoning>;
type AssistantCall = ChatCompletionMessageFunctionToolCall & Partial<CallReasoning>;

function assistantMessages({ parts }: Message, ids: RequestCallIds, whom: ReasoningFor | undefined): ChatCompletionMessageParam[] {
  const calls: AssistantCall[] = [];
  let reasoning: MessageReasoning | undefined;
  let ofNextCall: CallReasoning | undefined;
  for (const part of parts) {
    const kept = whom === undefined ? undefined : keptReasoning(part, whom);
    if (kept !== undefined && "extra_content" in kept) ofNextCall = kept;
    else reasoning ??= kept;
    if (part.part.case !== "toolCall") continue;
    calls.push({ ...callOf(part.part.value, ids), ...ofNextCall });
    ofNextCall = undefined;
  }
  const text = wordsOf(parts.filter((part) => part.part.case !== "toolCall"));
  if (calls.length === 0) return text === "" ? [] : [{ role: "assistant", content: text, ...reasoning } satisfies AssistantMessage];
  return [{ role: "assistant", content: text === "" ? null : text, ...reasoning, tool_calls: calls } satisfies AssistantMessage];
}

function callOf(call: ToolCall, ids: RequestCallIds): ChatCompletionMessageFunctionToolCall {
  return { id: ids.call(call.id), type: "function", function: { name: calledTool(call.tool), arguments: argsText(call) } };
}

/** What was left out of old messages, and what another model never had, is said to be empty. */
function withReasoningOnCalls(messages: readonly ChatCompletionMessageParam[]): ChatCompletionMessageParam[] {
  if (!messages.some((message) => "reasoning_content" in message)) return [...messages];
  return messages.map((message) =>
    "tool_calls" in message && !("reasoning_content" in message) ? { ...message, reasoning_content: "" } : message,
  );
}

function wordsOf(parts: readonly Part[]): string {
  return parts
    .map(partInWords)
    .filter((words) => words !== undefined)
    .join("\n");
}

function contentParts(part: Part): ChatCompletionContentPart[] {
  if (part.part.case === "file") return filePart(part.part.value);
  const text = partInWords(part);
  return text === undefined ? [] : [{ type: "text", text }];
}

function filePart(part: FilePart): ChatCompletionContentPart[] {
  const file = fileContent(part);
  const text = textOfFile(file);
  if (text !== undefined && text !== "") return [{ type: "text", text }];
  if (file.kind === "url" && isImage(file.mime)) return [{ type: "image_url", image_url: { url: file.url } }];
  if (file.kind !== "bytes" || file.bytes.byteLength === 0) return [{ type: "text", text: fileInWords(file) }];
  const data = base64(file.bytes);
  if (isImage(file.mime)) return [{ type: "image_url", image_url: { url: `data:${file.mime};base64,${data}` } }];
  const format = AUDIO_FORMATS[file.mime.toLowerCase()];
  if (format !== undefined) return [{ type: "input_audio", input_audio: { data, format } }];
  const mime = file.mime || "application/octet-stream";
  return [{ type: "file", file: { filename: file.name || "file", file_data: `data:${mime};base64,${data}` } }];
}

const AUDIO_FORMATS: Readonly<Record<string, "wav" | "mp3">> = {
  "audio/wav": "wav",
  "audio/x-wav": "wav",
  "audio/mpeg": "mp3",
  "audio/mp3": "mp3",
};

function isImage(mime: string): boolean {
  return /^image\//i.test(mime);
}

/** One text alone goes as a plain string: many compatible servers take nothing else. */
function plainContent(content: ChatCompletionContentPart[]): string | ChatCompletionContentPart[] {
  const [only] = content;
  return content.length === 1 && only?.type === "text" ? only.text : content;
}

function toolOf(tool: ToolDefinition): ChatCompletionTool {
  return {
    type: "function",
    function: {
      name: tool.name,
      ...(tool.description === "" ? {} : { description: tool.description }),
      parameters: tool.inputSchema ?? { type: "object", properties: {} },
    },
  };
}

function toolChoiceOf(choice: ToolSelection): ChatCompletionToolChoiceOption | undefined {
  switch (choice.kind) {
    case "default":
      return undefined;
    case "tool":
      return { type: "function", function: { name: choice.name } };
    case "auto":
    case "none":
    case "required":
      return choice.kind;
  }
}
