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
 * - What was observed before a model was asked stands where it was observed, as the user's; a failed observation is left out.
 * - A summary that a baseline announced is nothing that was said. Without its summary a baseline that needs one is as if it had never been.
 */

import { create } from "@bufbuild/protobuf";
import { deeplyFrozen } from "../base/frozen.ts";
import { MessageSchema, PartSchema, ToolResultSchema } from "../gen/agentsessions/v1/common_pb.ts";
import {
  baselineAccount,
  EventKind,
  INBOX_TOOL,
  inboxMessage,
  isObservationCall,
  messageText,
  observationMessage,
  type Event,
  type HistoryPage,
  type Message,
  type Part,
  type ToolCall,
  type ToolResult,
} from "../spi/index.ts";
import { baselineOf, NO_BASELINE, type Baseline } from "./baseline.ts";
import { CallNames } from "./call-names.ts";

/** What a model is told of a call whose result was never recorded. */
const UNKNOWN_OUTCOME = "the outcome of this call is unknown: the turn ended before a result was recorded";

/** The roles of the contract; a message of another, or of none, is taken for its side's own. */
const ROLES: ReadonlySet<string> = new Set(["system", "user", "assistant", "tool"]);

/** A call that a model made, and what became of it. */
export interface CallSlot {
  /** The call in the model's words. */
  readonly call: ToolCall;
  /** What the host knows the call by: its id, or another where that is empty or taken in the turn. */
  readonly hostId: string;
  readonly result: ToolResult | undefined;
}

/** A message, and the calls in it. */
export interface ConversationEntry {
  readonly message: Message;
  /** The calls in the message, in their order. */
  readonly calls: readonly CallSlot[];
  /** Brought by an input. */
  readonly isInput: boolean;
  /** What was observed before the model was asked, which nobody said. */
  readonly isObservation: boolean;
}

type OpenSlot = { -readonly [Key in keyof CallSlot]: CallSlot[Key] };

/** A conversation under construction. */
export class Conversation {
  #entries: ConversationEntry[] = [];
  /** Calls that have no result yet: the latest of each host id, and the latest of each id. */
  #openByHostId = new Map<string, OpenSlot>();
  #openById = new Map<string, OpenSlot>();
  #names = new CallNames();
  /** Calls of the inbox that have no result yet. */
  #inboxCalls = new Set<string>();
  /** Calls of observations that have no result yet. */
  #observationCalls = new Set<string>();
  #baseline = NO_BASELINE;
  /** A baseline that waits for its summary. */
  #announced: Baseline | undefined;
  #summary = "";

  /** The messages so far without the results, which are with their calls. */
  get entries(): readonly ConversationEntry[] {
    return this.#entries;
  }

  /** From where on a model is sent what was said, as it was said. */
  get baseline(): Baseline {
    return this.#baseline;
  }

  /** What stands for the entries before `baseline.summary`; "" where none do. */
  get summary(): string {
    return this.#summary;
  }

