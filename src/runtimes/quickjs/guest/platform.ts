/**
 * Guest code: what a JavaScript platform has and QuickJS alone has not. Each function is sent into the VM as its own source text and refers
 * to nothing but its parameters and the guest's globals.
 *
 * Invariants: time is the turn's and stands still while the guest computes; randomness repeats from the turn's seed, so it is no place for
 * secrets.
 */

import type { Door, GuestGlobal } from "./door.ts";

/** Randomness from the turn's seed (sfc32): `Math.random`, `crypto.getRandomValues`, `crypto.randomUUID`. */
export function installRandom(global: GuestGlobal, door: Door): void {
  let [a, b, c, d] = [0, 0, 0, 1];
  const next = (): number => {
    const sum = (a + b + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  door.on.turn = ({ seed }) => {
    [a, b, c, d] = [seed[0]! | 0, seed[1]! | 0, seed[2]! | 0, 1];
    for (let round = 0; round < 12; round++) next();
  };
  // oxlint-disable-next-line no-restricted-properties -- this is the guest's, and it is being replaced.
  Math.random = () => ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992;
  const getRandomValues = <T extends ArrayBufferView>(view: T): T => {
    const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
    for (let index = 0; index < bytes.length; index++) bytes[index] = next() & 255;
    return view;
  };
  const randomUUID = (): string => {
    const bytes = getRandomValues(new Uint8Array(16));
    bytes[6] = (bytes[6]! & 15) | 64;
    bytes[8] = (bytes[8]! & 63) | 128;
    let text = "";
    for (let index = 0; index < 16; index++) {
      if (index === 4 || index === 6 || index === 8 || index === 10) text += "-";
      text += (bytes[index]! + 256).toString(16).slice(1);
    }
    return text;
  };
  global["crypto"] = { getRandomValues, randomUUID };
}

/** `setTimeout` and its like, by the host's clock. */
export function installTimers(global: GuestGlobal, door: Door): void {
  type Task = { readonly run: () => void; readonly everyMs: number | undefined };
  const tasks = new Map<number, Task>();
  let last = 0;
  const post = (id: number, ms: number): void => void door.post("timer", `${id} ${ms}`);
  const add = (run: unknown, ms: unknown, args: readonly unknown[], isRepeated: boolean): number => {
    if (typeof run !== "function") throw new TypeError("the first argument must be a function");
    const delayMs = Math.min(Math.max(Math.trunc(Number(ms)) || 0, 0), 2147483647);
    const id = ++last;
    tasks.set(id, {
      run: () => void (run as (...given: readonly unknown[]) => unknown)(...args),
      everyMs: isRepeated ? delayMs : undefined,
    });
    post(id, delayMs);
    return id;
  };
  const clear = (id: unknown): void => {
    if (tasks.delete(id as number)) door.post("clear", `${id as number}`);
  };
  door.on.timer = ({ id }) => {
    const task = tasks.get(id);
    if (task === undefined) return;
    if (task.everyMs === undefined) tasks.delete(id);
    else post(id, task.everyMs);
    try {
      task.run();
    } catch (thrown) {
      door.uncaught(thrown);
    }
  };
  global["setTimeout"] = (run: unknown, ms?: unknown, ...args: unknown[]) => add(run, ms, args, false);
  global["setInterval"] = (run: unknown, ms?: unknown, ...args: unknown[]) => add(run, ms, args, true);
  global["clearTimeout"] = clear;
  global["clearInterval"] = clear;
}

/** `console`, into what the host keeps of it. */
export function installConsole(global: GuestGlobal, door: Door): void {
  const show = (value: unknown): string => {
    if (typeof value === "string") return value;
    if (value instanceof Error) return `${value}\n${value.stack ?? ""}`;
    try {
      return (typeof value === "object" && value !== null ? JSON.stringify(value) : undefined) ?? String(value);
    } catch {
      return Object.prototype.toString.call(value);
    }
  };
  const say = (...values: unknown[]): void => void door.post("console", values.map(show).join(" "));
  global["console"] = { log: say, info: say, debug: say, warn: say, error: say, trace: say };
}

/** `btoa` and `atob`. */
export function installBase64(global: GuestGlobal, door: Door): void {
  const { toBase64, fromBase64 } = door.codec;
  global["btoa"] = (data: unknown): string => {
    const text = String(data);
    const bytes = new Uint8Array(text.length);
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index);
      if (code > 255) throw new RangeError("a character is beyond U+00FF");
      bytes[index] = code;
    }
    return toBase64(bytes);
  };
  global["atob"] = (data: unknown): string => {
    const text = String(data).replace(/[\t\n\f\r ]/g, "");
    const digits = text.length % 4 === 0 ? text.replace(/={1,2}$/, "") : text;
    if (digits.length % 4 === 1 || /[^A-Za-z0-9+/]/.test(digits)) throw new RangeError("this is not base64");
    let binary = "";
    for (const byte of fromBase64(digits)) binary += String.fromCharCode(byte);
    return binary;
  };
}

/** `structuredClone`, of plain data, dates, maps, sets, errors and bytes; `queueMicrotask`. */
export function installCloning(global: GuestGlobal, door: Door): void {
  const clone = (value: unknown, seen: Map<object, unknown>): unknown => {
    if (typeof value === "function" || typeof value === "symbol") throw new TypeError("a function or symbol cannot be cloned");
    if (value === null || typeof value !== "object") return value;
    const known = seen.get(value);
    if (known !== undefined) return known;
    const keep = <T>(copy: T): T => {
      seen.set(value, copy);
      return copy;
    };
    if (value instanceof Date) return keep(new Date(value.getTime()));
    if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
    if (value instanceof ArrayBuffer) return keep(value.slice(0));
    if (ArrayBuffer.isView(value)) {
      const Kind = value.constructor as new (buffer: ArrayBufferLike) => unknown;
      return keep(new Kind(value.buffer.slice(value.byteOffset, value.byteOffset + value.byteLength)));
    }
    if (value instanceof Map) {
      const map = keep(new Map<unknown, unknown>());
      for (const [key, item] of value) map.set(clone(key, seen), clone(item, seen));
      return map;
    }
    if (value instanceof Set) {
      const set = keep(new Set<unknown>());
      for (const item of value) set.add(clone(item, seen));
      return set;
    }
    if (value instanceof Error) {
      const copy = keep(new Error(value.message));
      copy.name = value.name;
      return copy;
    }
    const copy = keep(Array.isArray(value) ? Array.from<unknown>({ length: value.length }) : {}) as { [key: string]: unknown };
    for (const [key, item] of Object.entries(value)) copy[key] = clone(item, seen);
    return copy;
  };
  global["structuredClone"] = (value: unknown) => clone(value, new Map());
  const settled = Promise.resolve();
  global["queueMicrotask"] = (task: () => void) => void settled.then(task).catch((thrown: unknown) => door.uncaught(thrown));
}
