/** The guest's platform, run here against this one's: it refers to nothing but its parameters and the globals of JavaScript. */

import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { makeCodec, type Door, type DoorWord, type GuestGlobal } from "./door.ts";
import { installBase64, installCloning, installConsole, installRandom, installTimers } from "./platform.ts";
import { installAbort, installTextDecoder, installTextEncoder } from "./web.ts";

let posted: [DoorWord, string][];
let global: GuestGlobal;
let door: Door;
const { random } = Math;

beforeEach(() => {
  posted = [];
  global = {};
  door = {
    post: (word, text) => void posted.push([word, text]),
    on: {},
    codec: makeCodec(),
    uncaught: (thrown) => posted.push(["console", `Uncaught ${String(thrown)}`]),
  };
});
afterEach(() => {
  Math.random = random;
});

/** What was installed under a name, as the type that it stands for. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- an assertion, in one place.
const installed = <T>(name: string): T => global[name] as T;

describe("text of a guest", () => {
  beforeEach(() => {
    installTextEncoder(global);
    installTextDecoder(global);
  });
  const encoder = () => new (installed<typeof TextEncoder>("TextEncoder"))();
  const decoder = (options?: { readonly fatal?: boolean; readonly ignoreBOM?: boolean }) =>
    new (installed<typeof TextDecoder>("TextDecoder"))("utf-8", options);

  it("is encoded as elsewhere, lone surrogates included", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.nat(0xffff).map((code) => String.fromCharCode(code)) }), (text) => {
        expect(encoder().encode(text)).toEqual(new TextEncoder().encode(text));
      }),
    );
    expect(encoder().encode("a\u{10ffff}é€")).toEqual(new TextEncoder().encode("a\u{10ffff}é€"));
  });

  it("is decoded as elsewhere, whatever the bytes are", () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 30 }),
      fc
        .array(fc.constantFrom(0x41, 0x80, 0xbf, 0xc2, 0xe0, 0xa0, 0xed, 0x9f, 0xf0, 0x90, 0xf4, 0x8f, 0xff, 0xef, 0xbb, 0xbf))
        .map((list) => Uint8Array.from(list)),
    );
    fc.assert(
      fc.property(bytes, fc.boolean(), (given, ignoreBOM) => {
        expect(decoder({ ignoreBOM }).decode(given)).toBe(new TextDecoder("utf-8", { ignoreBOM }).decode(given));
        let isBroken = false;
        try {
          new TextDecoder("utf-8", { fatal: true }).decode(given);
        } catch {
          isBroken = true;
        }
        if (isBroken) expect(() => decoder({ fatal: true }).decode(given)).toThrow(TypeError);
        else decoder({ fatal: true }).decode(given);
      }),
    );
  });

  it("is encoded into what there is room for", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.nat(20), (text, size) => {
        const [mine, theirs] = [new Uint8Array(size), new Uint8Array(size)];
        expect(encoder().encodeInto(text, mine)).toEqual(new TextEncoder().encodeInto(text, theirs));
        expect(mine).toEqual(theirs);
      }),
    );
  });

  it("is UTF-8 alone", () => {
    expect(() => new (installed<typeof TextDecoder>("TextDecoder"))("latin1")).toThrow(RangeError);
  });
});

describe("base64 of a guest", () => {
  beforeEach(() => installBase64(global, door));
  const encode = (text: string) => installed<typeof btoa>("btoa")(text);
  const decode = (text: string) => installed<typeof atob>("atob")(text);

  it("is as elsewhere", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.nat(255).map((code) => String.fromCharCode(code)) }), (text) => {
        expect(encode(text)).toBe(btoa(text));
        expect(decode(encode(text))).toBe(text);
      }),
    );
    expect(decode(" aG k=\n")).toBe("hi");
  });

  it.each(["a", "a===", "$$$$", "aGk=="])("refuses %j", (text) => expect(() => decode(text)).toThrow(RangeError));
  it("refuses characters that are no bytes", () => expect(() => encode("€")).toThrow(RangeError));
});

describe("cancelling in a guest", () => {
  beforeEach(() => installAbort(global));
  const controller = () => new (installed<typeof AbortController>("AbortController"))();

  it("tells each listener, once", () => {
    const { signal } = controller();
    const one = controller();
    const heard: string[] = [];
    const listener = () => heard.push("listener");
    const removed = () => heard.push("removed");
    one.signal.addEventListener("abort", listener);
    one.signal.addEventListener("abort", listener);
    one.signal.addEventListener("abort", () => heard.push("once"), { once: true });
    one.signal.addEventListener("abort", removed);
    one.signal.removeEventListener("abort", removed);
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the property is what is tested.
    one.signal.onabort = () => heard.push("property");
    one.abort();
    expect(heard).toEqual(["property", "listener", "once"]);
    expect([signal.aborted, signal.reason]).toEqual([false, undefined]);
    signal.throwIfAborted();
  });

  it("aborts once and for all", () => {
    const one = controller();
    const heard: unknown[] = [];
    one.signal.addEventListener("abort", () => heard.push(one.signal.reason));
    one.abort("first");
    one.abort("second");
    expect(heard).toEqual(["first"]);
    expect(() => one.signal.throwIfAborted()).toThrow("first");
    const plain = controller();
    plain.abort();
    expect(plain.signal.reason).toMatchObject({ name: "AbortError" });
  });

  it("joins signals, and makes them of a time", () => {
    const Signal = installed<typeof AbortSignal>("AbortSignal");
    const [one, other] = [controller(), controller()];
    const joined = Signal.any([one.signal, other.signal]);
    other.abort("other");
    expect([joined.aborted, joined.reason]).toEqual([true, "other"]);
    expect(Signal.any([other.signal]).aborted).toBe(true);
    expect(Signal.abort("now").reason).toBe("now");
    let run: () => void = () => undefined;
    global["setTimeout"] = (task: () => void) => (run = task);
    const timed = Signal.timeout(5);
    expect(timed.aborted).toBe(false);
    run();
    expect(timed.reason).toMatchObject({ name: "TimeoutError" });
    expect(() => new (Signal as new () => AbortSignal)()).toThrow(TypeError);
  });
});

describe("timers of a guest", () => {
  beforeEach(() => installTimers(global, door));
  const fire = (id: number) => door.on.timer?.({ kind: "timer", id });

  it("ask the host, and run when it says so, with their arguments", () => {
    const ran: unknown[] = [];
    const id = installed<(run: (...given: unknown[]) => void, ms: number, ...args: unknown[]) => number>("setTimeout")(
      (...given) => ran.push(given),
      20.7,
      1,
      2,
    );
    expect(posted).toEqual([["timer", `${id} 20`]]);
    fire(id);
    fire(id);
    fire(99);
    expect(ran).toEqual([[1, 2]]);
  });

  it("are given up, and repeated", () => {
    const ran: string[] = [];
    const set = installed<(run: () => void, ms?: number) => number>("setTimeout");
    const every = installed<(run: () => void, ms?: number) => number>("setInterval");
    const clear = installed<(id: number) => void>("clearTimeout");
    const given = set(() => ran.push("given up"), 5);
    clear(given);
    clear(given);
    fire(given);
    const repeated = every(() => ran.push("again"));
    fire(repeated);
    fire(repeated);
    expect(ran).toEqual(["again", "again"]);
    expect(posted).toEqual([
      ["timer", `${given} 5`],
      ["clear", `${given}`],
      ["timer", `${repeated} 0`],
      ["timer", `${repeated} 0`],
      ["timer", `${repeated} 0`],
    ]);
    expect(() => set("code" as never, 1)).toThrow(TypeError);
  });

  it("throw to the console alone", () => {
    const id = installed<(run: () => void) => number>("setTimeout")(() => {
      throw new Error("late");
    });
    fire(id);
    expect(posted.at(-1)).toEqual(["console", "Uncaught Error: late"]);
  });
});

describe("randomness of a guest", () => {
  const drawn = (seed: readonly number[]) => {
    const own: GuestGlobal = {};
    installRandom(own, door);
    door.on.turn?.({ kind: "turn", seed });
    const uuid = (own["crypto"] as { randomUUID: () => string }).randomUUID();
    return { uuid, numbers: Array.from({ length: 2000 }, () => Math.random()) };
  };

  it("repeats from its seed, and is another from another", () => {
    expect(drawn([1, 2, 3, 4])).toEqual(drawn([1, 2, 3, 4]));
    expect(drawn([1, 2, 3, 4]).uuid).not.toBe(drawn([1, 2, 4, 4]).uuid);
    expect(drawn([1, 2, 3, 4]).uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  it("fills the range evenly", () => {
    const { numbers } = drawn([9, 9, 9, 9]);
    expect(Math.min(...numbers)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...numbers)).toBeLessThan(1);
    const mean = numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
    expect(Math.abs(mean - 0.5)).toBeLessThan(0.03);
  });
});

describe("the rest of a guest's platform", () => {
  it("prints to the host in one line each", () => {
    installConsole(global, door);
    const { log, error } = installed<Console>("console");
    const round: { self?: unknown } = {};
    round.self = round;
    log("a", 1, { b: [2] }, undefined, 3n, Symbol("x"));
    error(round);
    expect(posted).toEqual([
      ["console", 'a 1 {"b":[2]} undefined 3 Symbol(x)'],
      ["console", "[object Object]"],
    ]);
  });

  it("clones what can be cloned", () => {
    installCloning(global, door);
    const clone = installed<typeof structuredClone>("structuredClone");
    const value = {
      list: [1, new Date(5), /x/g],
      map: new Map([["k", new Set([1n])]]),
      bytes: Uint8Array.of(1, 2),
      buffer: new ArrayBuffer(2),
      missing: undefined,
    };
    expect(clone(value)).toEqual(value);
    expect(clone(value).list).not.toBe(value.list);
    const round: { self?: unknown } = {};
    round.self = round;
    const copy = clone(round);
    expect(copy.self).toBe(copy);
    expect(clone(new TypeError("t"))).toMatchObject({ name: "TypeError", message: "t" });
    expect(() => clone(() => 1)).toThrow(TypeError);
  });
});
