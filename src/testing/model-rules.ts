/**
 * What the real providers refuse with 400: the shape rules of a request, as one function a protocol. They are written from
 * the providers' documentation and know nothing of how Holdfast builds a request.
 */

/** The protocols that the model server speaks. */
export type ModelProtocol = "openai" | "anthropic";

type Json = Readonly<Record<string, unknown>>;

/** Why a provider would refuse this request for its shape; undefined when it would not. */
export function refusalOf(protocol: ModelProtocol, body: unknown): string | undefined {
  if (!isObject(body)) return "the body is not an object";
  if (typeof body["model"] !== "string" || body["model"] === "") return "model: required";
  if (body["stream"] !== true) return "stream: the scripted server only streams";
  const lone = loneSurrogateIn(body, "body");
  if (lone !== undefined) return `${lone}: not well-formed Unicode`;
  const messages = body["messages"];
  if (!Array.isArray(messages) || messages.length === 0) return "messages: at least one message is required";
  return protocol === "openai" ? openAiRefusal(body, messages) : anthropicRefusal(body, messages);
}

function openAiRefusal(body: Json, messages: readonly unknown[]): string | undefined {
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
    if (Array.isArray(message["tool_calls"])) {
      awaited = message["tool_calls"].map((call) => String((call as Json)["id"]));
      if (new Set(awaited).size !== awaited.length) return `${at}.tool_calls: ids are not unique`;
    }
  }
  return awaited.length > 0 ? `messages: tool calls without a result: ${awaited.join(", ")}` : undefined;
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
    if (typeof fn["arguments"] !== "string" || !isJson(fn["arguments"])) return `${at}.tool_calls: arguments are not JSON text`;
  }
  return undefined;
}

function anthropicRefusal(body: Json, messages: readonly unknown[]): string | undefined {
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
  return trailingSpaceFault(messages);
}

function anthropicBlockFault(block: Json, at: string): string | undefined {
  switch (block["type"]) {
    case "text":
      return typeof block["text"] === "string" && block["text"].trim() !== ""
        ? undefined
        : `${at}: text content blocks must contain non-whitespace text`;
    case "tool_use":
      if (!isObject(block["input"])) return `${at}: tool_use.input must be an object`;
      return TOOL_ID.test(String(block["id"])) ? undefined : `${at}: tool_use.id does not match its pattern`;
    case "tool_result":
      if (block["content"] !== undefined && !isFilled(block["content"])) return `${at}: tool_result.content must not be empty`;
      return undefined;
    case "thinking":
      return typeof block["signature"] === "string" && typeof block["thinking"] === "string"
        ? undefined
        : `${at}: thinking blocks need thinking and signature`;
    case "redacted_thinking":
    case "image":
    case "document":
      return undefined;
    default:
      return `${at}: unknown block type`;
  }
}

function isThinkingBlock(block: Json | undefined): boolean {
  return block?.["type"] === "thinking" || block?.["type"] === "redacted_thinking";
}

const TOOL_ID = /^[a-zA-Z0-9_-]+$/;

function trailingSpaceFault(messages: readonly unknown[]): string | undefined {
  const last = messages.at(-1) as { readonly role: string; readonly content: readonly { readonly text?: string }[] };
  const text = last.content.at(-1)?.text;
  if (last.role !== "assistant" || text === undefined || text === text.trimEnd()) return undefined;
  return "messages: final assistant content cannot end with trailing whitespace";
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isFilled(value: unknown): boolean {
  return (typeof value === "string" || Array.isArray(value)) && value.length > 0;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function loneSurrogateIn(value: unknown, at: string): string | undefined {
  if (typeof value === "string") return value.isWellFormed() ? undefined : at;
  if (typeof value !== "object" || value === null) return undefined;
  for (const [key, inner] of Object.entries(value)) {
    const found = key.isWellFormed() ? loneSurrogateIn(inner, `${at}.${key}`) : at;
    if (found !== undefined) return found;
  }
  return undefined;
}