  /** Another conversation that goes on from here: what is added to one of them is not in the other. */
  copy(): Conversation {
    const copy = new Conversation();
    // Of what is there only calls without a result can still change: each has its own of these.
    const open = new Map<CallSlot, OpenSlot>();
    for (const slot of [...this.#openByHostId.values(), ...this.#openById.values()]) open.set(slot, { ...slot });
    copy.#entries = open.size === 0 ? this.#entries.slice() : this.#entries.map((entry) => withOwnSlots(entry, open));
    copy.#openByHostId = new Map([...this.#openByHostId].map(([id, slot]) => [id, open.get(slot)!]));
    copy.#openById = new Map([...this.#openById].map(([id, slot]) => [id, open.get(slot)!]));
    copy.#names = this.#names.copy();
    copy.#inboxCalls = new Set(this.#inboxCalls);
    copy.#observationCalls = new Set(this.#observationCalls);
    copy.#baseline = this.#baseline;
    copy.#announced = this.#announced;
    copy.#summary = this.#summary;
    return copy;
  }

  /** Adds a page of events; pages come in their order. */
  addPage(page: HistoryPage): void {
    this.addEvents(page.events);
  }

  /** Adds the events that come next. */
  addEvents(events: readonly Event[]): void {
    for (const event of events) this.#addEvent(event);
  }

  /** A turn begins: what the last one asked for itself is over. */
  beginTurn(): void {
    this.#inboxCalls.clear();
    this.#observationCalls.clear();
    this.#announced = undefined;
  }

  /** Adds an input of the turn that is about to run. */
  addInput(message: Message): void {
    const parts: Part[] = [];
    for (const part of message.parts) {
      if (part.part.case !== "toolResult") parts.push(part);
      else if (!this.addResult(part.part.value)) parts.push(resultAsText(part.part.value));
    }
    // An input that is as it was is passed on as the same object; what is recorded of it is not touched.
    const whole = parts.every((part, index) => part === message.parts[index]) && parts.length === message.parts.length;
    this.#addMessage(whole ? message : create(MessageSchema, { role: speakerOf(message, parts), parts }), "user");
  }

  /** Adds what a model said, or the summary that it was asked for; the calls in it. */
  addOutput(message: Message): readonly CallSlot[] {
    if (this.#announced === undefined) return this.#addMessage(message, "assistant");
    this.#summary = messageText(message);
    this.#baseline = this.#announced;
    this.#announced = undefined;
    return [];
  }

  /** The host's name for a call of the inbox, which no model made: what its result brings was said by the user. */
  nameInboxCall(id = "inbox"): string {
    const name = this.#names.nameOf(id);
    this.#inboxCalls.add(name);
    return name;
  }

  /** The host's name for a call that observes, which no model made: what its result brings stands where the call was made. */
  nameObservationCall(id: string): string {
    const name = this.#names.nameOf(id);
    this.#observationCalls.add(name);
    return name;
  }

  /** Adds a result. Whether it answers an open call and is kept there, or brings what was said or observed. */
  addResult(result: ToolResult): boolean {
    if (this.#observationCalls.delete(result.id)) {
      const message = observationMessage(result);
      if (message !== undefined) this.#entries.push({ message, calls: [], isInput: false, isObservation: true });
      return message !== undefined;
    }
    if (this.#inboxCalls.delete(result.id)) {
      const message = inboxMessage(result);
      if (message === undefined || !message.parts.some(saysSomething)) return false;
      this.#addMessage(message, "user");
      return true;
    }
    const slot = this.#openByHostId.get(result.id) ?? this.#openById.get(result.id);
    if (slot === undefined) return false;
    slot.result = result;
    if (this.#openByHostId.get(slot.hostId) === slot) this.#openByHostId.delete(slot.hostId);
    if (this.#openById.get(slot.call.id) === slot) this.#openById.delete(slot.call.id);
    return true;
  }

  /** Begins anew at a baseline; one that summarises more than the one before it holds from its summary on. */
  addBaseline(baseline: Baseline): void {
    if (baseline.summary > this.#baseline.summary) this.#announced = baseline;
    else this.#baseline = baseline;
  }

  /** The messages so far, each call with its result behind it, whatever the baseline. */
  messages(): Message[] {
    return this.#entries.flatMap((entry) => (entry.calls.length === 0 ? [entry.message] : [entry.message, resultsOf(entry.calls)]));
  }

  #addEvent(event: Event): void {
    const { kind, body } = event;
    switch (kind) {
      case EventKind.EVENT_EXECUTION_START:
      case EventKind.EVENT_END:
        return this.beginTurn();
      case EventKind.EVENT_INPUT:
        return body.case === "message" ? this.addInput(body.value) : undefined;
      case EventKind.EVENT_OUTPUT:
        if (body.case === "message") this.addOutput(body.value);
        return undefined;
      case EventKind.EVENT_TOOL_CALL:
        return body.case === "tool" ? this.#addCall(event, body.value) : undefined;
      case EventKind.EVENT_TOOL_RESULT:
        if (body.case === "result") this.addResult(body.value);
        return undefined;
      case EventKind.EVENT_LIFECYCLE:
        return this.#addLifecycle(event);
      default:
        return undefined;
    }
  }

  #addLifecycle(event: Event): void {
    const account = baselineAccount(event);
    const baseline = account === undefined ? undefined : baselineOf(account);
    if (baseline !== undefined) this.addBaseline(baseline);
  }

  /** Adds a call as the host recorded it: one that a model made is there already. */
  #addCall(event: Event, { id, tool }: ToolCall): void {
    if (tool === INBOX_TOOL) this.nameInboxCall(id);
    else if (isObservationCall(event) && !this.#openByHostId.has(id)) this.nameObservationCall(id);
  }

  #addMessage(message: Message, defaultRole: "user" | "assistant"): readonly CallSlot[] {
    if (!message.parts.some(saysSomething)) return [];
    const said = ROLES.has(message.role) ? message : create(MessageSchema, { role: defaultRole, parts: message.parts });
    const calls: OpenSlot[] = [];
    if (said.role === "assistant") {
      for (const { part } of said.parts) {
        if (part.case === "toolCall") calls.push({ call: part.value, hostId: this.#names.nameOf(part.value.id), result: undefined });
      }
    }
    for (const slot of calls) {
      this.#openByHostId.set(slot.hostId, slot);
      this.#openById.set(slot.call.id, slot);
    }
    this.#entries.push({ message: said, calls, isInput: defaultRole === "user", isObservation: false });
    return calls;
  }
}

function withOwnSlots(entry: ConversationEntry, open: ReadonlyMap<CallSlot, CallSlot>): ConversationEntry {
  if (!entry.calls.some((slot) => open.has(slot))) return entry;
  return { ...entry, calls: entry.calls.map((slot) => open.get(slot) ?? slot) };
}

/** The conversation of a journal that is there as a whole. */
export function conversationOf(pages: Iterable<HistoryPage>): Message[] {
  const conversation = new Conversation();
  for (const page of pages) conversation.addPage(page);
  return conversation.messages();
}

/** Whether a model would find something in the part. */
export function saysSomething({ part }: Part): boolean {
  if (part.case === "text") return part.value.text !== "";
  if (part.case === "data") return part.value.data !== undefined;
  return part.case !== undefined;
}

/** A message of role `tool` of which a result was taken out has words of somebody left: the user's. */
function speakerOf(message: Message, parts: readonly Part[]): string {
  return message.role === "tool" && parts.length > 0 ? "user" : message.role;
}

/** The message that answers calls, in their order, each under the id that the model gave it. */
export function resultsOf(calls: readonly CallSlot[]): Message {
  return create(MessageSchema, { role: "tool", parts: calls.map(({ call, result }) => resultPart(call.id, result)) });
}

function resultPart(id: string, result: ToolResult | undefined): Part {
  const value = result ?? deeplyFrozen(create(ToolResultSchema, { id, isError: true, error: UNKNOWN_OUTCOME }));
  return create(PartSchema, { part: { case: "toolResult", value: value.id === id ? value : renamed(value, id) } });
}

/** What became of results that cannot change, by the results: whoever hashes requests knows the same object again. */
const RENAMED = new WeakMap<ToolResult, ToolResult>();

/** The result under the id that the model gave its call. */
function renamed(result: ToolResult, id: string): ToolResult {
  const known = RENAMED.get(result);
  if (known?.id === id) return known;
  const copy = create(ToolResultSchema, { ...result, id });
  if (!Object.isFrozen(result)) return copy;
  RENAMED.set(result, deeplyFrozen(copy));
  return copy;
}

function resultAsText(result: ToolResult): Part {
  const words = result.content.flatMap(({ part }) => (part.case === "text" ? [part.value.text] : []));
  const output = result.output === undefined ? [] : [JSON.stringify(result.output)];
  const error = result.isError ? [`error: ${result.error}`] : [];
  const text = `[result for an unknown tool call: ${[...error, ...output, ...words].join("\n") || "nothing"}]`;
  return create(PartSchema, { part: { case: "text", value: { text } } });
}
