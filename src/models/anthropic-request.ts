/**
 * A model request as the body of an Anthropic message. Pure.
 *
 * - System messages before the conversation become the top-level `system`, in their order. Later ones stay at their place, as the user's side.
 * - Messages in a row that speak for one side are one message; in a user message tool results come first. Where that would put
 *   thinking behind other words of the assistant, a short user message stands between.
 * - Reasoning parts of this provider go back exactly as they came, in their place (I2); those of others are left out.
 * - What a place cannot hold is said in words; see `content.ts`. Text without a visible character is not sent: it is refused.
 */

import type {
  CacheControlEphemeral,
  ContentBlockParam,
  DocumentBlockParam,
  ImageBlockParam,
  MessageCreateParamsStreaming,
  MessageParam,
  RedactedThinkingBlockParam,
  TextBlockParam,
  ThinkingBlockParam,
  ThinkingConfigParam,
  Tool,
  ToolChoice,
  ToolResultBlockParam,
} from "@anthropic-ai/sdk/resources/messages";
import { invalidArgument } from "../base/errors.ts";
import type { FilePart, Message, ModelRequest, Part, ReasoningPart, ToolDefinition, ToolResult } from "../spi/index.ts";
import { readAnthropicParams, type CacheWord, type PrefixMismatchWord } from "./anthropic-params.ts";
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
  type ToolSelection,
} from "./content.ts";

/** The provider's name in reasoning parts. */
export const ANTHROPIC = "anthropic";

/** How the provider wants its requests. */
export interface AnthropicRequestOptions {
  /** The routing prefix that is taken off the model's id; "" for none. */
  readonly modelPrefix: string;
  /** `max_tokens` where the request has none. */
  readonly maxTokensDefault: number;
}

/** The body of a request. Throws INVALID_ARGUMENT naming the field that is wrong. */
export function anthropicRequestBody(request: ModelRequest, options: AnthropicRequestOptions): MessageCreateParamsStreaming {
  checkRequest(request);
  const { fields, parallelToolCalls, cache, prefixMismatch } = readAnthropicParams(request.params, options.maxTokensDefault);
  const { system, messages } = splitMessages(request.messages);
  if (messages.length === 0) throw invalidArgument("messages", "must have at least one message of a user with something in it");
  const offered = (request.tools ?? []).map(toolOf);
  const tools = offered.length > 0 ? offered : formerTools(messages);
  const choice = toolChoiceOf(toolSelection(request), { offered: offered.length > 0, present: tools.length > 0, parallelToolCalls });
  const thinking = bindingOf(thinkingOf(fields.thinking, choice, messages), prefixMismatch);
  const { thinking: _, ...others } = fields;
  return {
    model: withoutPrefix(request.model, options.modelPrefix),
    ...others,
    ...(thinking === undefined ? {} : { thinking }),
    ...(cache === "off" ? {} : { cache_control: cacheControlOf(cache) }),
    ...(system.length > 0 ? { system } : {}),
    messages,
    ...(tools.length > 0 ? { tools } : {}),
    ...(choice === undefined ? {} : { tool_choice: choice }),
    stream: true,
  };
}

/** At the top the hint moves with the conversation's end by itself: a mark on a block would change the bytes before the next turn's. */
function cacheControlOf(cache: Exclude<CacheWord, "off">): CacheControlEphemeral {
  return cache === "5m" ? { type: "ephemeral" } : { type: "ephemeral", ttl: cache };
}

/** Throws INVALID_ARGUMENT for a tool choice that does not go with a thinking budget. */
function thinkingOf(
  thinking: ThinkingConfigParam | undefined,
  choice: ToolChoice | undefined,
  messages: readonly MessageParam[],
): ThinkingConfigParam | undefined {
  if (thinking?.type !== "enabled") return thinking;
  if (choice?.type === "any" || choice?.type === "tool") {
    throw invalidArgument("tool_choice", "must be auto or none with params.thinking_budget_tokens");
  }
  // With a budget the provider wants the open tool loop to begin with thinking. One that another model began does not.
  return openLoopThinks(messages) ? thinking : undefined;
}

