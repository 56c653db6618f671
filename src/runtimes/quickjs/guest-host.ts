/**
 * The VMs of one script: boots the base they begin with, loads them onto worker threads, and moves a slow one out of the others' way.
 */

import { HoldfastError, type Clock, type Digest, type Log, type SessionUid } from "../../base/index.ts";
import type { Engine } from "./engine.ts";
import { PRELUDE } from "./guest/prelude.ts";
import type { WaitingTimer } from "./guest-timers.ts";
import type { QuickJsLimits } from "./limits.ts";
import { plainBytesOf } from "./memory-delta.ts";
import type { RawMemory } from "./messages.ts";
import { Sandbox, WHOLE_FACTOR } from "./sandbox.ts";
import type { SnapshotStore, StoredBase } from "./snapshot-store.ts";
import { WorkerLink } from "./worker-link.ts";
import { WorkerPool, type Lane } from "./worker-pool.ts";

/** What VMs are made with. */
export interface GuestHostOptions {
  readonly engine: Engine;
  readonly script: string;
  readonly store: SnapshotStore;
  readonly limits: QuickJsLimits;
  readonly clock: Clock;
  readonly digest: Digest;
  readonly log: Log;
  readonly quickWorkers: number;
  readonly slowSliceCpuMs: number;
  readonly hungAfterMs: number;
  readonly onConsole: ((session: SessionUid, text: string) => void) | undefined;
  /** A session's guest went too far; `inTimer`: as a timer of it fired. */
  readonly onFault: (session: SessionUid, inTimer: boolean) => void;
}

/** What a VM begins with. */
export interface Beginning {
  readonly base: StoredBase;
  readonly memoryBytes: number;
  readonly deltas: readonly Uint8Array[];
  /** Whether the deltas are this session's own stored layers: the next capture is then what changed since. */
  readonly isKept: boolean;
  /** Whose memory it was, where it is a fork's. */
  readonly forkOf?: SessionUid | undefined;
  readonly timers: readonly WaitingTimer[];
  readonly nowMs: number;
}

/** Makes VMs. */
export class GuestHost {
  readonly #options: GuestHostOptions;
  readonly #pool: WorkerPool;
  #base: Promise<StoredBase> | undefined;
  #vms = 0;

