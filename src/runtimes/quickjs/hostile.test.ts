/** What a guest can do to others: nothing. One runtime for all of these, so that what one leaves behind meets the next. */

import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fenceOf, sessionUidOf, type LogFields } from "../../base/index.ts";
import { cryptoRandom, nodeDigest, systemClock } from "../../node/index.ts";
import { ComputeState, type Incarnation, type Runtime } from "../../spi/index.ts";
import { createMemoryBlobStore } from "../../stores/blobs/index.ts";
import { evaluated } from "../../testing/evaluated.ts";
import { bundleHarness, createQuickJsRuntime } from "./index.ts";

const ports = { clock: systemClock, random: cryptoRandom, digest: nodeDigest };
const logged: LogFields[] = [];
let runtime: Runtime;
let sessions = 0;

beforeAll(async () => {
  const file = fileURLToPath(new URL("../../testing/guests/evaluator.ts", import.meta.url));
  runtime = await createQuickJsRuntime({
    script: await bundleHarness({ file, exportName: "createEvaluator" }),
    blobs: createMemoryBlobStore(ports),
    ports,
    workers: 1,
    log: { log: (_level, _message, fields = {}) => logged.push(fields) },
    limits: { memoryBytes: 16 * 2 ** 20, sliceCpuMs: 100, turnCpuMs: 300, frameChars: 2 ** 16, frameCharsOutstanding: 2 ** 18, timers: 20 },
  });
});
afterAll(() => runtime[Symbol.asyncDispose]());

const create = () => runtime.create({ sessionUid: sessionUidOf(`s${++sessions}`), harness: "h", fence: fenceOf(1) });

/** Each costs its turn: with this status and words, and the VM is gone. */
const FATAL: Readonly<Record<string, readonly [code: string, status: number, message: RegExp]>> = {
  "an endless loop": ["for (;;);", 8, /more processor time/],
  "an endless loop that catches everything": ["for (;;) { try { for (;;); } catch {} finally { continue; } }", 8, /more processor time/],
  "endless microtasks": ["await new Promise(() => { (function again() { Promise.resolve().then(again); })(); })", 8, /more processor time/],
  "a pattern that backtracks for ever": ["/(a+)+b/.test('a'.repeat(40))", 8, /more processor time/],
  "a memory bomb": ["const all = []; for (;;) all.push(new Array(1000).fill(1));", 8, /more memory/],
  "a memory bomb that catches everything": [
    "const all = []; for (;;) { try { all.push('x'.repeat(1e6) + all.length); } catch {} }",
    8,
    /more memory/,
  ],
  "one huge string": ["'x'.repeat(5e8)", 8, /more memory/],
  "a string that doubles": ["let s = 'x'; for (;;) s += s", 8, /more memory/],
  "one huge buffer": ["new Uint8Array(1e9)", 8, /more memory/],
  "deep nesting, evaluated": ["(0, eval)('('.repeat(200000))", 8, /deeper than its stack/],
  "a flood of frames": [
    "for (;;) holdfastDoor.send({ exchange: 3, frame: { case: 'event', value: {} } })",
    13,
    /exchange that the host opened/,
  ],
  "a flood of frames that nobody waits for": [
    "for (;;) holdfastDoor.send({ exchange: 1, frame: { case: 'event', value: {} } })",
    8,
    /more memory|more processor time/,
  ],
  "a flood of frames past its own count of them": [
    'for (;;) { __recv(\'{"kind":"taken","frames":1,"chars":100}\'); holdfastDoor.send({ exchange: 1, frame: { case: \'event\', value: {} } }); }',
    8,
    /more than the host had room for/,
  ],
  "a frame that is nested too deep": [
    "let deep = {}; for (let i = 0; i < 200; i++) deep = { deep }; holdfastDoor.send({ exchange: 1, frame: { case: 'event', value: deep } })",
    8,
    /nested deeper/,
  ],
  "an engine's own loop": ["({ length: 2 ** 53 - 1, __proto__: Array.prototype }).reverse()", 8, /more processor time/],
  "a search in a huge string": ["'a'.repeat(3e6).indexOf('a'.repeat(1.5e6) + 'b')", 8, /more processor time/],
  "a bomb of timers": ["(function b() { setTimeout(b); setTimeout(b); })(); await new Promise(() => {})", 8, /timers|processor time/],
  "many timers": ["for (let i = 0; i < 30; i++) setTimeout(() => {}, 1e6); await new Promise(() => {})", 8, /timers/],
  "a flood of timers": ["for (let i = 0; i < 1e5; i++) setTimeout(() => {}, 1e6);", 8, /timers|processor time/],
  "an endless loop in a timer": ["await new Promise(() => setTimeout(() => { for (;;); }, 1))", 8, /more processor time/],
  "more processor time than a turn has, a little at a time": [
    "await new Promise(() => setInterval(() => { for (let i = 0; i < 2e5; i++); }, 1))",
    8,
    /more processor time/,
  ],
};

