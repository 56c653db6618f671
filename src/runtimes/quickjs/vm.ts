/**
 * One VM, in the worker thread that holds it.
 *
 * Invariants:
 * - Between calls of this class no guest frame is on the stack, so a capture is always of a VM at rest.
 * - A guest that exceeds a bound, or leaves the engine by an exception that it cannot catch, is gone: the VM is never entered again.
 * - What a timer or a job of the guest does not catch is printed to its console, and the VM goes on, as an event loop does.
 * - The engine is never in a VM for long, whether it looks at its interrupt handler or not.
 */

import { JSException, QuickJS, type JSValueHandle, type QuickJSOptions } from "quickjs-wasi";
import { HoldfastError } from "../../base/index.ts";
import type { DoorMessage } from "./guest/door.ts";
import { ranInTime } from "./hung-engine.ts";
import type { QuickJsLimits } from "./limits.ts";
import { applyDeltas, deltaOf, PAGE_BYTES, pageOf, type DeltaWriter } from "./memory-delta.ts";
import type { Delivery, EngineState, Fault, RawMemory, Slice } from "./messages.ts";
import { Outbox } from "./outbox.ts";
import { StoredPages } from "./stored-pages.ts";
import { cpuMs, faultOf, MEMORY_FAULT } from "./worker-faults.ts";

/** The time at the boot: none yet. A script that looks at the clock while it loads sees the epoch, everywhere. */
export const BOOT_MS = 0;

/** A larger heap is left to the engine's own pace: going over it takes 0.4 ms for each MiB. */
const COLLECTED_BYTES_MAX = 16 * 2 ** 20;

/** Timers that are due together are fired until so much processor time has passed; the others wait, so that neighbours have their turn. */
const FIRING_CPU_MS = 20;

/** The name under which guests hold the host's function. */
const HOST_POST = "holdfast.post";

const OVER_TIME: Fault = {
  code: "resource_exhausted",
  message: "the harness used more processor time than it may at once or in a turn",
  detail: "interrupted",
};

const STARVED: Fault = {
  code: "unavailable",
  message: "harness: its sandbox was given too little processor time and was ended; the turn is interrupted and can be resumed",
  detail: "the machine is overloaded",
};

/** A memory that VMs begin with, unpacked once for all of them. */
export interface Base {
  readonly state: EngineState;
  readonly pages: ReadonlyMap<number, Uint8Array>;
}

/** What a VM is made of. */
export interface LoadedFrom {
  readonly base: Base;
  readonly memoryBytes: number;
  /** Packed. */
  readonly deltas: readonly Uint8Array[];
  /** Whether that is stored. */
  readonly isKept: boolean;
  /** The memory as it is, in the place of the deltas. */
  readonly raw?: RawMemory | undefined;
}

/** A VM. */
export class GuestVm {
  nowMs = BOOT_MS;
  readonly #limits: QuickJsLimits;
  readonly #outbox: Outbox;
  #vm!: QuickJS;
  #base: Base | undefined;
  /** Pages as they were at the last capture that is stored, where they are not the base's. */
  #stored = new StoredPages(0);
  #deadlineCpuMs = Number.POSITIVE_INFINITY;
  #fault: Fault | undefined;

  private constructor(limits: QuickJsLimits) {
    this.#limits = limits;
    this.#outbox = new Outbox(limits);
  }

  /** Boots from scratch: the prelude, then the script. */
  static async boot(wasm: WebAssembly.Module, limits: QuickJsLimits, prelude: string, script: string): Promise<GuestVm> {
    const guest = new GuestVm(limits);
    const vm = await QuickJS.create(guest.#options(wasm));
    guest.#vm = vm;
    const fault = guest.#enter(limits.turnCpuMs, () => {
      using install = vm.evalCode(prelude, "holdfast-prelude.js");
      using post = vm.newFunction(HOST_POST, guest.#hostPost());
      vm.callFunction(install, vm.undefined, post).dispose();
      vm.evalCode(script, "harness.js").dispose();
      vm.executePendingJobs();
    });
    if (fault === undefined) vm.evalCode("typeof holdfastDoor.receive === 'function'").consume(refuseUnserved);
    else throw new HoldfastError(fault.code, `the harness's script does not load: ${fault.message}`, { cause: fault.detail });
    return guest;
  }

