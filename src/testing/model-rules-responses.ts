/** What OpenAI refuses with 400 in a request of its Responses API that stores nothing. */

import { OPENAI_ID_MAX, OPENAI_NAME } from "./model-rules-chat.ts";
import { isFilled, isJson, isObject, type Json } from "./model-rules-json.ts";

/** Why the provider would refuse the body; undefined when it would not. */
export function responsesRefusal(body: Json): string | undefined {
  const input = body["input"];
  if (!Array.isArray(input) || input.length === 0) return "input: at least one item is required";
  if (body["store"] !== false) return "store: the scripted server keeps nothing";
  if (body["tool_choice"] !== undefined && !isFilled(body["tools"])) return "tool_choice: only with tools";
  const calls = new Set<string>();
  const answered = new Set<string>();
  for (const [index, item] of input.entries()) {
    const at = `input[${index}]`;
    if (!isObject(item)) return `${at}: not an object`;
    const fault = itemFault(item, at) ?? reasoningFault(item, input[index + 1], at);
    if (fault !== undefined) return fault;
    const id = String(item["call_id"]);
    if (item["type"] === "function_call") {
      if (calls.has(id)) return `${at}.call_id: must be unique`;
      calls.add(id);
    }
    if (item["type"] === "function_call_output") {
      if (!calls.has(id)) return `${at}: no tool call found for function call output`;
      if (answered.has(id)) return `${at}: a second output for one call`;
      answered.add(id);
    }
  }
  const open = [...calls].find((id) => !answered.has(id));
  return open === undefined ? undefined : `input: no tool output found for function call ${open}`;
}

function itemFault(item: Json, at: string): string | undefined {
  switch (item["type"]) {
    case "message":
      return messageFault(item, at);
    case "function_call":
      if (!OPENAI_NAME.test(String(item["name"]))) return `${at}.name: does not match its pattern`;
      if (typeof item["call_id"] !== "string" || item["call_id"] === "" || item["call_id"].length > OPENAI_ID_MAX)
        return `${at}.call_id: required`;
      return typeof item["arguments"] === "string" && isJson(item["arguments"]) ? undefined : `${at}.arguments: not JSON text`;
    case "function_call_output":
      return isFilled(item["output"]) ? undefined : `${at}.output: required`;
    case "reasoning":
      if (typeof item["id"] !== "string" || !item["id"].startsWith("rs_")) return `${at}.id: must begin with rs_`;
      if (item["status"] !== undefined) return `${at}.status: unknown parameter`;
      return typeof item["encrypted_content"] === "string" && item["encrypted_content"] !== ""
        ? undefined
        : `${at}: the item is not stored`;
    default:
      return `${at}.type: unknown`;
  }
}

function messageFault({ role, content, id }: Json, at: string): string | undefined {
  if (role !== "system" && role !== "user" && role !== "assistant") return `${at}.role: unknown`;
  if (!isFilled(content)) return `${at}.content: required`;
  if (id !== undefined && (typeof id !== "string" || !id.startsWith("msg_"))) return `${at}.id: must begin with msg_`;
  if (typeof content === "string") return undefined;
  const kinds = role === "assistant" ? ["output_text", "refusal"] : ["input_text", "input_image", "input_file"];
  for (const part of content as readonly Json[]) {
    if (!kinds.includes(String(part["type"]))) return `${at}.content: ${String(part["type"])} does not go with ${role}`;
    if ("text" in part && part["text"] === "") return `${at}.content: text must not be empty`;
  }
  return undefined;
}

/** Reasoning stands right before what it led to. */
function reasoningFault(item: Json, next: unknown, at: string): string | undefined {
  if (item["type"] !== "reasoning") return undefined;
  const follows = isObject(next) && (next["type"] === "reasoning" || next["type"] === "function_call" || next["role"] === "assistant");
  return follows ? undefined : `${at}: reasoning was provided without its required following item`;
}
