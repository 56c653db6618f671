/**
 * The responses of one stream on their way out.
 *
 * Invariants:
 * - They leave in the order in which they were put in. Of updates of one kind that wait only the newest leaves, in the place of the first.
 * - Whoever makes more than `waitingMax` responses, or more text than `charsMax`, has to wait for room; what is not waited for (a request of a
 *   turn, the last word) is bounded by what makes it.
 */

import { SEQ_NONE, type Seq } from "../../base/ids.ts";
import type { Told } from "./transcript.ts";

interface Waiting {
  said: Told["said"];
  readonly seq: Seq;
  /** Set for one that a newer one of its kind replaces. */
  readonly kind?: string | undefined;
  /** Called when it leaves; false keeps it back for good. */
  readonly leaves?: (() => boolean) | undefined;
}

export class Outbox {
  readonly #waitingMax: number;
  readonly #charsMax: number;
  readonly #waiting: Waiting[] = [];
  /** Of the text that waits. */
  #chars = 0;
  #lastSeq = SEQ_NONE;
  #isEnded = false;
  #onMore: (() => void) | undefined;
  #onRoom: (() => void)[] = [];

  constructor(waitingMax: number, charsMax: number = Number.POSITIVE_INFINITY) {
    this.#waitingMax = waitingMax;
    this.#charsMax = charsMax;
  }

  /** The cursor of the response that was put in last. */
  get lastSeq(): Seq {
    return this.#lastSeq;
  }

  get hasRoom(): boolean {
    return this.#waiting.length < this.#waitingMax && this.#chars < this.#charsMax;
  }

  /** Puts responses in. */
  put(told: readonly Told[]): void {
    for (const { said, seq } of told) this.#add({ said, seq });
  }

  /** Puts one in that is asked when it leaves: where the answer is false it does not. */
  putIf(told: Told, leaves: () => boolean): void {
    this.#add({ ...told, leaves });
  }

  /** Puts one in, or in the place of one of its kind that waits. */
  putLatest(kind: string, { said, seq }: Told): void {
    const waiting = this.#waiting.find((each) => each.kind === kind);
    if (waiting === undefined) this.#add({ said, seq, kind });
    else waiting.said = said;
  }

  /** Resolves when there is room, or when nothing more is taken. */
  async room(): Promise<void> {
    while (!this.hasRoom && !this.#isEnded) await new Promise<void>((resolve) => this.#onRoom.push(resolve));
  }

  /** Nothing more goes in; what waits still leaves. */
  end(): void {
    this.#isEnded = true;
    this.#wake();
  }

  /** Nothing more goes in or out. */
  close(): void {
    this.#waiting.length = 0;
    this.#chars = 0;
    this.end();
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** The responses as they leave, until the end. */
  async *leaving(): AsyncGenerator<Told, void, undefined> {
    for (;;) {
      const next = this.#take();
      if (next !== undefined) yield next;
      else if (this.#isEnded) return;
      else await new Promise<void>((resolve) => (this.#onMore = resolve));
    }
  }

  #add(waiting: Waiting): void {
    if (this.#isEnded) return;
    this.#waiting.push(waiting);
    this.#chars += charsOf(waiting);
    this.#lastSeq = waiting.seq;
    this.#onMore?.();
    this.#onMore = undefined;
  }

  #take(): Told | undefined {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      this.#chars -= charsOf(next);
      if (this.hasRoom) this.#wakeRoom();
      if (next.leaves?.() !== false) return next;
    }
    return undefined;
  }

  #wake(): void {
    this.#onMore?.();
    this.#onMore = undefined;
    this.#wakeRoom();
  }

  #wakeRoom(): void {
    const waiters = this.#onRoom;
    this.#onRoom = [];
    for (const resolve of waiters) resolve();
  }
}

/** The characters of a text; everything else that is said is short. */
function charsOf({ said }: Waiting): number {
  return said?.case === "textDelta" || said?.case === "thinkingDelta" ? said.value.content.length : 0;
}