/** Each of these is the guest's own affair: the turn goes on, or fails as it would anywhere. */
const HARMLESS: Readonly<Record<string, readonly [code: string, output: string]>> = {
  "timers that are set and given up": ["for (let i = 0; i < 5000; i++) clearTimeout(setTimeout(() => {}, 1e6)); return 'fine'", "fine"],
  "deep nesting, parsed": ["JSON.parse('['.repeat(200000))", "RangeError"],
  "deep recursion": ["let depth = 0; (function down() { depth++; down(); })()", "RangeError"],
  "a thrown proxy whose every trap throws": ["throw new Proxy({}, { get() { throw this; }, getPrototypeOf() { throw 1; } })", "thrown"],
  "a thrown object that throws itself when it is read": [
    "class E extends Error { get message() { throw this; } get stack() { throw this; } } throw new E()",
    "thrown",
  ],
  "a thrown symbol": ["throw Symbol('x')", "thrown"],
  "a frame that is no frame": ["holdfastDoor.send({ exchange: 'one', frame: { case: 'event', value: 7 } })", "TypeError"],
  "a frame with a case of its own": ["holdfastDoor.send({ exchange: 1, frame: { case: 'hello', value: { protocol: {} } } })", "TypeError"],
  "a number where an integer belongs": [
    "holdfastDoor.send({ exchange: 1, frame: { case: 'event', value: { body: { case: 'usage', value: { inputTokens: NaN } } } } })",
    "TypeError",
  ],
  "an integer of more than 64 bits": [
    "holdfastDoor.send({ exchange: 1, frame: { case: 'event', value: { body: { case: 'usage', value: { outputTokens: 2n ** 70n } } } } })",
    "TypeError",
  ],
  "an exception of a timer": ["await new Promise((go) => { setTimeout(() => { throw 1 }, 1); setTimeout(go, 30); }); return 'on'", "on"],
  "an exception of a timer that cannot be read": [
    "await new Promise((go) => { setTimeout(() => { throw new Proxy({}, { get() { throw this; } }) }, 1); setTimeout(go, 30); }); return 'on'",
    "on",
  ],
  "an exception of a microtask": ["queueMicrotask(() => { throw 1 }); await 1; return 'on'", "on"],
  "a promise that nobody waits for": ["Promise.reject(new Error('u')); return 'on'", "on"],
  "a frame that is larger than it may be": ["holdfastDoor.send({ exchange: 1, text: 'x'.repeat(1e5) })", "RangeError"],
  "an exit": ["typeof process + typeof require + typeof fetch + typeof WebAssembly", "undefinedundefinedundefinedundefined"],
  "the world by way of a constructor": [
    "(async () => {}).constructor('return typeof process + typeof globalThis.process')()",
    "undefinedundefined",
  ],
  "the host's function": [
    "typeof __host_post + Object.getOwnPropertyNames(globalThis).filter((name) => /host/i.test(name)).join()",
    "undefined",
  ],
};

