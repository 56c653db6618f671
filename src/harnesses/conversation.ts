/**
 * The conversation of a session as a model is given it, from the events of its journal. Pure and incremental: events go in page
 * by page, and no page is kept.
 *
 * Invariants, for every prefix of every journal:
 * - A tool call is followed by its result, at once and in the order of the calls. Where the journal has none the result says
 *   that the outcome is unknown.
 * - A result without a call before it, or a second one, is no result for a model: one that an input brought is kept as text,
 *   one that the journal recorded for a call that no model made is left out.
 * - No message is empty. Everything else stands where it was said, reasoning included (I2), the inputs of failed and abandoned
 *   turns too.
 */

import { create } from "@bufbuild/protobuf";
import { MessageSchema, PartSchema, ToolResultSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { EventKind, type Event, type HistoryPage, type Message, type Part, type ToolResult } from "../spi/index.ts";

/** What a model is told of a call whose result was never recorded. */
const UNKNOWN_OUTCOME = "the outcome of this call is unknown: the turn ended before a result was recorded";

/** The roles of the contract; a message of another, or of none, is taken for its side's own. */
const ROLES: ReadonlySet<string> = new Set(["system", "user", "assistant", "tool"]);

interface CallSlot {
  readonly id: string;
  result: ToolResult | undefined;
}

interface Entry {
  readonly message: Message;
  /** The calls in the message, in their order. */
  readonly calls: readonly CallSlot[];
}

/** A conversation under construction. */
export class Conversation {
  readonly #entries: Entry[] = [];
  /** The latest call of each id that has no result yet. */
  readonly #open = new Map<string, CallSlot>();

  /** Adds a page of events; pages come in their order. */
  addPage(page: HistoryPage): void {
    for (const event of page.events) this.#addEvent(event);
  }

  /** Adds an input of the turn that is about to run. */
  addInput(message: Message): void {
    const parts: Part[] = [];
    for (const part of message.parts) {
      if (part.part.case !== "toolResult") parts.push(part);
      else if (!this.#answer(part.part.value)) parts.push(resultAsText(part.part.value));
    }
    // An input that is as it was is passed on as the same object; what is recorded of it is not touched.
    const whole = parts.every((part, index) => part === message.parts[index]) && parts.length === message.parts.length;
    this.#addMessage(whole ? message : create(MessageSchema, { role: speakerOf(message, parts), parts }), "user");
  }

  /** The messages so far, each call with its result behind it. */
  messages(): Message[] {
    return this.#entries.flatMap(({ message, calls }) => (calls.length === 0 ? [message] : [message, resultsOf(calls)]));
  }

  #addEvent(event: Event): void {
    const { body } = event;
    if (event.kind === EventKind.EVENT_INPUT && body.case === "message") this.addInput(body.value);
    if (event.kind === EventKind.EVENT_OUTPUT && body.case === "message") this.#addMessage(body.value, "assistant");
    if (event.kind === EventKind.EVENT_TOOL_RESULT && body.case === "result") this.#answer(body.value);
  }

  #addMessage(message: Message, defaultRole: string): void {
    if (!message.parts.some(saysSomething)) return;
    const said = ROLES.has(message.role) ? message : create(MessageSchema, { role: defaultRole, parts: message.parts });
    const calls: CallSlot[] = [];
    if (said.role === "assistant") {
      for (const { part } of said.parts) if (part.case === "toolCall") calls.push({ id: part.value.id, result: undefined });
    }
    for (const call of calls) this.#open.set(call.id, call);
    this.#entries.push({ message: said, calls });
  }

  /** Whether the result answers an open call; it is kept there then. */
  #answer(result: ToolResult): boolean {
    const call = this.#open.get(result.id);
    if (call === undefined) return false;
    call.result = result;
    this.#open.delete(result.id);
    return true;
  }
}

/** The conversation of a journal that is there as a whole. */
export function conversationOf(pages: Iterable<HistoryPage>): Message[] {
  const conversation = new Conversation();
  for (const page of pages) conversation.addPage(page);
  return conversation.messages();
}

/** Whether a model would find something in the part. */
function saysSomething({ part }: Part): boolean {
  if (part.case === "text") return part.value.text !== "";
  if (part.case === "data") return part.value.data !== undefined;
  return part.case !== undefined;
}

/** A message of role `tool` of which a result was taken out has words of somebody left: the user's. */
function speakerOf(message: Message, parts: readonly Part[]): string {
  return message.role === "tool" && parts.length > 0 ? "user" : message.role;
}

function resultsOf(calls: readonly CallSlot[]): Message {
  const parts = calls.map(({ id, result }) => {
    const value = result ?? create(ToolResultSchema, { id, isError: true, error: UNKNOWN_OUTCOME });
    return create(PartSchema, { part: { case: "toolResult", value } });
  });
  return create(MessageSchema, { role: "tool", parts });
}

function resultAsText(result: ToolResult): Part {
  const words = result.content.flatMap(({ part }) => (part.case === "text" ? [part.value.text] : []));
  const output = result.output === undefined ? [] : [JSON.stringify(result.output)];
  const error = result.isError ? [`error: ${result.error}`] : [];
  const text = `[result for an unknown tool call: ${[...error, ...output, ...words].join("\n") || "nothing"}]`;
  return create(PartSchema, { part: { case: "text", value: { text } } });
}
