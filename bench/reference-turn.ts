/**
 * The reference turn of the agent: 200 bytes of input, a model that answers 400 bytes and asks for a tool, 800 bytes from the tool, and a
 * model that answers 600 bytes and asks for nothing. Model and tool are stubs that answer at once; everything else is as it is shipped.
 */

import { create } from "@bufbuild/protobuf";
import { MessageSchema, PartSchema, ToolCallSchema, UsageSchema } from "../src/gen/agentsessions/v1/common_pb.ts";
import type { Controller } from "../src/controller/index.ts";
import type { JournalStore } from "../src/journal/index.ts";
import type { Message, ModelChunk, ModelProvider, ModelRequest, Part } from "../src/spi/index.ts";
import { createFunctionTools } from "../src/tools/index.ts";
import { textOfBytes } from "./events.ts";
import { newController, type TurnInput } from "./host.ts";

const INPUT = textOfBytes(200, 0);
const PLAN = textOfBytes(400, 1);
const FOUND = textOfBytes(800, 2);
const ANSWER = textOfBytes(600, 3);
const TOOL = "lookup";
const MODEL = "stub-model";

/** What sessions of reference turns are created with. */
export const REFERENCE_SEED = { harness: "agent", model: MODEL };

/** The input of such a turn. Its config offers the tool; `contextTokensMax` is how large a request may be, where it is not the default. */
export function referenceInput(contextTokensMax?: number): TurnInput {
  const context = contextTokensMax === undefined ? undefined : { max_tokens: contextTokensMax };
  return { texts: [INPUT], config: new TextEncoder().encode(JSON.stringify({ tools: { free: [TOOL] }, context })) };
}

/** A host for such turns. */
export function referenceController(store: JournalStore): Controller {
  const tools = createFunctionTools({
    [TOOL]: {
      description: "Looks a word up in the notes.",
      inputSchema: { type: "object", properties: { word: { type: "string" } }, required: ["word"] },
      run: () => FOUND,
    },
  });
  return newController(store, { provider: stubModel(), tools });
}

function stubModel(): ModelProvider {
  let calls = 0;
  return {
    name: "stub",
    complete: async function* (request: ModelRequest): AsyncGenerator<ModelChunk> {
      const isAnswer = request.messages.at(-1)?.role === "tool";
      const message = isAnswer ? assistant(textPart(ANSWER)) : assistant(textPart(PLAN), callPart(calls++));
      const usage = create(UsageSchema, { model: MODEL, inputTokens: 900n, outputTokens: 150n });
      yield { kind: "completed", response: { message, usage }, facts: { stopReason: isAnswer ? "stop" : "tool_calls", attempts: 1 } };
    },
  };
}

function assistant(...parts: Part[]): Message {
  return create(MessageSchema, { role: "assistant", parts });
}

function textPart(text: string): Part {
  return create(PartSchema, { part: { case: "text", value: { text } } });
}

/** Ids are as long as providers make them, and each is there once. */
function callPart(count: number): Part {
  const id = `call_${count.toString(36).padStart(24, "0")}`;
  return create(PartSchema, { part: { case: "toolCall", value: create(ToolCallSchema, { id, tool: TOOL, args: { word: "plan" } }) } });
}
