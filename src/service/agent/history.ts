/**
 * A conversation that a client brings, as the inputs of turns of the `history` harness: INPUT says what it is, the client's word. Pure.
 *
 * Invariants:
 * - Whatever provider is asked later takes it: a result answers a call before it, an id is used once, and a call without a result is one of
 *   unknown outcome (`Conversation` says so to the model).
 * - Thinking keeps its signature, byte for byte, for the provider that made it (I2).
 */

import { create } from "@bufbuild/protobuf";
import { invalidArgument } from "../../base/errors.ts";
import {
  FilePartSchema,
  MessageSchema,
  PartSchema,
  ReasoningPartSchema,
  ToolCallSchema,
  ToolResultSchema,
} from "../../gen/agentsessions/v1/common_pb.ts";
import {
  ConversationMessageSchema,
  type ContentPart,
  type ConversationMessage,
  type ImageContent,
  type ThinkingContent,
  type ToolResultContent,
  type ToolUseContent,
} from "../../gen/roz/v1/agent_pb.ts";
import type { Message, Part } from "../../spi/index.ts";
import { checkContent } from "../content.ts";
import { SERVICE_LIMITS } from "../limits.ts";
import { plainText, refuseMany } from "../text.ts";
import type { AgentLimits } from "./limits.ts";

type Role = "system" | "user" | "assistant" | "tool";

/** What the calls of a history have come to. */
interface Calls {
  readonly names: Map<string, string>;
  readonly open: Set<string>;
}

/** The messages of a history. Throws INVALID_ARGUMENT or RESOURCE_EXHAUSTED that names the message and the part. */
export function historyMessages(history: readonly ConversationMessage[], limits: AgentLimits): Message[] {
  refuseMany(history.length, limits.historyMessagesMax, "history", "messages");
  const calls: Calls = { names: new Map(), open: new Set() };
  return history.map((message, index) => {
    const at = `history[${index}]`;
    checkContent(ConversationMessageSchema, message, at, SERVICE_LIMITS.nestingMax);
    const role = roleOf(message.role, `${at}.role`);
    refuseMany(message.parts.length, SERVICE_LIMITS.partsMax, `${at}.parts`, "parts");
    if (message.parts.length === 0) throw invalidArgument(`${at}.parts`, "must have at least one part");
    return create(MessageSchema, {
      role,
      parts: message.parts.map((part, place) => partOf(part, { role, calls, at: `${at}.parts[${place}]`, limits })),
    });
  });
}

/** Messages of one turn each: so many at most, and a call with its results. */
export function* turnsOf(messages: readonly Message[], messagesMax: number): Generator<readonly Message[], void, undefined> {
  for (let from = 0; from < messages.length;) {
    let to = Math.min(from + messagesMax, messages.length);
    // A message that answers what came before it goes with that, if there is room.
    while (to < messages.length && to > from + 1 && answers(messages[to])) to -= 1;
    if (to === from + 1 && answers(messages[to])) to = Math.min(from + messagesMax, messages.length);
    yield messages.slice(from, to);
    from = to;
  }
}

function answers(message: Message | undefined): boolean {
  return message?.parts.some(({ part }) => part.case === "toolResult") === true;
}

interface PartPlace {
  readonly role: Role;
  readonly calls: Calls;
  readonly at: string;
  readonly limits: AgentLimits;
}

function roleOf(role: string, field: string): Role {
  if (role === "system" || role === "user" || role === "assistant" || role === "tool") return role;
  throw invalidArgument(field, "must be system, user, assistant or tool");
}

function partOf({ part }: ContentPart, place: PartPlace): Part {
  switch (part.case) {
    case "text":
      return create(PartSchema, { part: { case: "text", value: { text: part.value.text } } });
    case "toolUse":
      return callPart(part.value, { ...place, at: `${place.at}.tool_use` });
    case "toolResult":
      return resultPart(part.value, { ...place, at: `${place.at}.tool_result` });
    case "thinking":
      return thinkingPart(part.value, { ...place, at: `${place.at}.thinking` });
    case "image":
      return imagePart(part.value, { ...place, at: `${place.at}.image` });
    case undefined:
      throw invalidArgument(place.at, "must have one of text, tool_use, tool_result, thinking and image");
  }
}

function callPart({ id, name, input }: ToolUseContent, { role, calls, at, limits }: PartPlace): Part {
  if (role !== "assistant") throw invalidArgument(at, "must be in a message of the assistant");
  if (plainText(id, `${at}.id`, limits.idCharsMax) === "") throw invalidArgument(`${at}.id`, "must be set");
  if (plainText(name, `${at}.name`, limits.idCharsMax) === "") throw invalidArgument(`${at}.name`, "must be set");
  if (calls.names.has(id)) throw invalidArgument(`${at}.id`, "must be unique: another tool_use of the history has this id");
  calls.names.set(id, name);
  calls.open.add(id);
  return create(PartSchema, { part: { case: "toolCall", value: create(ToolCallSchema, { id, tool: name, args: input ?? {} }) } });
}

function resultPart({ toolUseId: id, name, content, isError }: ToolResultContent, { role, calls, at }: PartPlace): Part {
  if (role !== "user" && role !== "tool") throw invalidArgument(at, "must be in a message of the user or of a tool");
  if (!calls.names.has(id)) throw invalidArgument(`${at}.tool_use_id`, "must be the id of a tool_use before it");
  if (!calls.open.delete(id))
    throw invalidArgument(`${at}.tool_use_id`, "must be that of a tool_use without a result; this one has one already");
  if (name !== "" && name !== calls.names.get(id)) throw invalidArgument(`${at}.name`, "must be that of its tool_use, or empty");
  const parts = content === "" ? [] : [create(PartSchema, { part: { case: "text", value: { text: content } } })];
  const value = create(ToolResultSchema, { id, isError, error: isError ? "the tool failed" : "", content: parts });
  return create(PartSchema, { part: { case: "toolResult", value } });
}

/** The provider whose thinking has this form. */
const SIGNER = "anthropic";

/** Thinking with a signature goes back to who signed it; other thinking is for people to read. */
function thinkingPart({ thinking, signature }: ThinkingContent, { role, at }: PartPlace): Part {
  if (role !== "assistant") throw invalidArgument(at, "must be in a message of the assistant");
  const summary = thinking === "" ? [] : [create(PartSchema, { part: { case: "text", value: { text: thinking } } })];
  const block = new TextEncoder().encode(JSON.stringify({ type: "thinking", thinking, signature }));
  const value = create(ReasoningPartSchema, {
    summary,
    ...(signature === "" ? {} : { provider: SIGNER, opaque: { case: "opaqueBytes", value: block } }),
  });
  return create(PartSchema, { part: { case: "reasoning", value } });
}

function imagePart({ mediaType, data }: ImageContent, { at }: PartPlace): Part {
  if (!/^image\/[a-z0-9.+-]{1,64}$/i.test(mediaType)) throw invalidArgument(`${at}.media_type`, "must be an image type such as image/png");
  if (data.byteLength === 0) throw invalidArgument(`${at}.data`, "must not be empty");
  return create(PartSchema, {
    part: { case: "file", value: create(FilePartSchema, { mime: mediaType, source: { case: "bytes", value: data } }) },
  });
}
