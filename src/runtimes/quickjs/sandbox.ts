/**
 * One VM as the runtime sees it: what is delivered to it, what it sends, its timers and its budget. The VM itself is on a worker thread.
 *
 * Invariants:
 * - One delivery is under way at a time; others wait in order.
 * - A guest that exceeded a bound is gone for good: its line breaks with a failure that says which bound, and everything later is UNAVAILABLE.
 * - A capture is taken when no turn runs and every delivery before it is done.
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

/** What a sandbox is made of. */
export interface SandboxOptions {
  readonly sessionUid: SessionUid;
  readonly limits: QuickJsLimits;
  readonly clock: Clock;
  readonly digest: Digest;
  readonly log: Log;
  /** A slice of at least so much processor time makes the session slow. */
  readonly slowSliceCpuMs: number;
  readonly onSlow: () => void;
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
  readonly texts: string[];
  readonly nowMs: number | undefined;
  readonly isTurn: boolean;
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
    this.timers = new GuestTimers(options.clock, (timer) => this.#onTimer(timer));
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
    return { ...facts, ...(await this.link.call({ kind: "capture", vm: this.vm, isWhole })) };
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
      return this.#enqueue([textOf({ kind: "turn", seed }), text], { nowMs, isTurn: true });
    }
    return this.#enqueue([text], {});
  }

  #opening(): string {
    const { framesOutstanding: frames, frameCharsOutstanding: chars, frameChars } = this.#options.limits;
    return textOf({ kind: "open", frames, chars, frameChars });
  }

  #onTimer({ id, guestDueMs }: WaitingTimer): void {
    void this.#enqueue([textOf({ kind: "timer", id })], { nowMs: Math.max(this.#nowMs, guestDueMs) });
  }

  /** The consumer took a frame; the guest is told from time to time, not each time. */
  #onTaken(chars: number): void {
    this.#taken = { frames: this.#taken.frames + 1, chars: this.#taken.chars + chars };
    const { framesOutstanding, frameCharsOutstanding } = this.#options.limits;
    if (this.#taken.frames * 4 < framesOutstanding && this.#taken.chars * 4 < frameCharsOutstanding) return;
    const { frames, chars: all } = this.#taken;
    this.#taken = { frames: 0, chars: 0 };
    void this.#enqueue([textOf({ kind: "taken", frames, chars: all })], {});
  }

  #enqueueDone(resolve: () => void): void {
    this.#waiting.push({ texts: [], nowMs: undefined, isTurn: false, done: [resolve] });
    void this.#work();
  }

  #enqueue(texts: readonly string[], { nowMs, isTurn = false }: { readonly nowMs?: number; readonly isTurn?: boolean }): Promise<void> {
    if (this.#gone !== undefined) return Promise.resolve();
    return new Promise((resolve) => {
      // What waits together goes together, unless the guest's time changes in between.
      const last = this.#waiting.at(-1);
      if (last !== undefined && nowMs === undefined && last.texts.length > 0) {
        last.texts.push(...texts);
        last.done.push(resolve);
      } else this.#waiting.push({ texts: [...texts], nowMs, isTurn, done: [resolve] });
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
        if (next.texts.length > 0) await this.#deliver(next);
        for (const resolve of next.done) resolve();
      }
    } finally {
      this.#isBusy = false;
    }
  }

  async #deliver({ texts, nowMs, isTurn }: Waiting): Promise<void> {
    if (this.#gone !== undefined) return;
    const { limits } = this.#options;
    if (isTurn) {
      this.#turnCpuMs = 0;
      await this.#relocated();
    }
    if (nowMs !== undefined) this.#nowMs = nowMs;
    this.deliveries++;
    const cpuLeftMs = limits.turnCpuMs - this.#turnCpuMs;
    const outstanding = { frames: this.frames.frames, chars: this.frames.chars };
    const delivery = { texts, nowMs: this.#nowMs, cpuLeftMs, outstanding };
    try {
      this.#take(await this.link.call({ kind: "deliver", vm: this.vm, delivery }));
    } catch (error) {
      this.lose(error instanceof Error ? error : new HoldfastError("internal", "the sandbox failed", { cause: error }));
    }
  }

  async #relocated(): Promise<void> {
    try {
      await this.relocate?.();
    } catch (error) {
      this.lose(error instanceof Error ? error : new HoldfastError("internal", "the sandbox failed", { cause: error }));
    }
  }

  #take(slice: Slice): void {
    if (this.#gone !== undefined) return;
    const { limits, onConsole, onSlow, slowSliceCpuMs } = this.#options;
    this.#turnCpuMs += slice.cpuMs;
    for (const [index, bytes] of slice.frames.entries()) this.frames.push(bytes, slice.frameChars[index]!);
    for (const { id, afterMs } of slice.timers) {
      if (afterMs === undefined) this.timers.clear(id);
      else this.timers.set(id, afterMs, this.#nowMs);
    }
    for (const text of slice.console) onConsole?.(text);
    if (slice.cpuMs >= slowSliceCpuMs) onSlow();
    if (slice.fault !== undefined) this.#fail(slice.fault);
    else if (this.timers.size > limits.timers) {
      const message = `the harness set more than ${limits.timers} timers`;
      this.#fail({ code: "resource_exhausted", message, detail: "" });
      void this.link.call({ kind: "drop", vm: this.vm }).catch(() => undefined);
    }
  }

  /** The guest went too far: its turn has failed, and doing it again would end the same way. */
  #fail(fault: Fault): void {
    const { sessionUid, log } = this.#options;
    log.log("warn", "a guest of the quickjs runtime was ended", { session: sessionUid, code: fault.code, why: fault.message });
    const cause = new HoldfastError(fault.code, fault.message, { details: { detail: fault.detail } });
    this.lose(new HarnessFailure(ERROR_CODES[fault.code].grpc, fault.message, { cause }));
  }
}

function textOf(message: DoorMessage): string {
  return JSON.stringify(message);
}
