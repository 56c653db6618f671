/** What Gemini 3 refuses with 400 in a request for generateContent. */

import { isBase64, isFilled, isObject, type Json } from "./model-rules-json.ts";

interface Turn {
  readonly role: unknown;
  /** The calls of the content, by id. */
  readonly calls: readonly Json[];
}

/** Why the provider would refuse the body; undefined when it would not. */
export function googleRefusal(body: Json): string | undefined {
  const contents = body["contents"];
  if (!Array.isArray(contents) || contents.length === 0) return "contents: must not be empty";
  const system = body["systemInstruction"];
  if (system !== undefined && !(isObject(system) && isFilled(system["parts"]))) return "systemInstruction: must not be empty";
  if (body["toolConfig"] !== undefined && !isFilled(body["tools"])) return "toolConfig: only with tools";
  let previous: Turn = { role: undefined, calls: [] };
  for (const [index, content] of contents.entries()) {
    const at = `contents[${index}]`;
    if (!isObject(content) || !Array.isArray(content["parts"]) || content["parts"].length === 0) return `${at}.parts: must not be empty`;
    const { role } = content;
    if (role !== "user" && role !== "model") return `${at}.role: must be user or model`;
    const parts = content["parts"] as readonly Json[];
    const fault = parts.map((part, place) => partFault(part, role, `${at}.parts[${place}]`)).find((found) => found !== undefined);
    if (fault !== undefined) return fault;
    const turn: Turn = { role, calls: parts.flatMap((part) => (isObject(part["functionCall"]) ? [part] : [])) };
    const pairing = pairingFault(previous, turn, parts, at);
    if (pairing !== undefined) return pairing;
    previous = turn;
  }
  return previous.calls.length > 0 ? "contents: function calls without function responses" : undefined;
}

const DATA_FIELDS = ["text", "inlineData", "fileData", "functionCall", "functionResponse"];
const NAME = /^[a-zA-Z0-9_.:-]{1,64}$/;

function partFault(part: Json, role: "user" | "model", at: string): string | undefined {
  const fields = DATA_FIELDS.filter((field) => part[field] !== undefined);
  if (fields.length !== 1) return `${at}: must have exactly one kind of data`;
  const signature = part["thoughtSignature"];
  if (signature !== undefined && (role !== "model" || !isBase64(signature))) return `${at}.thoughtSignature: cannot be decoded`;
  if (part["text"] === "" && signature === undefined) return `${at}.text: must not be empty`;
  const call = part["functionCall"] ?? part["functionResponse"];
  if (call === undefined) return undefined;
  if (!isObject(call) || !NAME.test(String(call["name"]))) return `${at}: the function's name does not match its pattern`;
  if ((part["functionCall"] === undefined) === (role === "model"))
    return `${at}: a function call belongs to the model, its response to the user`;
  const value = call["args"] ?? call["response"];
  return isObject(value) ? undefined : `${at}: args and response must be objects`;
}

function pairingFault(previous: Turn, turn: Turn, parts: readonly Json[], at: string): string | undefined {
  const responses = parts.map((part) => part["functionResponse"]).filter(isObject);
  const awaited = turn.role === "user" ? previous.calls.map((part) => part["functionCall"] as Json) : [];
  if (previous.calls.length > 0 && turn.role !== "user") return `${at}: function responses must come right after function calls`;
  if (responses.length !== awaited.length) return `${at}: the number of function responses must equal that of the function calls`;
  for (const [index, call] of awaited.entries()) {
    const response = responses.find((each) => each["id"] === call["id"]);
    if (response === undefined || response["name"] !== call["name"])
      return `${at}: function call ${index} has no response of its id and name`;
  }
  if (turn.calls.length === 0) return undefined;
  if (previous.role !== "user") return `${at}: a function call turn must come after a user turn or a function response turn`;
  if (turn.calls[0]?.["thoughtSignature"] === undefined) return `${at}: the first function call is missing a thought_signature`;
  const ids = turn.calls.map((part) => (part["functionCall"] as Json)["id"]);
  return new Set(ids).size === ids.length ? undefined : `${at}: function call ids must be unique`;
}
