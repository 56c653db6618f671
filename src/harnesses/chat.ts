/**
 * The chat harness: the whole conversation of the session, then one model call, then its usage.
 *
 * - The conversation is what was said in the session, in order: the inputs of all turns, those of failed and abandoned ones
 *   too, and the outputs; see `conversation.ts`.
 * - A turn without inputs answers what is still unanswered, such as the inputs of a turn that failed. When the last word is the
 *   assistant's, or nothing was said yet, there is nothing to answer: the turn completes without a model call.
 * - A config that cannot be read and a missing model end the turn FAILED: no later try would go better.
 */

import { create } from "@bufbuild/protobuf";
import { ERROR_CODES, HoldfastError, type ErrorCode } from "../base/errors.ts";
import { CapabilitiesSchema, HarnessDescriptorSchema, Resumability } from "../gen/agentsessions/v1/harness_pb.ts";
import { HarnessFailure, textMessage, type Harness, type Message, type ModelRequest, type Start } from "../spi/index.ts";
import { parseChatConfig, type ChatConfig } from "./chat-config.ts";
import { Conversation } from "./conversation.ts";
import { recordUsage } from "./usage.ts";

/** The chat harness. Its config is that of `parseChatConfig`. */
export function createChatHarness(): Harness {
  const descriptor = create(HarnessDescriptorSchema, {
    id: "chat",
    version: "1",
    models: [],
    tools: [],
    capabilities: create(CapabilitiesSchema, {
      resumability: Resumability.STATELESS_REPLAY,
      forkSafe: true,
      streaming: true,
      reasoningReplay: true,
    }),
  });
  return {
    readsOnly: true,
    describe: async () => descriptor,
    run: async (start, sink, { signal }) => {
      const config = readConfig(start);
      const conversation = await readConversation(start, signal);
      if (!isUnanswered(conversation, start.inputs)) return;
      const response = await sink.model(requestOf(start, config, conversation), { signal });
      await recordUsage(sink, response, signal);
    },
  };
}

function readConfig(start: Start): ChatConfig {
  try {
    return parseChatConfig(start.config);
  } catch (error) {
    if (error instanceof HoldfastError) throw failure(error.code, error.message);
    throw error;
  }
}

async function readConversation(start: Start, signal: AbortSignal): Promise<Message[]> {
  const conversation = new Conversation();
  for await (const page of start.history.read({ signal })) conversation.addPage(page);
  for (const input of start.inputs) conversation.addInput(input);
  return conversation.messages();
}

/** An input in the assistant's own words is an answer to be continued. */
function isUnanswered(conversation: readonly Message[], inputs: readonly Message[]): boolean {
  const last = conversation.findLast((message) => message.role !== "system");
  if (last === undefined) return false;
  return last.role !== "assistant" || inputs.includes(last);
}

function requestOf(start: Start, config: ChatConfig, conversation: readonly Message[]): ModelRequest {
  const model = config.model || start.model;
  if (model === "") {
    throw failure("failed_precondition", "model: none is set; set the session's model, or model in the turn's config");
  }
  const messages = config.systemPrompt === "" ? conversation : [textMessage("system", config.systemPrompt), ...conversation];
  return Object.keys(config.params).length === 0 ? { model, messages } : { model, messages, params: config.params };
}

function failure(code: ErrorCode, description: string): HarnessFailure {
  return new HarnessFailure(ERROR_CODES[code].grpc, description);
}