describe("a hostile guest", () => {
  let neighbour: Incarnation;
  beforeAll(async () => {
    neighbour = await create();
    await evaluated(runtime, neighbour, "globalThis.kept = 'kept'");
  });

  it.each(Object.entries(FATAL))("costs its own turn by %s", async (_name, [code, grpcCode, message]) => {
    const hostile = await create();
    // The first turn's exchange is over when the second begins: frames for it are passed over, as they are late.
    expect(await evaluated(runtime, hostile, "1")).toBe("1");
    const checkpoint = await runtime.checkpoint!(hostile);
    await expect(evaluated(runtime, hostile, code)).rejects.toMatchObject({
      name: "HarnessFailure",
      grpcCode,
      message: expect.stringMatching(message),
    });
    expect(await runtime.status(hostile)).toBe(ComputeState.COMPUTE_TERMINATED);
    await expect(runtime.attach(hostile)).rejects.toMatchObject({ code: "unavailable" });
    // The session goes on from what was captured last, and everybody else as if nothing had been.
    const again = await runtime.restore(checkpoint, { sessionUid: hostile.sessionUid, fence: fenceOf(2) });
    expect(await evaluated(runtime, again, "1 + 1")).toBe("2");
    expect(await evaluated(runtime, neighbour, "kept")).toBe("kept");
    await runtime.stop(again);
  });

  it.each(Object.entries(HARMLESS))("is not helped by %s", async (_name, [code, output]) => {
    const hostile = await create();
    expect(await evaluated(runtime, hostile, code)).toContain(output);
    expect(await evaluated(runtime, hostile, "1 + 1")).toBe("2");
    expect(await evaluated(runtime, neighbour, "kept")).toBe("kept");
    await runtime.stop(hostile);
  });

  it("changes nobody's prototypes but its own", async () => {
    const hostile = await create();
    const pollution = `
      Object.prototype.polluted = true; Object.prototype.case = 'hello'; Array.prototype.map = () => []; JSON.stringify = () => '{}';
      Object.defineProperty(Object.prototype, 'exchange', { get() { throw 1; }, configurable: true });
      Promise.prototype.then = () => {}; Map.prototype.get = () => { throw 2; }; globalThis.Promise = undefined; 1`;
    await Promise.race([evaluated(runtime, hostile, pollution).catch(() => undefined), systemClock.sleep(200)]);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    expect(await evaluated(runtime, neighbour, "String(({}).polluted) + [1].map((x) => x + 1) + kept")).toBe("undefined2kept");
    await runtime.stop(hostile);
  });

  it("cannot close or take the door of another, nor its own", async () => {
    const hostile = await create();
    expect(
      await evaluated(
        runtime,
        hostile,
        "globalThis.__recv = undefined; globalThis.holdfastDoor = undefined; delete globalThis.__recv; return typeof __recv",
      ),
    ).toBe("function");
    expect(await evaluated(runtime, hostile, "2")).toBe("2");
    await runtime.stop(hostile);
  });

  it("fails its turn with UNKNOWN where it throws at the door", async () => {
    const hostile = await create();
    expect(await evaluated(runtime, hostile, "holdfastDoor.receive = () => { throw new Error('x'); }; return 1")).toBe("1");
    await expect(evaluated(runtime, hostile, "1")).rejects.toMatchObject({ name: "HarnessFailure", grpcCode: 2 });
    expect(await evaluated(runtime, neighbour, "kept")).toBe("kept");
  });

  it("prints as much as is kept, and no more", async () => {
    const hostile = await create();
    expect(await evaluated(runtime, hostile, "for (let i = 0; i < 2000; i++) console.log('x'.repeat(1000)); return 'said'")).toBe("said");
    await runtime.stop(hostile);
  });

  it("does not keep others waiting: they are answered while it computes", async () => {
    const hostile = await create();
    await expect(evaluated(runtime, hostile, "for (;;);")).rejects.toThrow("processor time");
    // It is known by now, and computes on a thread for its like.
    let isOver = false;
    const restored = await create();
    const again = runtime.create({ sessionUid: hostile.sessionUid, harness: "h", fence: fenceOf(2) });
    const burning = evaluated(runtime, await again, "for (;;);")
      .catch(() => undefined)
      .finally(() => (isOver = true));
    let answered = 0;
    while (!isOver && answered < 1000) {
      expect(await evaluated(runtime, neighbour, "kept")).toBe("kept");
      answered++;
    }
    await burning;
    expect(answered).toBeGreaterThan(3);
    await runtime.stop(restored);
  });

  it("leaves its words out of the log", () => {
    expect(logged.length).toBeGreaterThan(0);
    expect(JSON.stringify(logged)).not.toContain("for (;;)");
  });
});
