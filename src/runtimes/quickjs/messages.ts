/** What passes between the runtime and a worker thread that holds VMs. Everything here survives structured cloning. */

import type { ErrorCode } from "../../base/index.ts";
import type { QuickJsLimits } from "./limits.ts";

/** The parts of a VM's state beside its pages: places in its memory, which never change after the boot. */
export interface EngineState {
  readonly memoryBytes: number;
  readonly stackPointer: number;
  readonly runtimePtr: number;
  readonly contextPtr: number;
}

/** A memory to begin with: its pages, packed, and where things are in it. */
export interface PackedImage {
  readonly state: EngineState;
  readonly pages: Uint8Array;
}

/** A VM as it is, handed from thread to thread. */
export interface RawMemory {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Pages as they were at the last capture that is stored, where they are not the base's: their numbers, and their bytes one after the other. */
  readonly stored: { readonly numbers: Uint32Array<ArrayBuffer>; readonly bytes: Uint8Array<ArrayBuffer> };
}

/** What a worker is started with. */
export interface WorkerStart {
  readonly wasm: WebAssembly.Module;
  readonly limits: QuickJsLimits;
  /** Whether it is to wait for everybody else's work. */
  readonly isLowPriority: boolean;
}

/** What the guest asked of the host in one delivery, beside frames. */
export interface TimerRequest {
  readonly id: number;
  /** Milliseconds from `nowMs`; undefined to give the timer up. */
  readonly afterMs: number | undefined;
  /** The time that the guest saw as it asked. */
  readonly nowMs: number;
}

/** A fault of one VM, or of one request. */
export interface Fault {
  readonly code: ErrorCode;
  readonly message: string;
  /** What was caught, for the log. */
  readonly detail: string;
}

/** What one delivery gave. */
export interface Slice {
  /** Frames in protobuf, in order. */
  readonly frames: readonly Uint8Array[];
  /** The length of each as text, which is what is bounded. */
  readonly frameChars: readonly number[];
  readonly timers: readonly TimerRequest[];
  readonly console: readonly string[];
  readonly cpuMs: number;
  /** How many of the timers have fired; the others have to be delivered again. */
  readonly fired: number;
  /** Set when the VM is gone because of this delivery. */
  readonly fault?: Fault | undefined;
}

/** What is delivered to a VM. */
export interface Delivery {
  /** Texts for `__recv`, in order. */
  readonly texts: readonly string[];
  /** The time that the guest sees from now on. */
  readonly nowMs: number;
  /** Timers to fire after the texts, in order, each with the time that the guest then sees at least. */
  readonly timers: readonly { readonly id: number; readonly nowMs: number }[];
  /** Processor time that the turn has left. */
  readonly cpuLeftMs: number;
  /** What was posted before and is not taken yet. */
  readonly outstanding: { readonly frames: number; readonly chars: number };
}

export type WorkerRequest =
  /** Boots a VM from scratch, runs the prelude and the script, answers its memory and forgets it. */
  | { readonly kind: "boot"; readonly prelude: string; readonly script: string }
  /** Keeps a base under a name, for all VMs that begin with it. */
  | { readonly kind: "base"; readonly base: string; readonly image: PackedImage }
  /**
   * Makes a VM of a base and deltas, or of what another thread handed over. `isKept`: the deltas are stored, so that the next capture is what
   * changed since.
   */
  | {
      readonly kind: "load";
      readonly vm: number;
      readonly base: string;
      readonly memoryBytes: number;
      readonly deltas: readonly Uint8Array[];
      readonly isKept: boolean;
      readonly raw?: RawMemory | undefined;
      readonly nowMs: number;
    }
  | { readonly kind: "deliver"; readonly vm: number; readonly delivery: Delivery }
  /** What changed since the last capture (`whole`: since the base). The VM must be waiting, as it is between requests. */
  | { readonly kind: "capture"; readonly vm: number; readonly isWhole: boolean }
  /** All of a VM, for another thread. */
  | { readonly kind: "export"; readonly vm: number }
  | { readonly kind: "merge"; readonly deltas: readonly Uint8Array[]; readonly memoryBytes: number }
  | { readonly kind: "drop"; readonly vm: number }
  /** Gives the memory of dropped VMs back. */
  | { readonly kind: "collect" };

/** Processor time that others on the thread waited for. */
export interface Cost {
  readonly cpuMs: number;
}

/** The answer to each kind of request. */
export interface WorkerAnswers {
  readonly boot: PackedImage;
  readonly base: undefined;
  readonly load: Cost;
  readonly deliver: Slice;
  /** `pages`: how many changed. */
  readonly capture: Cost & { readonly memoryBytes: number; readonly pages: number; readonly delta: Uint8Array };
  readonly export: RawMemory;
  readonly merge: Uint8Array;
  readonly drop: undefined;
  readonly collect: undefined;
}

/** One request with its number, and one answer or fault. */
export interface WorkerCall {
  readonly call: number;
  readonly request: WorkerRequest;
}
export type WorkerReply =
  | { readonly call: number; readonly answer: WorkerAnswers[WorkerRequest["kind"]] }
  | { readonly call: number; readonly fault: Fault };