/** Whether the assistant's message that the last tool results answer begins with thinking; true where no results are last. */
function openLoopThinks(messages: readonly MessageParam[]): boolean {
  const [asked, last] = messages.slice(-2);
  const answers = Array.isArray(last?.content) && last.content[0]?.type === "tool_result";
  return !answers || (Array.isArray(asked?.content) && isThinking(asked.content[0]));
}

/** The header that `block_binding` needs. */
export const BINDING_BETA = "thinking-binding-controls-2026-08-01";

/** The thinking of a body with what the provider's beta adds to it. */
export type BoundThinking = ThinkingConfigParam & { readonly block_binding?: { readonly prefix_mismatch_behavior: PrefixMismatchWord } };

function bindingOf(thinking: ThinkingConfigParam | undefined, behavior: PrefixMismatchWord | undefined): BoundThinking | undefined {
  if (behavior === undefined) return thinking;
  return { ...(thinking ?? { type: "adaptive" }), block_binding: { prefix_mismatch_behavior: behavior } };
}

interface Side {
  readonly role: "user" | "assistant";
  readonly content: ContentBlockParam[];
}

function splitMessages(messages: readonly Message[]): { readonly system: TextBlockParam[]; readonly messages: MessageParam[] } {
  const system: TextBlockParam[] = [];
  const sides: Side[] = [];
  const ids = new RequestCallIds(safeId);
  for (const [index, message] of messages.entries()) {
    const role = roleOf(message, index);
    if (role === "system" && sides.length === 0) {
      system.push(...message.parts.flatMap((part) => textBlocks(partInWords(part))));
      continue;
    }
    const side = role === "assistant" ? role : "user";
    const content = role === "system" ? textBlocks(systemInWords(message)) : message.parts.flatMap((part) => blocksOf(part, side, ids));
    if (content.length === 0) continue;
    addToSides(sides, { role: side, content });
  }
  return { system, messages: acceptable(sides) };
}

function addToSides(sides: Side[], next: Side): void {
  const last = sides.at(-1);
  if (last?.role !== next.role) {
    sides.push(next);
  } else if (next.role === "assistant" && next.content.some(isThinking) && !isThinking(last.content[0])) {
    // Thinking may only follow other text of the assistant in a message that began with thinking.
    sides.push({ role: "user", content: [{ type: "text", text: GOING_ON }] }, next);
  } else {
    last.content.push(...next.content);
  }
}

function isThinking(block: ContentBlockParam | undefined): boolean {
  return block?.type === "thinking" || block?.type === "redacted_thinking";
}

const GOING_ON = "(The assistant goes on.)";

/** The rules that concern the conversation as a whole. */
function acceptable(sides: Side[]): MessageParam[] {
  for (const side of sides) if (side.role === "user") side.content.sort((a, b) => resultRank(a) - resultRank(b));
  // A conversation has to begin with the user.
  if (sides[0]?.role === "assistant") sides.unshift({ role: "user", content: [{ type: "text", text: OPENING }] });
  // An answer that is to be continued may not end in white space.
  const last = sides.at(-1);
  const end = last?.content.at(-1);
  if (last?.role === "assistant" && end?.type === "text") last.content[last.content.length - 1] = { ...end, text: end.text.trimEnd() };
  return sides;
}

const OPENING = "(The conversation begins with the assistant.)";

function resultRank(block: ContentBlockParam): number {
  return block.type === "tool_result" ? 0 : 1;
}

function blocksOf(part: Part, side: Side["role"], ids: RequestCallIds): ContentBlockParam[] {
  const { part: body } = part;
  if (side === "assistant" && body.case === "reasoning") return reasoningBlocks(body.value);
  if (side === "assistant" && body.case === "toolCall") {
    return [{ type: "tool_use", id: ids.call(body.value.id), name: calledTool(body.value.tool), input: body.value.args ?? {} }];
  }
  if (side === "user" && body.case === "toolResult") return [resultBlock(body.value, ids.result(body.value.id))];
  if (side === "user" && body.case === "file") return fileBlocks(body.value);
  return textBlocks(partInWords(part));
}

function textBlocks(text: string | undefined): TextBlockParam[] {
  return text === undefined || text.trim() === "" ? [] : [{ type: "text", text }];
}

