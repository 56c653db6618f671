/**
 * One VM as the runtime sees it: what is delivered to it, what it sends, its timers and its budget. The VM itself is on a worker thread.
 *
 * Invariants:
 * - One delivery is under way at a time; others wait in order.
 * - A guest that exceeded a bound is gone for good: its line breaks with a failure that says which bound, and everything later is UNAVAILABLE.
 * - A capture is taken when no turn runs and every delivery before it is done.
 * - Outside of a turn the guest sleeps: it is told of frames of the host and of nothing else, so what waits for it comes to an end.
 */

import { ERROR_CODES, HoldfastError, type Clock, type Digest, type Log, type SessionUid } from "../../base/index.ts";
import type { HostFrameInit, HostLine } from "../../harness-wire/index.ts";
import { HarnessFailure } from "../../spi/index.ts";
import { hostFrameText, tooLarge } from "./door-json.ts";
import { FrameQueue } from "./frame-queue.ts";
import type { DoorMessage } from "./guest/door.ts";
import { seedOf, startOfExecution } from "./guest-time.ts";
import { GuestTimers, type WaitingTimer } from "./guest-timers.ts";
import type { QuickJsLimits } from "./limits.ts";
import type { Fault, Slice, WorkerAnswers } from "./messages.ts";
import type { WorkerLink } from "./worker-link.ts";

/** The status of what a guest did not catch: it has no code of its own. */
const GRPC_UNKNOWN = 2;

/** What the host's part of a delivery costs a turn beside the guest's own processor time. */
const DELIVERY_CPU_MS = 0.1;

/** A session's first capture, and its restore, are of all its memory; they may keep others waiting for so much longer than a slice. */
export const WHOLE_FACTOR = 5;

/** What a sandbox is made of. */
export interface SandboxOptions {
  readonly sessionUid: SessionUid;
  readonly limits: QuickJsLimits;
  readonly clock: Clock;
  readonly digest: Digest;
  readonly log: Log;
  /** A slice, or a capture, of at least so much processor time makes the session slow. */
  readonly slowSliceCpuMs: number;
  readonly onSlow: () => void;
  /** The guest went too far. `inTimer`: as a timer of it fired. */
  readonly onFault: (inTimer: boolean) => void;
  /** What the guest printed. */
  readonly onConsole: ((text: string) => void) | undefined;
  /** The time that the guest sees until its first turn. */
  readonly nowMs: number;
  readonly timers: readonly WaitingTimer[];
}

/** A VM at rest. */
export type Capture = WorkerAnswers["capture"] & {
  /** How much had been delivered. */
  readonly deliveries: number;
  readonly timers: readonly WaitingTimer[];
  readonly nowMs: number;
};

interface Waiting {
  readonly kind: "texts" | "turn" | "timers" | "nothing";
  readonly texts: string[];
  readonly nowMs: number | undefined;
  readonly done: (() => void)[];
}

/** One VM. */
export class Sandbox {
  readonly vm: number;
  readonly frames: FrameQueue;
  readonly timers: GuestTimers;
  /** Counts what was delivered: a `local` snapshot is good for as long as it stands still. */
  deliveries = 0;
  link: WorkerLink;
  #nowMs: number;
  readonly #options: SandboxOptions;
  #waiting: Waiting[] = [];
  #isBusy = false;
  /** Turns that run, and other calls of the guest. */
  #turns = 0;
  #calls = 0;
  #turnCpuMs = 0;
  #taken = { frames: 0, chars: 0 };
  #gone: Error | undefined;
  /** Moves the VM to another thread, where it belongs there; called before a turn begins. */
  relocate: (() => Promise<void>) | undefined;

