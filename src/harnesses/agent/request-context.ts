/**
 * What a model is sent of a conversation, kept up as the conversation grows: each entry is looked at when it is new, and not with every
 * request.
 *
 * Invariants:
 * - What it has is what it would have if it were made of the same conversation at once.
 * - A message that is made of recorded content alone is one frozen object for good, however many requests it is sent in: whoever hashes
 *   requests can tell by that that it has not changed.
 */

import { deeplyFrozen } from "../../base/frozen.ts";
import { textMessage, type Message } from "../../spi/index.ts";
import { NO_BASELINE, type Baseline } from "../baseline.ts";
import type { Conversation, ConversationEntry } from "../conversation.ts";
import { sizeAt } from "./compaction.ts";
import { messagesOf, summaryMessage } from "./context.ts";
import { entrySize, type EntrySize } from "./estimate.ts";

/** An entry with calls that had no result when it was looked at. */
interface OpenEntry {
  readonly index: number;
  readonly missing: number;
}

export class RequestContext {
  #text: string;
  #system: Message | undefined;
  #baseline: Baseline = NO_BASELINE;
  #summary = "";
  #messages: Message[] = [];
  /** Where the messages of each entry begin. */
  #starts: number[] = [];
  #sizes: EntrySize[] = [];
  #tokens = 0;
  #open: OpenEntry[] = [];

  /** With a text that stands before everything else; "" for none. */
  constructor(system: string) {
    this.#text = system;
    this.#system = system === "" ? undefined : deeplyFrozen(textMessage("system", system));
    this.#begin();
  }

  /** The messages, in order. They are not to be changed. */
  get messages(): readonly Message[] {
    return this.#messages;
  }

  /** Whether that is what stands before everything else. */
  isBehind(system: string): boolean {
    return this.#text === system;
  }

  /** What stands before everything else. */
  get system(): Message | undefined {
    return this.#system;
  }

  /** The sizes of the conversation's entries. */
  get sizes(): readonly EntrySize[] {
    return this.#sizes;
  }

  /** What the entries take in a request, in estimated tokens. */
  get tokens(): number {
    return this.#tokens;
  }

  /** Another one that goes on from here. */
  copy(): RequestContext {
    const copy = new RequestContext("");
    copy.#text = this.#text;
    copy.#system = this.#system;
    copy.#baseline = this.#baseline;
    copy.#summary = this.#summary;
    copy.#messages = this.#messages.slice();
    copy.#starts = this.#starts.slice();
    copy.#sizes = this.#sizes.slice();
    copy.#tokens = this.#tokens;
    copy.#open = this.#open.slice();
    return copy;
  }

  /** Comes as far as the conversation has; it is one that has only grown, or a copy of it that has. */
  update({ entries, baseline, summary }: Conversation): void {
    const answered = this.#open.find(({ index, missing }) => missingOf(entries[index]) !== missing);
    if (answered !== undefined) this.#cut(answered.index);
    if (baseline !== this.#baseline || summary !== this.#summary) {
      this.#baseline = baseline;
      this.#summary = summary;
      this.#begin();
    }
    for (let index = this.#starts.length; index < entries.length; index += 1) this.#take(entries[index]!, index);
  }

  #begin(): void {
    this.#messages = this.#system === undefined ? [] : [this.#system];
    if (this.#baseline.summary > 0) this.#messages.push(summaryMessage(this.#summary));
    this.#starts = [];
    this.#tokens = 0;
    this.#open = [];
  }

  #take(entry: ConversationEntry, index: number): void {
    this.#starts.push(this.#messages.length);
    for (const message of messagesOf(entry, index, this.#baseline)) this.#messages.push(sealed(message));
    const size = (this.#sizes[index] ??= entrySize(entry));
    this.#tokens += sizeAt(size, index, this.#baseline);
    const missing = missingOf(entry);
    if (missing > 0) this.#open.push({ index, missing });
  }

  /** Forgets the entry and all that come after it. */
  #cut(from: number): void {
    for (let index = from; index < this.#starts.length; index += 1) this.#tokens -= sizeAt(this.#sizes[index], index, this.#baseline);
    this.#messages.length = this.#starts[from] ?? this.#messages.length;
    this.#starts.length = from;
    this.#sizes.length = from;
    this.#open = this.#open.filter(({ index }) => index < from);
  }
}

function missingOf(entry: ConversationEntry | undefined): number {
  return entry === undefined ? 0 : entry.calls.reduce((count, { result }) => count + (result === undefined ? 1 : 0), 0);
}

/** The message; frozen where everything in it is, since it was made here around that. */
function sealed(message: Message): Message {
  if (Object.isFrozen(message)) return message;
  const isSettled = message.parts.every((part) => Object.isFrozen(part) || Object.isFrozen(part.part.value));
  if (!isSettled) return message;
  for (const part of message.parts) Object.freeze(Object.freeze(part).part);
  Object.freeze(message.parts);
  return Object.freeze(message);
}
