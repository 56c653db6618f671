/**
 * Guest code: text coding and cancelling. Each function is sent into the VM as its own source text and refers to nothing but its
 * parameters and the guest's globals.
 */

import type { GuestGlobal } from "./door.ts";

/** `TextEncoder`. */
export function installTextEncoder(global: GuestGlobal): void {
  const encode = (input: unknown = ""): Uint8Array => {
    const text = String(input);
    const bytes = new Uint8Array(text.length * 3);
    let at = 0;
    for (let index = 0; index < text.length; index++) {
      let code = text.codePointAt(index)!;
      if (code > 0xffff) index++;
      else if (code >= 0xd800 && code <= 0xdfff) code = 0xfffd;
      if (code < 0x80) bytes[at++] = code;
      else if (code < 0x800) {
        bytes[at++] = 0xc0 | (code >> 6);
        bytes[at++] = 0x80 | (code & 63);
      } else if (code < 0x10000) {
        bytes[at++] = 0xe0 | (code >> 12);
        bytes[at++] = 0x80 | ((code >> 6) & 63);
        bytes[at++] = 0x80 | (code & 63);
      } else {
        bytes[at++] = 0xf0 | (code >> 18);
        bytes[at++] = 0x80 | ((code >> 12) & 63);
        bytes[at++] = 0x80 | ((code >> 6) & 63);
        bytes[at++] = 0x80 | (code & 63);
      }
    }
    return bytes.slice(0, at);
  };
  global["TextEncoder"] = class TextEncoder {
    readonly encoding = "utf-8";
    encode(input?: string): Uint8Array {
      return encode(input);
    }
    encodeInto(source: string, destination: Uint8Array): { read: number; written: number } {
      let read = 0;
      let written = 0;
      for (const character of source) {
        const bytes = encode(character);
        if (written + bytes.length > destination.length) break;
        destination.set(bytes, written);
        written += bytes.length;
        read += character.length;
      }
      return { read, written };
    }
  };
}

/** `TextDecoder`, of UTF-8 alone. */
export function installTextDecoder(global: GuestGlobal): void {
  // How many bytes follow a first one, and between what the second must lie: no overlong form, no surrogate, nothing above U+10FFFF.
  const shape = (first: number): readonly [more: number, least: number, most: number] => {
    if (first >= 0xc2 && first <= 0xdf) return [1, 0x80, 0xbf];
    if (first >= 0xe0 && first <= 0xef) return [2, first === 0xe0 ? 0xa0 : 0x80, first === 0xed ? 0x9f : 0xbf];
    if (first >= 0xf0 && first <= 0xf4) return [3, first === 0xf0 ? 0x90 : 0x80, first === 0xf4 ? 0x8f : 0xbf];
    return [-1, 0, 0];
  };
  const decode = (bytes: Uint8Array, isFatal: boolean): string => {
    const parts: string[] = [];
    let codes: number[] = [];
    const broken = (): number => {
      if (isFatal) throw new TypeError("the bytes are not UTF-8");
      return 0xfffd;
    };
    for (let index = 0; index < bytes.length;) {
      const first = bytes[index++]!;
      let code = first;
      if (first >= 0x80) {
        let [more, least, most] = shape(first);
        code = more < 0 ? broken() : first & (0x3f >> more);
        for (; more > 0; more--) {
          const byte = bytes[index];
          if (byte === undefined || byte < least || byte > most) {
            code = broken();
            break;
          }
          code = (code << 6) | (byte & 63);
          [least, most] = [0x80, 0xbf];
          index++;
        }
      }
      codes.push(code);
      if (codes.length >= 4096) {
        parts.push(String.fromCodePoint(...codes));
        codes = [];
      }
    }
    return parts.join("") + String.fromCodePoint(...codes);
  };

  global["TextDecoder"] = class TextDecoder {
    readonly encoding = "utf-8";
    readonly fatal: boolean;
    readonly ignoreBOM: boolean;
    constructor(label = "utf-8", options: { readonly fatal?: boolean; readonly ignoreBOM?: boolean } = {}) {
      if (!/^\s*(utf-?8|unicode-1-1-utf-8)\s*$/i.test(label)) throw new RangeError("only UTF-8 is known here");
      this.fatal = options.fatal === true;
      this.ignoreBOM = options.ignoreBOM === true;
    }
    decode(input?: ArrayBuffer | ArrayBufferView): string {
      if (input === undefined) return "";
      const view = input instanceof ArrayBuffer ? new Uint8Array(input) : new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
      const text = decode(view, this.fatal);
      return !this.ignoreBOM && text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
    }
  };
}

/** `AbortController` and `AbortSignal`, with the part of `EventTarget` that they need. */
export function installAbort(global: GuestGlobal): void {
  type Listener = (event: { readonly type: "abort"; readonly target: unknown }) => void;
  type Heard = { readonly listener: Listener | { handleEvent: Listener }; readonly isOnce: boolean };
  const named = (name: string, message: string): Error => {
    const error = new Error(message);
    error.name = name;
    return error;
  };
  const KEY = Symbol("made here");

  class AbortSignal {
    aborted = false;
    reason: unknown = undefined;
    onabort: Listener | null = null;
    #heard: Heard[] = [];

    constructor(key: unknown) {
      if (key !== KEY) throw new TypeError("an AbortSignal is made by an AbortController");
    }
    throwIfAborted(): void {
      if (this.aborted) throw this.reason;
    }
    addEventListener(type: string, listener: Heard["listener"], options?: boolean | { readonly once?: boolean }): void {
      if (type !== "abort" || listener === null || listener === undefined) return;
      if (this.#heard.some((heard) => heard.listener === listener)) return;
      this.#heard.push({ listener, isOnce: typeof options === "object" && options.once === true });
    }
    removeEventListener(type: string, listener: Heard["listener"]): void {
      if (type === "abort") this.#heard = this.#heard.filter((heard) => heard.listener !== listener);
    }
    dispatchEvent(): boolean {
      const event = { type: "abort", target: this } as const;
      const heard = this.#heard;
      this.#heard = heard.filter(({ isOnce }) => !isOnce);
      this.onabort?.(event);
      for (const { listener } of heard) {
        if (typeof listener === "function") listener.call(this, event);
        else listener.handleEvent(event);
      }
      return true;
    }
    static abort(reason?: unknown): AbortSignal {
      const controller = new AbortController();
      controller.abort(reason);
      return controller.signal;
    }
    static timeout(ms: number): AbortSignal {
      const controller = new AbortController();
      const setTimer = global["setTimeout"] as (run: () => void, ms: number) => number;
      setTimer(() => controller.abort(named("TimeoutError", "the time is over")), ms);
      return controller.signal;
    }
    static any(signals: Iterable<AbortSignal>): AbortSignal {
      const controller = new AbortController();
      for (const signal of signals) {
        if (signal.aborted) {
          controller.abort(signal.reason);
          break;
        }
        signal.addEventListener("abort", () => controller.abort(signal.reason), { once: true });
      }
      return controller.signal;
    }
  }

  class AbortController {
    readonly signal = new AbortSignal(KEY);
    abort(reason: unknown = named("AbortError", "this was aborted")): void {
      if (this.signal.aborted) return;
      this.signal.aborted = true;
      this.signal.reason = reason;
      this.signal.dispatchEvent();
    }
  }
  global["AbortSignal"] = AbortSignal;
  global["AbortController"] = AbortController;
}