  /** Makes a VM of a base and what changed since. */
  static async load(wasm: WebAssembly.Module, limits: QuickJsLimits, from: LoadedFrom): Promise<GuestVm> {
    const guest = new GuestVm(limits);
    const { base, memoryBytes, deltas, isKept, raw } = from;
    guest.#base = base;
    // An empty memory of the right length: copying the zero pages too would make each VM twice as large.
    const memory: Uint8Array = Object.defineProperty(new Uint8Array(0), "byteLength", { value: memoryBytes });
    guest.#vm = await QuickJS.restore({ ...base.state, memory, extensions: [] }, guest.#options(wasm));
    const live = guest.memory();
    if (raw === undefined) for (const [number, bytes] of base.pages) live.set(bytes, number * PAGE_BYTES);
    else copyPages(raw.bytes, live);
    const changed = applyDeltas(live, deltas);
    const exports = guest.#exports();
    // oxlint-disable-next-line no-underscore-dangle -- it is called that.
    exports.__stack_pointer.value = base.state.stackPointer;
    exports.qjs_set_memory_limit(limits.memoryBytes);
    exports.qjs_set_max_stack_size(limits.stackBytes);
    if (raw !== undefined) guest.#keep(raw.stored.numbers, (index) => pageOf(raw.stored.bytes, index));
    else if (isKept) guest.#keep([...changed], (_index, number) => pageOf(live, number));
    guest.#vm.registerHostCallback(HOST_POST, guest.#hostPost());
    return guest;
  }

  /** Its memory, as it is now; a view that the next entry may make stale. */
  memory(): Uint8Array {
    return new Uint8Array(this.#exports().memory.buffer);
  }

  /** Where things are in the memory. */
  state(): EngineState {
    const exports = this.#exports();
    // oxlint-disable-next-line no-underscore-dangle -- it is called that.
    const stackPointer = Number(exports.__stack_pointer.value);
    const runtimePtr = exports.qjs_get_runtime_ptr();
    return { memoryBytes: exports.memory.buffer.byteLength, stackPointer, runtimePtr, contextPtr: exports.qjs_get_context_ptr() };
  }

  /** What changed since the last call, which is taken to be stored; `isWhole`: since the base. */
  capture(isWhole: boolean): DeltaWriter {
    // Garbage is not captured, and memory that is free again is used again: turns that do the same change the same pages.
    if (this.#vm.getAllocatedSize() <= COLLECTED_BYTES_MAX) this.#vm.runGC();
    if (isWhole) this.#stored = new StoredPages(this.memory().length);
    const stored = this.#stored;
    return this.#since(stored, (number, page) => stored.set(number, page));
  }

  /** All of it, for another thread. */
  export(): RawMemory {
    return { bytes: this.memory().slice(), stored: this.#stored.all() };
  }

  #since(stored: StoredPages | undefined, onChanged?: (number: number, page: Uint8Array) => void): DeltaWriter {
    const base = this.#base?.pages;
    return deltaOf(this.memory(), (number) => stored?.get(number) ?? base?.get(number), onChanged);
  }

  /** Takes pages for stored. */
  #keep(numbers: Iterable<number>, page: (index: number, number: number) => Uint8Array): void {
    this.#stored = new StoredPages(this.memory().length);
    let index = 0;
    for (const number of numbers) this.#stored.set(number, page(index++, number));
  }

  /** Hands texts and timers to the guest and lets it work until it waits again. */
  deliver({ texts, nowMs, timers, cpuLeftMs, outstanding }: Delivery): Slice {
    const vm = this.#vm;
    this.nowMs = nowMs;
    this.#outbox.open(outstanding);
    const startMs = cpuMs();
    let fired = 0;
    const fault = this.#enter(Math.min(this.#limits.sliceCpuMs, cpuLeftMs), () => {
      using receive = vm.global.getProp("__recv");
      for (const text of texts) {
        using argument = vm.newString(text);
        vm.callFunction(receive, vm.undefined, argument).dispose();
        this.#runJobs();
      }
      for (const timer of timers) {
        const usedMs = cpuMs() - startMs;
        if (fired > 0 && usedMs >= FIRING_CPU_MS) break;
        this.#deadlineCpuMs = startMs + Math.min(usedMs + this.#limits.sliceCpuMs, cpuLeftMs);
        this.nowMs = Math.max(this.nowMs, timer.nowMs);
        fired++;
        this.#fire(receive, timer.id);
      }
    });
    return { ...this.#outbox.taken(), cpuMs: cpuMs() - startMs, fired, fault };
  }

  /** Lets the memory go. */
  dispose(): void {
    this.#vm.dispose();
  }

