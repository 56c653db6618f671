/** What Anthropic refuses with 400 in a request for a message. */

import { isBase64, isFilled, isObject, type Json } from "./model-rules-json.ts";

/** Why the provider would refuse the body; undefined when it would not. */
export function anthropicRefusal(body: Json): string | undefined {
  const messages = body["messages"];
  if (!Array.isArray(messages) || messages.length === 0) return "messages: at least one message is required";
  const maxTokens = body["max_tokens"];
  if (typeof maxTokens !== "number" || !Number.isInteger(maxTokens) || maxTokens < 1) return "max_tokens: required";
  const former = ["temperature", "top_p", "top_k"].find((name) => body[name] !== undefined);
  if (former !== undefined) return `${former}: not taken since 2026-10-21`;
  if (body["system"] !== undefined && !isFilled(body["system"])) return "system: must not be empty";
  const seen = new Set<string>();
  let previous: { readonly role: unknown; readonly calls: readonly string[] } = { role: undefined, calls: [] };
  let hasToolBlocks = false;
  for (const [index, message] of messages.entries()) {
    const at = `messages.${index}`;
    if (!isObject(message)) return `${at}: not an object`;
    const { role, content } = message;
    if (role !== "user" && role !== "assistant") return `${at}.role: unknown`;
    if (index === 0 && role !== "user") return `${at}: first message must use the user role`;
    if (!Array.isArray(content) || content.length === 0) return `${at}.content: must not be empty`;
    const blocks = content as readonly Json[];
    const fault = blocks.map((block) => anthropicBlockFault(block, at)).find((found) => found !== undefined);
    if (fault !== undefined) return fault;
    if (blocks.some(isThinkingBlock) && !isThinkingBlock(blocks[0])) return `${at}: the first block must be thinking`;
    const results = blocks.filter((block) => block["type"] === "tool_result").map((block) => String(block["tool_use_id"]));
    const awaited = previous.role === "assistant" && role === "user" ? previous.calls : [];
    if (previous.calls.some((id) => !results.includes(id))) return `${at}: tool_use ids were found without tool_result blocks`;
    if (results.some((id) => !awaited.includes(id))) return `${at}: unexpected tool_use_id in tool_result blocks`;
    if (blocks.slice(0, results.length).some((block) => block["type"] !== "tool_result")) {
      return `${at}: tool_result blocks must come first`;
    }
    const calls = blocks.filter((block) => block["type"] === "tool_use").map((block) => String(block["id"]));
    if (calls.length > 0 && role !== "assistant") return `${at}: tool_use blocks belong to the assistant`;
    for (const id of calls) {
      if (seen.has(id)) return `${at}: tool_use ids must be unique`;
      seen.add(id);
    }
    hasToolBlocks ||= calls.length > 0 || results.length > 0;
    previous = { role, calls };
  }
  if (previous.calls.length > 0) return "messages: tool_use ids were found without tool_result blocks";
  if (hasToolBlocks && !isFilled(body["tools"])) return "tools: required when messages hold tool blocks";
  if (body["tool_choice"] !== undefined && !isFilled(body["tools"])) return "tool_choice: only with tools";
  return trailingSpaceFault(messages) ?? budgetFault(body, messages) ?? cacheFault(body);
}

function anthropicBlockFault(block: Json, at: string): string | undefined {
  switch (block["type"]) {
    case "text":
      return typeof block["text"] === "string" && block["text"].trim() !== ""
        ? undefined
        : `${at}: text content blocks must contain non-whitespace text`;
    case "tool_use":
      if (!isObject(block["input"])) return `${at}: tool_use.input must be an object`;
      if (!TOOL_NAME.test(String(block["name"]))) return `${at}: tool_use.name does not match its pattern`;
      return TOOL_ID.test(String(block["id"])) ? undefined : `${at}: tool_use.id does not match its pattern`;
    case "tool_result":
      if (block["content"] !== undefined && !isFilled(block["content"])) return `${at}: tool_result.content must not be empty`;
      return undefined;
    case "thinking":
      return typeof block["signature"] === "string" && typeof block["thinking"] === "string"
        ? undefined
        : `${at}: thinking blocks need thinking and signature`;
    case "redacted_thinking":
      return isBase64(block["data"]) ? undefined : `${at}: redacted_thinking.data must be base64`;
    case "image":
    case "document":
      return sourceFault(block["source"], at);
    default:
      return `${at}: unknown block type`;
  }
}

function isThinkingBlock(block: Json | undefined): boolean {
  return block?.["type"] === "thinking" || block?.["type"] === "redacted_thinking";
}

const TOOL_ID = /^[a-zA-Z0-9_-]+$/;
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,128}$/;

function sourceFault(source: unknown, at: string): string | undefined {
  if (!isObject(source)) return `${at}: source is required`;
  if (source["type"] === "url") return /^https?:/.test(String(source["url"])) ? undefined : `${at}: source.url must be an address`;
  return isBase64(source["data"]) ? undefined : `${at}: source.data must be base64`;
}

/** With a thinking budget the open tool loop has to begin with thinking, and no tool can be forced. */
function budgetFault(body: Json, messages: readonly unknown[]): string | undefined {
  const thinking = body["thinking"];
  if (!isObject(thinking) || thinking["type"] !== "enabled") return undefined;
  const choice = body["tool_choice"];
  if (isObject(choice) && (choice["type"] === "any" || choice["type"] === "tool")) return "tool_choice: not with a thinking budget";
  const [asked, last] = messages.slice(-2).map((message) => (message as { readonly content: readonly Json[] }).content);
  if (last?.[0]?.["type"] !== "tool_result" || isThinkingBlock(asked?.[0])) return undefined;
  return "messages: expected thinking before tool_use in the last message of the assistant";
}

function cacheFault(body: Json): string | undefined {
  const cache = body["cache_control"];
  if (cache === undefined) return undefined;
  return isObject(cache) && cache["type"] === "ephemeral" ? undefined : "cache_control: must be ephemeral";
}

function trailingSpaceFault(messages: readonly unknown[]): string | undefined {
  const last = messages.at(-1) as { readonly role: string; readonly content: readonly { readonly text?: string }[] };
  const text = last.content.at(-1)?.text;
  if (last.role !== "assistant" || text === undefined || text === text.trimEnd()) return undefined;
  return "messages: final assistant content cannot end with trailing whitespace";
}
