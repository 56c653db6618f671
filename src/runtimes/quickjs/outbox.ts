/**
 * What a guest posts while it works, until the host takes it: validated, and bounded in size and in number.
 */

import { HoldfastError } from "../../base/index.ts";
import { harnessFrameBytes, tooLarge } from "./door-json.ts";
import type { QuickJsLimits } from "./limits.ts";
import type { Delivery, Slice, TimerRequest } from "./messages.ts";

interface Posted {
  readonly frames: Uint8Array[];
  readonly frameChars: number[];
  readonly timers: Map<number, TimerRequest>;
  readonly console: string[];
}

const nothing = (): Posted => ({ frames: [], frameChars: [], timers: new Map(), console: [] });

/** One VM's. */
export class Outbox {
  readonly #limits: QuickJsLimits;
  #posted = nothing();
  #outstanding = { frames: 0, chars: 0 };
  #consoleChars = 0;

  constructor(limits: QuickJsLimits) {
    this.#limits = limits;
  }

  /** A delivery begins; `outstanding` is what was taken from here before and not by the host's consumer. */
  open(outstanding: Delivery["outstanding"]): void {
    this.#outstanding = { ...outstanding };
    this.#consoleChars = 0;
  }

  /** All that was posted; it is empty then. */
  taken(): Omit<Slice, "cpuMs" | "fired" | "fault"> {
    const { timers, ...posted } = this.#posted;
    this.#posted = nothing();
    return { ...posted, timers: [...timers.values()] };
  }

  /**
   * Takes one word of the guest, its text and the time that the guest sees. False for a frame that is none; nothing of it is taken. Throws
   * RESOURCE_EXHAUSTED for what goes too far.
   */
  post(word: string, text: string, nowMs: number): boolean {
    const { frameChars, framesOutstanding, frameCharsOutstanding } = this.#limits;
    switch (word) {
      case "frame": {
        if (text.length > frameChars) throw tooLarge(this.#limits);
        const bytes = this.#frameBytes(text);
        if (bytes === undefined) return false;
        this.#outstanding.frames++;
        this.#outstanding.chars += text.length;
        if (this.#outstanding.frames > framesOutstanding || this.#outstanding.chars > frameCharsOutstanding) {
          throw new HoldfastError("resource_exhausted", "the harness sent more than the host had room for, without waiting");
        }
        this.#posted.frames.push(bytes);
        this.#posted.frameChars.push(text.length);
        return true;
      }
      case "timer":
      case "clear":
        this.#timer(word, text, nowMs);
        return true;
      case "console":
        this.print(text);
        return true;
      default:
        return true;
    }
  }

  #frameBytes(text: string): Uint8Array | undefined {
    try {
      return harnessFrameBytes(text, this.#limits);
    } catch (error) {
      if (error instanceof HoldfastError && error.code === "invalid_argument") return undefined;
      throw error;
    }
  }

  /** Adds a line to the guest's console, where there is room. */
  print(text: string): void {
    const room = this.#limits.consoleChars - this.#consoleChars;
    if (room <= 0) return;
    this.#consoleChars += text.length + 1;
    this.#posted.console.push(text.slice(0, room));
  }

  /** A timer that was set since the last delivery is not known outside: clearing it is forgetting it. */
  #timer(word: "timer" | "clear", text: string, nowMs: number): void {
    const [id, afterMs] = text.split(" ").map(Number);
    if (!Number.isSafeInteger(id)) return;
    const { timers } = this.#posted;
    if (word === "clear" && timers.get(id!)?.afterMs !== undefined) timers.delete(id!);
    else timers.set(id!, { id: id!, afterMs: word === "timer" && afterMs! >= 0 ? afterMs : undefined, nowMs });
    if (timers.size > 2 * this.#limits.timers) {
      throw new HoldfastError("resource_exhausted", `the harness set more than ${this.#limits.timers} timers`);
    }
  }
}