  #fire(receive: JSValueHandle, id: number): void {
    this.#orPrint(() => {
      using argument = this.#vm.newString(JSON.stringify({ kind: "timer", id } satisfies DoorMessage));
      this.#vm.callFunction(receive, this.#vm.undefined, argument).dispose();
    });
    this.#runJobs();
  }

  /** Runs what the guest's promises wait with, until nothing does. */
  #runJobs(): void {
    while (!this.#orPrint(() => this.#vm.executePendingJobs())) if (this.#isOver()) throw new Error("interrupted");
  }

  /** Whether `work` ended without an exception. One that costs no more than itself is printed to the guest's console. */
  #orPrint(work: () => void): boolean {
    try {
      work();
      return true;
    } catch (error) {
      const fault = faultOf(error);
      const isFatal = this.#fault !== undefined || fault.message === MEMORY_FAULT;
      if (error instanceof JSException) error.handle.dispose();
      if (isFatal) throw error;
      this.#outbox.print(`Uncaught ${fault.detail}`);
      return false;
    }
  }

  /** Runs `work` in the guest under a bound; what stops it for good is the answer. */
  #enter(cpuLeftMs: number, work: () => void): Fault | undefined {
    const startMs = cpuMs();
    this.#deadlineCpuMs = startMs + cpuLeftMs;
    try {
      if (!ranInTime(work, cpuLeftMs)) this.#fault ??= cpuMs() - startMs < cpuLeftMs ? STARVED : OVER_TIME;
    } catch (error) {
      // An exception that the guest did not catch is bad enough: what it was doing is half done.
      this.#fault ??= faultOf(error);
    } finally {
      this.#deadlineCpuMs = Number.POSITIVE_INFINITY;
    }
    return this.#fault;
  }

  #options(wasm: WebAssembly.Module): QuickJSOptions {
    const { memoryBytes: memoryLimit, stackBytes: maxStackSize } = this.#limits;
    return {
      wasm,
      memoryLimit,
      maxStackSize,
      timezoneOffset: 0,
      interruptHandler: () => this.#isOver(),
      wasi: (memory) => ({
        clock_time_get: (_clock: number, _precision: bigint, resultPtr: number) => {
          new DataView(memory.buffer).setBigUint64(resultPtr, BigInt(Math.round(this.nowMs)) * 1_000_000n, true);
          return 0;
        },
        // The engine's own randomness, of hash tables and the like. The guest's is the prelude's, from the turn's seed.
        random_get: (ptr: number, length: number) => {
          new Uint8Array(memory.buffer, ptr, length).fill(0);
          return 0;
        },
        // The engine prints only where it gives up; a worker has nobody to tell.
        fd_write: () => 0,
      }),
    };
  }

  /** The engine's own functions: what the package has no method for. Its version is pinned. */
  #exports() {
    // oxlint-disable-next-line no-underscore-dangle -- it is called that.
    return this.#vm._getExports();
  }

  #isOver(): boolean {
    if (this.#fault !== undefined) return true;
    if (cpuMs() < this.#deadlineCpuMs) return false;
    this.#fault = OVER_TIME;
    return true;
  }

  /** The host's one function. It never throws into the guest; a guest that goes too far is stopped at the next instruction. */
  #hostPost() {
    const { undefined: nothing, true: refused } = this.#vm;
    return (...handles: readonly { readonly isString: boolean; toString(): string }[]) => {
      const [word, text] = handles;
      if (this.#fault === undefined && word?.isString === true && text?.isString === true) {
        try {
          if (!this.#outbox.post(word.toString(), text.toString(), this.nowMs)) return refused;
        } catch (error) {
          this.#fault = faultOf(error);
        }
      }
      return nothing;
    };
  }
}

/** A script that has loaded and serves nothing would be asked in vain. */
function refuseUnserved(isServed: { toBoolean(): boolean }): void {
  if (isServed.toBoolean()) return;
  const message = "harness: its script must serve a harness at the sandbox's door, as serveHarness of holdfast/harness does";
  throw new HoldfastError("failed_precondition", message);
}

/** Copies what is not zero: memory takes room only where it is written to. */
function copyPages(from: Uint8Array, to: Uint8Array): void {
  for (let number = 0; number * PAGE_BYTES < from.length; number++) {
    const page = pageOf(from, number);
    if (Buffer.compare(page, ZERO) !== 0) to.set(page, number * PAGE_BYTES);
  }
}

const ZERO = new Uint8Array(PAGE_BYTES);
