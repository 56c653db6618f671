/** A user's message as the inputs of a turn. Pure. */

import { create } from "@bufbuild/protobuf";
import { utf8Length } from "../../base/bytes.ts";
import { invalidArgument } from "../../base/errors.ts";
import { FilePartSchema, MessageSchema, PartSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { UserMessageSchema, type ContentBlock, type UserMessage } from "../../gen/roz/v1/agent_pb.ts";
import { textMessage, type Message, type Part } from "../../spi/index.ts";
import { checkContent } from "../content.ts";
import type { TurnMode } from "../environment/index.ts";
import { SERVICE_LIMITS } from "../limits.ts";
import { overLimit, plainText, refuseMany } from "../text.ts";
import type { AgentLimits } from "./limits.ts";

/** Throws INVALID_ARGUMENT or RESOURCE_EXHAUSTED that names the field, for what is no message; its tools are looked at elsewhere. */
export function checkMessage(message: UserMessage, limits: AgentLimits): void {
  const bare: UserMessage = { ...message, tools: [] };
  checkContent(UserMessageSchema, bare, "user_message", SERVICE_LIMITS.nestingMax);
  plainText(message.messageId ?? "", "message_id", limits.idCharsMax);
  checkSystemContext(message.systemContext, limits);
  refuseMany(message.context.length, limits.contextBlocksMax, "context", "blocks");
  let bytes = utf8Length(message.content);
  for (const [index, block] of message.context.entries()) bytes += checkBlock(block, `context[${index}]`, limits);
  if (bytes > limits.messageBytesMax)
    throw overLimit("content", `takes ${bytes} bytes with its context; at most ${limits.messageBytesMax} are allowed`);
  if (message.content === "" && message.context.length === 0) throw invalidArgument("content", "must not be empty without context");
}

/** The bytes of a block. */
function checkBlock({ block, label }: ContentBlock, at: string, limits: AgentLimits): number {
  plainText(label ?? "", `${at}.label`, limits.idCharsMax);
  switch (block.case) {
    case "text":
      return utf8Length(block.value);
    case "binary":
      plainText(block.value.mimeType, `${at}.binary.mime_type`, limits.idCharsMax);
      return block.value.data.byteLength;
    case undefined:
      throw invalidArgument(at, "must have one of text and binary");
  }
}

/** Throws RESOURCE_EXHAUSTED for a system context that is too large. */
export function checkSystemContext(text: string | undefined, limits: AgentLimits): void {
  const bytes = text === undefined ? 0 : utf8Length(text);
  if (bytes > limits.systemContextBytesMax) {
    throw overLimit("system_context", `takes ${bytes} bytes; at most ${limits.systemContextBytesMax} are allowed`);
  }
}

/** The inputs of a message's turn: what is said about it goes before what the user said. */
export function inputsOf({ content, context }: UserMessage, systemContext: string | undefined): Message[] {
  const parts = [...context.map(blockPart), ...(content === "" ? [] : [textPart(content)])];
  const said = create(MessageSchema, { role: "user", parts });
  return systemContext === undefined || systemContext.trim() === "" ? [said] : [textMessage("system", systemContext), said];
}

function blockPart({ block, label = "" }: ContentBlock): Part {
  if (block.case === "binary") {
    const { mimeType: mime, data: value } = block.value;
    return create(PartSchema, {
      part: { case: "file", value: create(FilePartSchema, { mime, name: label, source: { case: "bytes", value } }) },
    });
  }
  const text = block.value ?? "";
  return textPart(label === "" ? text : `[${label}]\n${text}`);
}

function textPart(text: string): Part {
  return create(PartSchema, { part: { case: "text", value: { text } } });
}

/** The mode that a client asks for. Throws INVALID_ARGUMENT for a word that is none. */
export function modeOf(word: string | undefined): TurnMode {
  switch (word) {
    case undefined:
    case "":
    case "react":
      return "react";
    case "ooda_re_act":
    case "ooda_react":
    case "ooda":
      return "ooda_re_act";
    default:
      throw invalidArgument("ai_mode", "must be react or ooda_re_act");
  }
}