function reasoningBlocks(reasoning: ReasoningPart): (ThinkingBlockParam | RedactedThinkingBlockParam)[] {
  const block: unknown = parsedOpaque(opaqueOf(reasoning, ANTHROPIC));
  return isThinkingBlock(block) ? [block] : [];
}

function isThinkingBlock(block: unknown): block is ThinkingBlockParam | RedactedThinkingBlockParam {
  if (typeof block !== "object" || block === null || !("type" in block)) return false;
  if (block.type === "redacted_thinking") return "data" in block && isSendable(block.data);
  return (
    block.type === "thinking" && "thinking" in block && isSendable(block.thinking) && "signature" in block && isSendable(block.signature)
  );
}

/** The provider refuses every request with a lone surrogate in it, and a changed block too: such thinking has to stay behind. */
function isSendable(value: unknown): value is string {
  return typeof value === "string" && value.isWellFormed();
}

function resultBlock(result: ToolResult, id: string): ToolResultBlockParam {
  const files = resultFiles(result).flatMap(fileBlocks);
  return {
    type: "tool_result",
    tool_use_id: id,
    content: [{ type: "text", text: resultText(result) }, ...files],
    ...(result.isError ? { is_error: true } : {}),
  };
}

/** The provider's ids hold letters, digits, `_` and `-`; another provider's may hold more. Equal ids stay equal. */
function safeId(id: string): string {
  return id.replace(/[^a-zA-Z0-9_-]/g, (char) => `_${char.charCodeAt(0).toString(16)}_`);
}

const IMAGE_TYPES = ["image/jpeg", "image/png", "image/gif", "image/webp"] as const;

function fileBlocks(part: FilePart): (TextBlockParam | ImageBlockParam | DocumentBlockParam)[] {
  const file = fileContent(part);
  const text = textOfFile(file);
  if (text !== undefined && text.trim() !== "") return [{ type: "text", text }];
  const mime = file.mime.toLowerCase();
  const isPdf = mime === "application/pdf";
  if (file.kind === "url" && isPdf) return [{ type: "document", source: { type: "url", url: file.url } }];
  if (file.kind === "url" && mime.startsWith("image/")) return [{ type: "image", source: { type: "url", url: file.url } }];
  if (file.kind !== "bytes" || file.bytes.byteLength === 0) return textBlocks(fileInWords(file));
  const data = base64(file.bytes);
  if (isPdf) return [{ type: "document", source: { type: "base64", media_type: "application/pdf", data } }];
  const imageType = IMAGE_TYPES.find((type) => type === mime);
  if (imageType === undefined) return textBlocks(fileInWords(file));
  return [{ type: "image", source: { type: "base64", media_type: imageType, data } }];
}

function toolOf(tool: ToolDefinition): Tool {
  return {
    name: tool.name,
    ...(tool.description === "" ? {} : { description: tool.description }),
    input_schema: { ...tool.inputSchema, type: "object" },
  };
}

/** The tools of a conversation that offers none any more: the provider refuses tool blocks whose tool it was not told of. */
function formerTools(messages: readonly MessageParam[]): Tool[] {
  const names = new Set<string>();
  for (const { content } of messages) {
    if (typeof content === "string") continue;
    for (const block of content) if (block.type === "tool_use") names.add(block.name);
  }
  return [...names].map((name) => ({
    name,
    description: "No longer available.",
    input_schema: { type: "object" },
  }));
}

interface ToolsOfRequest {
  /** The request offers tools. */
  readonly offered: boolean;
  /** The body has tools, former ones among them. */
  readonly present: boolean;
  readonly parallelToolCalls: boolean;
}

function toolChoiceOf(choice: ToolSelection, tools: ToolsOfRequest): ToolChoice | undefined {
  if (!tools.offered) return tools.present ? { type: "none" } : undefined;
  const single = tools.parallelToolCalls ? {} : { disable_parallel_tool_use: true };
  switch (choice.kind) {
    case "default":
      return tools.parallelToolCalls ? undefined : { type: "auto", ...single };
    case "tool":
      return { type: "tool", name: choice.name, ...single };
    case "auto":
      return { type: "auto", ...single };
    case "none":
      return { type: "none" };
    case "required":
      return { type: "any", ...single };
  }
}