  constructor(options: GuestHostOptions) {
    this.#options = options;
    const { engine, limits, clock, log, hungAfterMs } = options;
    this.#pool = new WorkerPool(options.quickWorkers, (name, lane) => {
      const start = { wasm: engine.wasm, limits, isLowPriority: lane === "slow" };
      return new WorkerLink({ start, name, clock, log, hungAfterMs });
    });
  }

  /** A fresh VM's beginning: the script has just been loaded. It is booted once. */
  async fresh(): Promise<Beginning> {
    const base = await this.#booted();
    return { base, memoryBytes: base.image.state.memoryBytes, deltas: [], isKept: true, timers: [], nowMs: 0 };
  }

  /** Starts a VM for a session. */
  async start(session: SessionUid, beginning: Beginning): Promise<Sandbox> {
    const vm = ++this.#vms;
    // A fork costs others what its parent did.
    if (beginning.forkOf !== undefined && this.#pool.laneOf(beginning.forkOf) === "slow") this.#pool.slowDown(session);
    let lane = this.#pool.laneOf(session);
    const { link, cpuMs } = await this.#load(vm, beginning, lane);
    if (cpuMs >= WHOLE_FACTOR * this.#options.slowSliceCpuMs) this.#pool.slowDown(session);
    const { limits, clock, digest, log, slowSliceCpuMs, onConsole, onFault } = this.#options;
    const sandbox = new Sandbox(vm, link, {
      sessionUid: session,
      limits,
      clock,
      digest,
      log,
      slowSliceCpuMs,
      onSlow: () => this.#pool.slowDown(session),
      onFault: (inTimer) => onFault(session, inTimer),
      onConsole: onConsole === undefined ? undefined : (text) => onConsole(session, text),
      nowMs: beginning.nowMs,
      timers: beginning.timers,
    });
    sandbox.relocate = async () => {
      if (this.#pool.laneOf(session) === lane) return;
      lane = this.#pool.laneOf(session);
      await this.#move(sandbox, beginning.base, lane);
    };
    return sandbox;
  }

  /** Merges packed pages on whichever thread has the least to do; many of them where nobody is kept waiting, and a part at a time. */
  async merge(deltas: readonly Uint8Array[], memoryBytes: number): Promise<Uint8Array> {
    const isLittle = deltas.reduce((bytes, delta) => bytes + plainBytesOf(delta), 0) <= MERGED_BYTES_LITTLE;
    let left = deltas;
    do {
      const count = mergedAtOnce(left);
      const merged = await this.#pool
        .worker(isLittle ? "quick" : "slow")
        .call({ kind: "merge", deltas: left.slice(0, count), memoryBytes });
      left = [merged, ...left.slice(count)];
    } while (left.length > 1);
    return left[0]!;
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }

  #booted(): Promise<StoredBase> {
    if (this.#base !== undefined) return this.#base;
    const booted = this.#boot();
    this.#base = booted;
    booted.catch(() => (this.#base = undefined));
    return booted;
  }

  async #boot(): Promise<StoredBase> {
    const { script, store } = this.#options;
    // A script is hostile until it has loaded: it waits apart, where there is anybody to be kept waiting.
    const quick = this.#pool.worker("quick");
    const apart = quick.lost.size === 0 ? quick : this.#pool.worker("slow");
    const image = await apart.call({ kind: "boot", prelude: PRELUDE, script });
    return store.putBase(image);
  }

  async #load(
    vm: number,
    beginning: Beginning,
    lane: Lane,
    raw?: RawMemory,
  ): Promise<{ readonly link: WorkerLink; readonly cpuMs: number }> {
    const { base, memoryBytes, deltas, isKept, nowMs } = beginning;
    const link = this.#pool.worker(lane);
    // Counted from now on, so that the next one is placed elsewhere.
    link.lost.set(vm, () => undefined);
    try {
      await link.useBase(base.ref.digest, base.image);
      const handedOver = raw === undefined ? [] : [raw.bytes.buffer, raw.stored.numbers.buffer, raw.stored.bytes.buffer];
      const request = { kind: "load", vm, base: base.ref.digest, memoryBytes, deltas, isKept, raw, nowMs } as const;
      const { cpuMs } = await link.call(request, handedOver);
      return { link, cpuMs };
    } catch (error) {
      link.lost.delete(vm);
      throw error;
    }
  }

  async #move(sandbox: Sandbox, base: StoredBase, lane: Lane): Promise<void> {
    const { link: from, vm } = sandbox;
    const raw = await from.call({ kind: "export", vm });
    const beginning = { base, memoryBytes: raw.bytes.length, deltas: [], isKept: true, timers: [], nowMs: sandbox.nowMs };
    const { link } = await this.#load(vm, beginning, lane, raw);
    if (sandbox.isGone) {
      await link.call({ kind: "drop", vm });
      throw new HoldfastError("unavailable", "the sandbox is gone");
    }
    from.lost.delete(vm);
    link.lost.set(vm, (fault) => sandbox.lose(fault));
    sandbox.link = link;
    await from.call({ kind: "drop", vm }).catch(() => undefined);
  }
}

/** What one merge reads before it lets others have their turn. */
const MERGED_BYTES_MAX = 8 * 2 ** 20;
/** Merges that read no more keep nobody waiting. */
const MERGED_BYTES_LITTLE = 2 ** 20;

/** How many of the first deltas are merged at once: two at least. */
function mergedAtOnce(deltas: readonly Uint8Array[]): number {
  let bytes = 0;
  const tooMany = deltas.findIndex((delta) => (bytes += plainBytesOf(delta)) > MERGED_BYTES_MAX);
  return tooMany < 0 ? deltas.length : Math.max(2, tooMany);
}
