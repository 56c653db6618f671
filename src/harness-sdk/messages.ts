/** Messages and their parts as plain objects: nothing here needs the protobuf library, so it is small in a sandbox. */

import type { JsonObject } from "@bufbuild/protobuf";
import type { Message, Part, ToolCall, ToolDefinition, ToolResult } from "../spi/wire.ts";

/** A message with one text part. */
export function textMessage(role: "system" | "user" | "assistant" | "tool", text: string): Message {
  return { $typeName: "agentsessions.v1.Message", role, parts: [textPart(text)] };
}

/** A text part. */
export function textPart(text: string): Part {
  return { $typeName: "agentsessions.v1.Part", part: { case: "text", value: { $typeName: "agentsessions.v1.TextPart", text } } };
}

/** The text parts of a message, joined; other parts are passed over. */
export function messageText(message: Message): string {
  let text = "";
  for (const { part } of message.parts) if (part.case === "text") text += part.value.text;
  return text;
}

/** The tool calls that a model asked for in its message, in order. */
export function toolCallsOf(message: Message): ToolCall[] {
  return message.parts.flatMap(({ part }) => (part.case === "toolCall" ? [part.value] : []));
}

/** The message that gives a model the results of its calls; results go in the order of the calls. */
export function toolResultMessage(results: readonly ToolResult[]): Message {
  const parts = results.map((value): Part => ({ $typeName: "agentsessions.v1.Part", part: { case: "toolResult", value } }));
  return { $typeName: "agentsessions.v1.Message", role: "tool", parts };
}

/** A result as an author writes it. */
export interface ToolResultInit {
  /** The id of the call that it answers. */
  readonly id: string;
  /** The structured output. */
  readonly output?: JsonObject | undefined;
  /** The result as the model is to see it, where that is not the output. */
  readonly content?: readonly Part[] | undefined;
  readonly isError?: boolean | undefined;
  /** What went wrong, with `isError`. */
  readonly error?: string | undefined;
}

/** A tool result with everything that it does not say left empty. */
export function toolResult({ id, output, content = [], isError = false, error = "" }: ToolResultInit): ToolResult {
  return {
    $typeName: "agentsessions.v1.ToolResult",
    id,
    ...(output === undefined ? {} : { output }),
    outputUri: "",
    isError,
    error,
    outputDigest: "",
    content: [...content],
    code: 0,
    approvalRequestSeq: 0n,
    approvalDecisionSeq: 0n,
  };
}

/** A tool as a model is offered it. */
export interface ToolOffer {
  readonly name: string;
  readonly description: string;
  /** The JSON Schema of its arguments. */
  readonly inputSchema?: JsonObject | undefined;
}

/** An offer in the form of the contract. */
export function toolDefinition({ name, description, inputSchema }: ToolOffer): ToolDefinition {
  const schema = inputSchema === undefined ? {} : { inputSchema };
  return { $typeName: "agentsessions.v1.ToolDefinition", name, description, ...schema };
}