  constructor(vm: number, link: WorkerLink, options: SandboxOptions) {
    this.vm = vm;
    this.link = link;
    this.#options = options;
    this.#nowMs = options.nowMs;
    this.frames = new FrameQueue((chars) => this.#onTaken(chars));
    this.timers = new GuestTimers(options.clock, () => this.#onTimersDue());
    for (const timer of options.timers) this.timers.add(timer);
    link.lost.set(vm, (fault) => this.lose(fault));
    const seed = seedOf(options.sessionUid, "", options.digest);
    void this.#enqueue([this.#opening(), textOf({ kind: "turn", seed })], {});
  }

  get isGone(): boolean {
    return this.#gone !== undefined;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** A turn runs for as long as `work` does. Timers fire in it. */
  async inTurn<T>(work: () => Promise<T>): Promise<T> {
    this.#turns++;
    try {
      return await this.inCall(work);
    } finally {
      if (--this.#turns === 0) this.timers.sleep();
    }
  }

  /** The guest is asked something for as long as `work` lasts, and may answer at length. */
  async inCall<T>(work: () => Promise<T>): Promise<T> {
    this.#calls++;
    this.#tellTaken();
    try {
      return await work();
    } finally {
      this.#calls--;
    }
  }

  /** The host's end of the line through the door. */
  line(onClose: () => Promise<void>): HostLine {
    return {
      send: (frame) => this.#send(frame),
      frames: this.frames,
      [Symbol.asyncDispose]: onClose,
    };
  }

  /** Resolves once everything that was to be delivered is. Rejects where the VM is gone. */
  async rest(): Promise<void> {
    while (this.#isBusy || this.#waiting.length > 0) {
      await new Promise<void>((resolve) => this.#enqueueDone(resolve));
      if (this.#gone !== undefined) break;
    }
    if (this.#gone !== undefined) throw this.#gone;
  }

  /** What changed since the last capture, or since the base, and what waits. The VM must be at rest. */
  async capture(isWhole: boolean): Promise<Capture> {
    const facts = { deliveries: this.deliveries, timers: this.timers.facts(), nowMs: this.#nowMs };
    const captured = await this.link.call({ kind: "capture", vm: this.vm, isWhole });
    const { slowSliceCpuMs, onSlow } = this.#options;
    if (captured.cpuMs >= slowSliceCpuMs * (isWhole ? WHOLE_FACTOR : 1)) onSlow();
    return { ...facts, ...captured };
  }

  /** The thread forgets the VM. Doing it again does nothing. */
  async drop(why: Error): Promise<void> {
    const wasGone = this.isGone;
    this.lose(why);
    if (!wasGone && !this.link.isGone) await this.link.call({ kind: "drop", vm: this.vm }).catch(() => undefined);
  }

  /** The VM is gone: whoever waits for it is told why. */
  lose(why: Error): void {
    if (this.#gone !== undefined) return;
    this.#gone = why;
    this.link.lost.delete(this.vm);
    this.timers.clearAll();
    this.frames.end(why);
    for (const { done } of this.#waiting.splice(0)) for (const resolve of done) resolve();
  }

  #send(frame: HostFrameInit): Promise<void> {
    if (this.#gone !== undefined) return Promise.reject(this.#gone);
    const text = `{"kind":"frame","frame":${hostFrameText(frame)}}`;
    const { limits, digest } = this.#options;
    if (text.length > limits.frameChars) throw tooLarge(limits);
    const body = frame.frame;
    if (body?.case === "controller" && body.value.frame?.case === "start") {
      const { session = "", executionId = "" } = body.value;
      const seed = seedOf(session, executionId, digest);
      const nowMs = startOfExecution(executionId) ?? this.#options.clock.nowMs();
      return this.#enqueue([textOf({ kind: "turn", seed }), text], { kind: "turn", nowMs });
    }
    return this.#enqueue([text], {});
  }

  #opening(): string {
    const { framesOutstanding: frames, frameCharsOutstanding: chars, frameChars } = this.#options.limits;
    return textOf({ kind: "open", frames, chars, frameChars });
  }

  /** They are delivered after what waits already, all together. Which they are is seen then. */
  #onTimersDue(): void {
    if (this.#gone !== undefined || this.#waiting.some(({ kind }) => kind === "timers")) return;
    this.#waiting.push({ kind: "timers", texts: [], nowMs: undefined, done: [] });
    void this.#work();
  }

  /** The consumer took a frame; the guest is told from time to time, not each time, and not while it sleeps. */
  #onTaken(chars: number): void {
    this.#taken = { frames: this.#taken.frames + 1, chars: this.#taken.chars + chars };
    const { framesOutstanding, frameCharsOutstanding } = this.#options.limits;
    if (this.#calls === 0 || (this.#taken.frames * 4 < framesOutstanding && this.#taken.chars * 4 < frameCharsOutstanding)) return;
    this.#tellTaken();
  }

  #tellTaken(): void {
    const { frames, chars } = this.#taken;
    if (frames === 0) return;
    this.#taken = { frames: 0, chars: 0 };
    void this.#enqueue([textOf({ kind: "taken", frames, chars })], {});
  }

  #enqueueDone(resolve: () => void): void {
    this.#waiting.push({ kind: "nothing", texts: [], nowMs: undefined, done: [resolve] });
    void this.#work();
  }

  #enqueue(
    texts: readonly string[],
    { kind = "texts", nowMs }: { readonly kind?: "texts" | "turn"; readonly nowMs?: number },
  ): Promise<void> {
    if (this.#gone !== undefined) return Promise.resolve();
    return new Promise((resolve) => {
      // What waits together goes together, unless the guest's time changes in between.
      const last = this.#waiting.at(-1);
      if (last !== undefined && nowMs === undefined && last.texts.length > 0) {
        last.texts.push(...texts);
        last.done.push(resolve);
      } else this.#waiting.push({ kind, texts: [...texts], nowMs, done: [resolve] });
      void this.#work();
    });
  }

  async #work(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      // One tick for whoever sends several frames at once.
      await Promise.resolve();
      for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
        if (next.kind === "timers") await this.#fireTimers();
        else if (next.texts.length > 0) await this.#deliver(next);
        for (const resolve of next.done) resolve();
      }
    } finally {
      this.#isBusy = false;
    }
  }

  async #deliver({ kind, texts, nowMs }: Waiting): Promise<void> {
    if (this.#gone !== undefined) return;
    if (kind === "turn") {
      this.#turnCpuMs = 0;
      await this.#relocated();
    }
    if (nowMs !== undefined) this.#nowMs = nowMs;
    await this.#handOver(kind === "turn" ? await this.#awoken(texts) : texts, []);
  }

  /** Fires what fell due before a turn, with the turn's time and randomness. What is to be delivered then. */
  async #awoken(texts: readonly string[]): Promise<readonly string[]> {
    // The turn may be over by now.
    if (this.#turns === 0) return texts;
    this.timers.wake();
    let due = this.timers.takeDue();
    if (due.length === 0) return texts;
    const [seed, ...others] = texts;
    due = await this.#fire(due, [seed!]);
    while (due.length > 0) due = await this.#fire(due);
    return others;
  }

  async #fireTimers(): Promise<void> {
    const due = this.timers.takeDue();
    if (due.length === 0) return;
    // Some are left where there are many, or slow ones. They wait for what came from the host meanwhile, or for the next turn.
    for (const timer of await this.#fire(due)) this.timers.add(timer);
  }

  /** Fires timers, in order; those that are left. */
  async #fire(due: readonly WaitingTimer[], texts: readonly string[] = []): Promise<WaitingTimer[]> {
    const slice = await this.#handOver(texts, due);
    if (slice === undefined) return [];
    this.#nowMs = due.slice(0, slice.fired).reduce((latest, { guestDueMs }) => Math.max(latest, guestDueMs), this.#nowMs);
    const cleared = new Set(slice.timers.flatMap(({ id, afterMs }) => (afterMs === undefined ? [id] : [])));
    return due.slice(slice.fired).filter(({ id }) => !cleared.has(id));
  }

  /** What the guest did with it; undefined where that was its end. */
  async #handOver(texts: readonly string[], due: readonly WaitingTimer[]): Promise<Slice | undefined> {
    if (this.#gone !== undefined) return undefined;
    this.deliveries++;
    const cpuLeftMs = this.#options.limits.turnCpuMs - this.#turnCpuMs;
    const outstanding = { frames: this.frames.frames, chars: this.frames.chars };
    const timers = due.map(({ id, guestDueMs }) => ({ id, nowMs: guestDueMs }));
    const delivery = { texts, nowMs: this.#nowMs, timers, cpuLeftMs, outstanding };
    try {
      const slice = await this.link.call({ kind: "deliver", vm: this.vm, delivery });
      this.#take(slice, due.length > 0);
      return this.isGone ? undefined : slice;
    } catch (error) {
      this.lose(error instanceof Error ? error : new HoldfastError("internal", "the sandbox failed", { cause: error }));
      return undefined;
    }
  }

  async #relocated(): Promise<void> {
    try {
      await this.relocate?.();
    } catch (error) {
      this.lose(error instanceof Error ? error : new HoldfastError("internal", "the sandbox failed", { cause: error }));
    }
  }

  #take(slice: Slice, inTimer: boolean): void {
    if (this.#gone !== undefined) return;
    const { limits, onConsole, onSlow, slowSliceCpuMs } = this.#options;
    this.#turnCpuMs += slice.cpuMs + DELIVERY_CPU_MS;
    for (const [index, bytes] of slice.frames.entries()) this.frames.push(bytes, slice.frameChars[index]!);
    for (const { id, afterMs, nowMs } of slice.timers) {
      if (afterMs === undefined) this.timers.clear(id);
      else this.timers.set(id, afterMs, nowMs);
    }
    for (const text of slice.console) onConsole?.(text);
    if (slice.cpuMs >= slowSliceCpuMs) onSlow();
    if (slice.fault !== undefined) this.#fail(slice.fault, inTimer);
    else if (this.timers.size > limits.timers) {
      const message = `the harness set more than ${limits.timers} timers`;
      this.#fail({ code: "resource_exhausted", message, detail: "" }, inTimer);
      void this.link.call({ kind: "drop", vm: this.vm }).catch(() => undefined);
    }
  }

  /** The guest went too far: its turn has failed, and doing it again would end the same way. */
  #fail(fault: Fault, inTimer: boolean): void {
    const { sessionUid, log, onFault } = this.#options;
    log.log("warn", "a guest of the quickjs runtime was ended", { session: sessionUid, code: fault.code, why: fault.message });
    const cause = new HoldfastError(fault.code, fault.message, { details: { detail: fault.detail } });
    // That is the machine's doing, not the guest's.
    if (fault.code === "unavailable") return this.lose(cause);
    onFault(inTimer);
    const grpcCode = fault.code === "internal" ? GRPC_UNKNOWN : ERROR_CODES[fault.code].grpc;
    this.lose(new HarnessFailure(grpcCode, fault.message, { cause }));
  }
}

function textOf(message: DoorMessage): string {
  return JSON.stringify(message);
}
