/**
 * What was said in a session before a turn, kept from turn to turn: the next turn reads what has come since.
 *
 * Invariants:
 * - It is a cache and nothing else: a turn that finds nothing here reads its whole history and asks for the same.
 * - What is kept is known by the very object of its last event. A host hands out one frozen object for a record as long as it keeps it, so
 *   another journal, a fork or another host's history is never taken for it; and what is kept lives as long as that object, within the host's
 *   own bound.
 * - A turn gets a copy. What is kept has come from the history alone.
 */

import type { Seq, SessionUid } from "../../base/ids.ts";
import type { Event, History, Start } from "../../spi/index.ts";
import { Conversation } from "../conversation.ts";
import { RequestContext } from "./request-context.ts";

/** A history as a turn of the agent goes on from it. */
export interface HistoryFold {
  readonly conversation: Conversation;
  readonly context: RequestContext;
}

/** What a history came to, and its last event. */
interface Folded {
  readonly fold: HistoryFold;
  readonly last: Event | undefined;
}

/** Sessions whose last event is known by its place. */
const SESSIONS_MAX = 10_000;

export class HistoryFolds {
  readonly #byLastEvent = new WeakMap<Event, HistoryFold>();
  readonly #lastSeqs = new Map<SessionUid, Seq>();

  /** What was said before a turn, and what a model is sent of it behind `system`. It is the turn's own. */
  async read(
    { sessionUid, history }: Pick<Start, "sessionUid" | "history">,
    { system, signal }: { readonly system: string; readonly signal: AbortSignal },
  ): Promise<HistoryFold> {
    const { fold, last } = (await this.#goneOn(sessionUid, history, signal)) ?? (await folded(history, system, signal));
    const { conversation } = fold;
    const context = fold.context.isBehind(system) ? fold.context : new RequestContext(system);
    context.update(conversation);
    if (last === undefined || !Object.isFrozen(last)) return { conversation, context };
    this.#byLastEvent.set(last, { conversation, context });
    this.#remember(sessionUid, history.lastSeq);
    return { conversation: conversation.copy(), context: context.copy() };
  }

  /** What is kept of the session's history, gone on to its end; undefined where nothing of it is. */
  async #goneOn(session: SessionUid, history: History, signal: AbortSignal): Promise<Folded | undefined> {
    const fromSeq = this.#lastSeqs.get(session);
    if (fromSeq === undefined || fromSeq > history.lastSeq) return undefined;
    let fold: HistoryFold | undefined;
    let last: Event | undefined;
    for await (const { events } of history.read({ fromSeq, signal })) {
      const isFirst = fold === undefined;
      fold ??= this.#take(events[0]);
      if (fold === undefined) return undefined;
      fold.conversation.addEvents(isFirst ? events.slice(1) : events);
      last = events.at(-1);
    }
    return fold && { fold, last };
  }

  /** What is kept under an event. It is kept no longer, since it goes on. */
  #take(event: Event | undefined): HistoryFold | undefined {
    if (event === undefined) return undefined;
    const fold = this.#byLastEvent.get(event);
    this.#byLastEvent.delete(event);
    return fold;
  }

  #remember(session: SessionUid, seq: Seq): void {
    this.#lastSeqs.delete(session);
    this.#lastSeqs.set(session, seq);
    if (this.#lastSeqs.size <= SESSIONS_MAX) return;
    for (const oldest of this.#lastSeqs.keys()) {
      this.#lastSeqs.delete(oldest);
      return;
    }
  }
}

/** A whole history. */
async function folded(history: History, system: string, signal: AbortSignal): Promise<Folded> {
  const conversation = new Conversation();
  let last: Event | undefined;
  for await (const page of history.read({ signal })) {
    conversation.addPage(page);
    last = page.events.at(-1);
  }
  return { fold: { conversation, context: new RequestContext(system) }, last };
}
