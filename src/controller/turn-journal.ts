/**
 * The pen of one turn: everything that the turn records goes through here, in order.
 *
 * Invariants:
 * - Appends name the seq that they extend and the turn's fence, so a writer that lost its session writes nothing more (I6).
 * - Appends reach the store in the order of the calls, so a later record is never durable without the earlier ones (I7).
 * - After the first failure nothing more is written: every later call rejects with that failure.
 * - A record that nobody waits for may linger: it is handed out, and goes to the store with what comes next or a moment later by itself.
 */

import type { HoldfastError } from "../base/errors.ts";
import { toHoldfastError } from "../base/errors.ts";
import type { Fence, Seq, SessionUid } from "../base/ids.ts";
import type { Clock, Timer } from "../base/ports.ts";
import type { AppendRequest, ComputeChange, Head, JournalStore, NewEvent, Receipt } from "../journal/index.ts";
import { ComputeState, type ComputeRef } from "../spi/index.ts";
import type { CommittedEvents } from "./history.ts";
import { appendedOrThrow } from "./outcome.ts";

/** Where a turn stands once its start is durable. */
export interface TurnPosition {
  readonly session: SessionUid;
  readonly fence: Fence;
  readonly lastSeq: Seq;
}

/** What goes with an append. */
export interface CommitOptions {
  /** Receipts that become durable with it. */
  readonly receipts?: readonly Receipt[] | undefined;
  /** It is the turn's last: the lease is given back. */
  readonly release?: boolean | undefined;
  /** What the row tells of the session's compute from then on, instead of what was noted. */
  readonly compute?: ComputeChange | undefined;
}

/**
 * How long a record may linger. A harness in a process of its own answers within it, and what it was answered and what it does next are
 * one commit, as they are for a harness in this process.
 */
const LINGER_MS = 1;
/** How many records may linger. */
const LINGERING_MAX = 16;

/** What nobody need wait for. */
const NOTHING = Promise.resolve();

/** Writes the records of one turn. */
export class TurnJournal {
  readonly session: SessionUid;
  readonly fence: Fence;
  readonly #store: JournalStore;
  readonly #inFlightMax: number;
  readonly #onCommitted: (committed: CommittedEvents) => void;
  /** Appends that are not answered. */
  #inFlight = 0;
  /** Called when there is none. */
  #onAnswered: () => void = () => undefined;
  #issuedSeq: Seq;
  #durableSeq: Seq;
  #head: Head | undefined;
  #fault: HoldfastError | undefined;
  /** What the row is to tell of the session's compute from the next append on. */
  #compute: ComputeChange | undefined;
  #lingerClock: Clock | undefined;
  #lingering: NewEvent[] = [];
  #lingerTimer: Timer | undefined;

  constructor(
    store: JournalStore,
    position: TurnPosition,
    options: { readonly inFlightMax: number; readonly onCommitted?: ((committed: CommittedEvents) => void) | undefined },
  ) {
    this.#store = store;
    this.session = position.session;
    this.fence = position.fence;
    this.#issuedSeq = position.lastSeq;
    this.#durableSeq = position.lastSeq;
    this.#inFlightMax = options.inFlightMax;
    this.#onCommitted = options.onCommitted ?? (() => undefined);
  }

  /** The last seq that is known to be durable. */
  get durableSeq(): Seq {
    return this.#durableSeq;
  }

  /** The last record of the turn's that is known to be durable; undefined before its first one here. */
  get head(): Head | undefined {
    return this.#head;
  }

