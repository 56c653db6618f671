/** What a model is sent of a conversation: everything from its baseline on, and what stands for the rest. Pure. */

import { create } from "@bufbuild/protobuf";
import { deeplyFrozen } from "../../base/frozen.ts";
import { MessageSchema, PartSchema, ToolResultSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { textMessage, type Message, type Part } from "../../spi/index.ts";
import type { Baseline } from "../baseline.ts";
import { resultsOf, saysSomething, type CallSlot, type Conversation, type ConversationEntry } from "../conversation.ts";

/** What stands for a result, and for an observation, that is no longer sent. */
const CLEARED = "[this result was left out to save room; make the call again if it is needed]";
const CLEARED_OBSERVATION = deeplyFrozen(
  textMessage("user", "[An observation of how things stood at this point was left out to save room.]"),
);

/** The messages that a model is sent of the entry at `index`; none where it is summarised. */
export function messagesOf(entry: ConversationEntry, index: number, baseline: Baseline): readonly Message[] {
  if (index < baseline.summary) return index >= baseline.system && isSystemInput(entry) ? [entry.message] : [];
  if (entry.isObservation && index < baseline.observations) return [CLEARED_OBSERVATION];
  const message = index < baseline.reasoning ? withoutReasoning(entry.message) : entry.message;
  if (message === undefined) return [];
  if (entry.calls.length === 0) return [message];
  return [message, resultsOf(index < baseline.results ? entry.calls.map(cleared) : entry.calls)];
}

/** Whether somebody waits for an answer: the last word is not the assistant's, or it is one of this turn's inputs, to be continued. */
export function isUnanswered({ entries }: Conversation, inputsFrom: number): boolean {
  const index = entries.findLastIndex(({ message, isObservation }) => message.role !== "system" && !isObservation);
  const last = entries[index];
  if (last === undefined) return false;
  return last.message.role !== "assistant" || last.calls.length > 0 || (last.isInput && index >= inputsFrom);
}

/** The entry of the user's last word; 0 where there is none. An observation is nobody's word. */
export function lastWordOf(entries: readonly ConversationEntry[]): number {
  return Math.max(
    0,
    entries.findLastIndex(({ message, isObservation }) => message.role === "user" && !isObservation),
  );
}

/** The first entry with something in it that the model has not seen: results of its last calls, or what came after its answer. */
export function unseenFrom(entries: readonly ConversationEntry[]): number {
  const last = entries.findLastIndex(({ message }) => message.role === "assistant");
  const from = entries[last]?.calls.length === 0 ? last + 1 : last;
  return Math.max(0, Math.min(from, entries.length - 1));
}

/** Whether an entry is an input in the words of the system. */
export function isSystemInput({ message, isInput }: ConversationEntry): boolean {
  return isInput && message.role === "system";
}

/** What stands for everything that is summarised. */
export function summaryMessage(summary: string): Message {
  const text = summary.trim() === "" ? "(nothing was noted)" : summary;
  return deeplyFrozen(textMessage("user", `[Notes on the conversation so far, which is no longer shown:]\n${text}`));
}

/** The message without its reasoning; undefined where nothing else is in it. */
function withoutReasoning(message: Message): Message | undefined {
  const parts: Part[] = message.parts.filter(({ part }) => part.case !== "reasoning");
  if (parts.length === message.parts.length) return message;
  return parts.some(saysSomething) ? create(MessageSchema, { role: message.role, parts }) : undefined;
}

/** The call with a note for its result. One without a result keeps what is said of it. */
function cleared(slot: CallSlot): CallSlot {
  const { result } = slot;
  if (result === undefined || (isShort(result.content) && result.output === undefined)) return slot;
  const content = [create(PartSchema, { part: { case: "text", value: { text: CLEARED } } })];
  const { id, isError, error } = result;
  const note = create(ToolResultSchema, { id, isError, error: error.slice(0, ERROR_CHARS).toWellFormed(), content });
  return { ...slot, result: deeplyFrozen(note) };
}

/** As much of an error stays. */
const ERROR_CHARS = 200;

function isShort(content: readonly Part[]): boolean {
  return content.every(({ part }) => part.case === "text" && part.value.text.length <= CLEARED.length);
}
