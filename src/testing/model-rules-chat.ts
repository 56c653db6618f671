/**
 * What OpenAI and servers like it refuse with 400 in a request for a chat completion. Some of these servers want their models' reasoning back on
 * calls, and are known here by the names of the models.
 */

import { isFilled, isJson, isObject, type Json } from "./model-rules-json.ts";

/** Why the provider would refuse the body; undefined when it would not. */
export function chatRefusal(body: Json): string | undefined {
  const messages = body["messages"];
  if (!Array.isArray(messages) || messages.length === 0) return "messages: at least one message is required";
  if (body["tool_choice"] !== undefined && !isFilled(body["tools"])) return "tool_choice: only with tools";
  let awaited: string[] = [];
  for (const [index, message] of messages.entries()) {
    const at = `messages[${index}]`;
    if (!isObject(message)) return `${at}: not an object`;
    if (message["role"] === "tool") {
      const id = message["tool_call_id"];
      if (typeof id !== "string" || !awaited.includes(id)) return `${at}: answers no preceding tool call`;
      if (typeof message["content"] !== "string" || message["content"] === "") return `${at}.content: required`;
      awaited = awaited.filter((other) => other !== id);
      continue;
    }
    if (awaited.length > 0) return `${at}: tool calls without a result: ${awaited.join(", ")}`;
    const fault = openAiMessageFault(message, at);
    if (fault !== undefined) return fault;
    const missing = missingReasoning(String(body["model"]), message, isAfterLastWord(messages, index));
    if (missing !== undefined) return `${at}: ${missing}`;
    if (Array.isArray(message["tool_calls"])) {
      awaited = message["tool_calls"].map((call) => String((call as Json)["id"]));
      if (new Set(awaited).size !== awaited.length) return `${at}.tool_calls: ids are not unique`;
    }
  }
  return awaited.length > 0 ? `messages: tool calls without a result: ${awaited.join(", ")}` : undefined;
}

/** DeepSeek wants `reasoning_content` on every message with calls; Gemini a signature on the first call of each step of the open turn. */
function missingReasoning(model: string, message: Json, isOpen: boolean): string | undefined {
  if (!Array.isArray(message["tool_calls"])) return undefined;
  const [first] = message["tool_calls"] as readonly Json[];
  if (/^deepseek\b/.test(model) && typeof message["reasoning_content"] !== "string") {
    return "the reasoning_content of the thinking mode must be passed back";
  }
  if (/^gemini-3\b/.test(model) && isOpen && !isObject(first?.["extra_content"])) return "a function call is missing a thought_signature";
  return undefined;
}

function isAfterLastWord(messages: readonly unknown[], index: number): boolean {
  return index > messages.findLastIndex((message) => isObject(message) && message["role"] === "user");
}

function openAiMessageFault(message: Json, at: string): string | undefined {
  const { role, content, tool_calls: calls } = message;
  if (role !== "system" && role !== "user" && role !== "assistant") return `${at}.role: unknown`;
  if (calls === undefined) return isFilled(content) ? undefined : `${at}.content: required`;
  if (role !== "assistant" || !isFilled(calls)) return `${at}.tool_calls: must be a list of calls of the assistant`;
  for (const call of calls as readonly Json[]) {
    const fn = call["function"];
    if (typeof call["id"] !== "string" || call["id"] === "") return `${at}.tool_calls: a call has no id`;
    if (!isObject(fn) || typeof fn["name"] !== "string" || fn["name"] === "") return `${at}.tool_calls: a call has no name`;
    if (!OPENAI_NAME.test(fn["name"])) return `${at}.tool_calls: a name does not match its pattern`;
    if (call["id"].length > OPENAI_ID_MAX) return `${at}.tool_calls: an id is too long`;
    if (typeof fn["arguments"] !== "string" || !isJson(fn["arguments"])) return `${at}.tool_calls: arguments are not JSON text`;
  }
  return undefined;
}

/** What a function's name may be. */
export const OPENAI_NAME = /^[a-zA-Z0-9_-]{1,64}$/;
/** How long a call's id may be. */
export const OPENAI_ID_MAX = 64;