  /** How far the turn has come, records on their way included. */
  get issuedSeq(): Seq {
    return (this.#issuedSeq + this.#lingering.length) as Seq;
  }

  /** Why the turn can write no more; undefined while it can. */
  get fault(): HoldfastError | undefined {
    return this.#fault;
  }

  /** The session's row tells this of its compute from the turn's next append on: it costs no append of its own. */
  noteCompute(ref: ComputeRef): void {
    this.#compute = { ref, state: ComputeState.COMPUTE_LIVE };
  }

  /** From now on records that nobody waits for linger: the harness is elsewhere, and what it does next comes a moment later. */
  linger(clock: Clock): void {
    this.#lingerClock = clock;
  }

  /** Appends and resolves once the records are durable, with the seq of the last one. */
  commit(events: readonly NewEvent[], options: CommitOptions = {}): Promise<Seq> {
    return this.#issue(events, options, options.release === true ? "release" : "hold");
  }

  /**
   * Appends without waiting for durability: whatever is recorded next commits with these records or after them. Waits only
   * when too many appends are on their way. Rejects once the turn can write no more.
   */
  issue(events: readonly NewEvent[], options: Pick<CommitOptions, "receipts"> = {}): Promise<unknown> {
    if (this.#fault !== undefined) return Promise.reject(this.#fault);
    const lingers = this.#lingerClock !== undefined && options.receipts === undefined;
    if (lingers) {
      this.#lingering.push(...events);
      this.#lingerTimer ??= this.#lingerClock?.after(LINGER_MS, () => void this.#issue([], {}, "hold").catch(() => undefined));
      if (this.#lingering.length < LINGERING_MAX) return NOTHING;
    }
    const durable = this.#issue(lingers ? [] : events, options, "hold");
    if (this.#inFlight > this.#inFlightMax) return durable;
    durable.catch(() => undefined);
    return NOTHING;
  }

  /** Gives the lease back after a fault, best effort: whoever resumes the turn need not wait until it runs out. */
  async abandon(): Promise<void> {
    this.#withLingering([]);
    if (this.#inFlight > 0) await new Promise<void>((resolve) => (this.#onAnswered = resolve));
    try {
      await this.#store.append({ session: this.session, writer: { kind: "release", fence: this.fence }, events: [] });
    } catch {
      // The store is not able to; the lease ends by itself.
    }
  }

  /** Refuses everything from now on with `fault`. */
  close(fault: HoldfastError): void {
    this.#fault ??= fault;
    this.#withLingering([]);
  }

  #issue(next: readonly NewEvent[], { receipts, compute = this.#compute }: CommitOptions, kind: "hold" | "release"): Promise<Seq> {
    if (this.#fault !== undefined) return Promise.reject(this.#fault);
    const events = this.#withLingering(next);
    const expectedLastSeq = this.#issuedSeq;
    const lastSeq = (expectedLastSeq + events.length) as Seq;
    const writer = { kind, fence: this.fence };
    this.#issuedSeq = lastSeq;
    this.#compute = undefined;
    return this.#append({ session: this.session, expectedLastSeq, writer, events, receipts, compute }, lastSeq);
  }

  /** What lingers goes first. */
  #withLingering(next: readonly NewEvent[]): readonly NewEvent[] {
    this.#lingerTimer?.cancel();
    this.#lingerTimer = undefined;
    if (this.#lingering.length === 0) return next;
    const events = [...this.#lingering, ...next];
    this.#lingering = [];
    return events;
  }

  async #append(request: AppendRequest, lastSeq: Seq): Promise<Seq> {
    let records: CommittedEvents["records"];
    this.#inFlight += 1;
    try {
      ({ records } = appendedOrThrow(await this.#store.append(request)));
    } catch (error) {
      this.#fault ??= toHoldfastError(error);
      throw this.#fault;
    } finally {
      this.#inFlight -= 1;
      if (this.#inFlight === 0) this.#onAnswered();
    }
    const last = records.at(-1);
    if (last !== undefined && last.seq > this.#durableSeq) this.#head = { seq: last.seq, hash: last.contentHash };
    if (lastSeq > this.#durableSeq) this.#durableSeq = lastSeq;
    this.#onCommitted({ records, events: request.events });
    return lastSeq;
  }
}
