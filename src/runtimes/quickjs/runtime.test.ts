/** What the quickjs runtime promises beyond what every runtime does. */

import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { fenceOf, newExecutionId, sessionUidOf } from "../../base/index.ts";
import { cryptoRandom, nodeDigest, systemClock } from "../../node/index.ts";
import { ComputeState, type BlobStore, type Runtime, type SnapshotRef } from "../../spi/index.ts";
import { createMemoryBlobStore } from "../../stores/blobs/index.ts";
import { evaluated } from "../../testing/evaluated.ts";
import { forwardingBlobs } from "../../testing/forwarding-blobs.ts";
import { VirtualClock } from "../../testing/ports.ts";
import { bundleHarness, createQuickJsRuntime, type QuickJsRuntimeOptions } from "./index.ts";

const realPorts = { clock: systemClock, random: cryptoRandom, digest: nodeDigest };
const bound = (session: string, fence = 2) => ({ sessionUid: sessionUidOf(session), fence: fenceOf(fence) });

let script: string;
beforeAll(async () => {
  const file = fileURLToPath(new URL("../../testing/guests/evaluator.ts", import.meta.url));
  script = await bundleHarness({ file, exportName: "createEvaluator" });
});

let blobs: BlobStore;
let opened: Runtime[];
beforeEach(() => {
  blobs = createMemoryBlobStore(realPorts);
  opened = [];
});
afterEach(async () => {
  await Promise.all(opened.map((runtime) => runtime[Symbol.asyncDispose]()));
});

async function open(options: Partial<QuickJsRuntimeOptions> = {}): Promise<Runtime> {
  const runtime = await createQuickJsRuntime({ script, blobs, ports: realPorts, workers: 1, ...options });
  opened.push(runtime);
  return runtime;
}

const create = (runtime: Runtime, session = "s") => runtime.create({ ...bound(session, 1), harness: "evaluator" });

describe("a guest's time", () => {
  it("is when its execution began, and stands still", async () => {
    const runtime = await open();
    const clock = new VirtualClock(Date.UTC(2026, 4, 1, 12));
    const id = newExecutionId({ clock, random: cryptoRandom });
    const code = "const a = Date.now(); for (let i = 0; i < 1e5; i++); return [a, Date.now(), new Date().toString()].join()";
    const [one, other] = [await create(runtime, "a"), await create(runtime, "b")];
    const expected = `${clock.nowMs()},${clock.nowMs()},Fri May 01 2026 12:00:00 GMT+0000`;
    expect(await evaluated(runtime, one, code, id)).toContain(expected);
    expect(await evaluated(runtime, other, code, id)).toContain(expected);
  });

  it("moves to when a timer was due", async () => {
    const runtime = await open();
    const id = newExecutionId({ clock: new VirtualClock(1_000_000), random: cryptoRandom });
    const code = "const a = Date.now(); await new Promise((go) => setTimeout(go, 25)); return Date.now() - a";
    expect(await evaluated(runtime, await create(runtime), code, id)).toBe("25");
  });

  it("is the host's where an execution's id does not tell it", async () => {
    const clock = new VirtualClock(777_000);
    const runtime = await open({ ports: { ...realPorts, clock: { ...systemClock, nowMs: () => clock.nowMs() } } });
    expect(await evaluated(runtime, await create(runtime), "Date.now()", "imported")).toBe("777000");
  });
});

describe("a guest's randomness", () => {
  const draw = "[Math.random(), crypto.randomUUID(), Math.random()].join()";

  it("is the same for the same execution of the same session, in whichever sandbox", async () => {
    const runtime = await open();
    const first = await evaluated(runtime, await create(runtime, "s"), draw, "e");
    expect(await evaluated(runtime, await create(runtime, "s"), draw, "e")).toBe(first);
    expect(await evaluated(runtime, await create(runtime, "s"), draw, "other")).not.toBe(first);
    expect(await evaluated(runtime, await create(runtime, "t"), draw, "e")).not.toBe(first);
  });

  it("parts the forks of one memory, also before their next turn", async () => {
    const runtime = await open();
    const parent = await create(runtime, "parent");
    await evaluated(runtime, parent, "globalThis.drawn = []; setTimeout(() => drawn.push(Math.random()), 1); 1");
    const snapshot = await runtime.snapshot(parent, "external");
    const children = await Promise.all(["a", "b", "c"].map((name) => runtime.fork(snapshot, bound(name))));
    const wait = "while (drawn.length === 0) await new Promise((go) => setTimeout(go, 1)); return drawn.join()";
    const drawn = await Promise.all(children.map((child) => evaluated(runtime, child, wait)));
    expect(new Set(drawn).size).toBe(3);
  });
});

describe("a captured memory", () => {
  it("holds closures, classes, maps, generators and promises that wait", async () => {
    const runtime = await open();
    const first = await create(runtime);
    await evaluated(
      runtime,
      first,
      `class Box { #inner = 1; more() { return ++this.#inner; } }
       globalThis.box = new Box(); globalThis.map = new Map([[box, "box"]]); globalThis.weak = new WeakMap([[box, "weak"]]);
       globalThis.gen = (function* () { let n = 0; for (;;) yield ++n; })(); gen.next();
       globalThis.later = new Promise((go) => (globalThis.go = go)).then((value) => (globalThis.went = value));`,
    );
    const again = await runtime.restore(await runtime.snapshot(first, "external"), bound("s"));
    const code = "go('gone'); await later; return [box.more(), map.get(box), weak.get(box), gen.next().value, went].join()";
    expect(await evaluated(runtime, again, code)).toBe("2,box,weak,2,gone");
  });

  it("comes back with its timer asked for again, once, at its time", async () => {
    const runtime = await open();
    const first = await create(runtime);
    await evaluated(runtime, first, "globalThis.fired = 0; setTimeout(() => fired++, 40); setTimeout(() => fired++, 1e6); 1");
    const snapshot = await runtime.snapshot(first, "external");
    const again = await runtime.restore(snapshot, bound("s"));
    const wait = "while (fired === 0) await new Promise((go) => setTimeout(go, 5)); return fired";
    expect(await evaluated(runtime, again, wait)).toBe("1");
    expect(await evaluated(runtime, again, "await new Promise((go) => setTimeout(go, 60)); return fired")).toBe("1");
    // The first one is gone: nobody else counted.
    const third = await runtime.restore(snapshot, bound("s", 3));
    expect(await evaluated(runtime, third, wait)).toBe("1");
  });

  it("does not change when nothing happens, and is then the same snapshot", async () => {
    const runtime = await open();
    const incarnation = await create(runtime);
    await evaluated(runtime, incarnation, "globalThis.x = 1");
    const one = await runtime.checkpoint!(incarnation);
    expect(await runtime.checkpoint!(incarnation)).toEqual(one);
    await evaluated(runtime, incarnation, "x++");
    expect(await runtime.checkpoint!(incarnation)).not.toEqual(one);
  });

  it("is stored in little when little changed, also of a large heap", async () => {
    const sizes: number[] = [];
    const put: BlobStore["put"] = (bytes, options) => {
      sizes.push(bytes.length);
      return inner.put(bytes, options);
    };
    const inner = blobs;
    const runtime = await open({ blobs: forwardingBlobs(inner, { put }) });
    const incarnation = await create(runtime);
    await evaluated(runtime, incarnation, "globalThis.big = Array.from({ length: 5e4 }, (_, i) => ({ i, s: 'item ' + i })); 1");
    await runtime.checkpoint!(incarnation);
    sizes.length = 0;
    for (let turn = 1; turn <= 30; turn++) {
      expect(await evaluated(runtime, incarnation, "++big[77].i")).toBe(String(77 + turn));
      await runtime.checkpoint!(incarnation);
    }
    expect(sizes).toHaveLength(30);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(32 * 1024);
  });

  it("is whole again after a store that failed", async () => {
    let isBroken = false;
    const inner = blobs;
    const put: BlobStore["put"] = (bytes, options) =>
      isBroken ? Promise.reject(new Error("the disk is full")) : inner.put(bytes, options);
    const runtime = await open({ blobs: forwardingBlobs(inner, { put }) });
    const incarnation = await create(runtime);
    await evaluated(runtime, incarnation, "globalThis.x = 1");
    await runtime.checkpoint!(incarnation);
    await evaluated(runtime, incarnation, "x = 2");
    isBroken = true;
    await expect(runtime.checkpoint!(incarnation)).rejects.toThrow("the disk is full");
    await expect(runtime.snapshot(incarnation, "external")).rejects.toThrow("the disk is full");
    isBroken = false;
    expect(await runtime.status(incarnation)).toBe(ComputeState.COMPUTE_LIVE);
    const again = await runtime.restore(await runtime.snapshot(incarnation, "external"), bound("s"));
    expect(await evaluated(runtime, again, "x")).toBe("2");
  });

  it("is refused with another script, and DATA_LOSS where a blob is torn", async () => {
    const runtime = await open();
    const snapshot = await runtime.snapshot(await create(runtime), "external");
    const other = await open({ script: `${script}\n// another` });
    await expect(other.restore(snapshot, bound("s"))).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringMatching(/another harness script/),
    });
    const torn = await open({
      blobs: forwardingBlobs(blobs, { get: async (ref) => (await blobs.get(ref))?.subarray(0, 100) }),
    });
    await expect(torn.restore(snapshot, bound("s"))).rejects.toMatchObject({ code: "data_loss" });
    await blobs.delete({ uri: snapshot.externalUri.split("#")[0]!, digest: snapshot.externalUri.split("#")[1]! });
    await expect(runtime.restore(snapshot, bound("s"))).rejects.toMatchObject({ code: "data_loss" });
    await expect(runtime.fork(snapshot, bound("child"))).rejects.toMatchObject({ code: "aborted" });
    await expect(runtime.restore({ ...snapshot, externalUri: "nowhere" }, bound("s"))).rejects.toMatchObject({ code: "invalid_argument" });
  });

  it("that a newer one replaced is discarded with what only it needs, and never what the newer one is made of", async () => {
    const runtime = await open();
    const incarnation = await create(runtime);
    let before: SnapshotRef | undefined;
    for (let turn = 0; turn < 40; turn++) {
      await evaluated(runtime, incarnation, "globalThis.x = (globalThis.x ?? 0) + 1");
      const now = await runtime.checkpoint!(incarnation);
      if (before !== undefined) await runtime.discard!(before, now);
      before = now;
    }
    // The base, and the layers that the newest is combined of.
    expect((await Array.fromAsync(blobs.list())).length).toBeLessThan(30);
    expect(await evaluated(runtime, await runtime.restore(before!, bound("s")), "x")).toBe("40");
    const other = await runtime.checkpoint!(await create(runtime, "other"));
    await runtime.discard!(before!, other);
    expect(await runtime.renew!(before!)).toBeUndefined();
  });

  it("is whole again where a part of it was removed, be it the base", async () => {
    const runtime = await open();
    const incarnation = await create(runtime);
    await evaluated(runtime, incarnation, "globalThis.x = 1");
    const one = await runtime.checkpoint!(incarnation);
    for await (const blob of blobs.list()) await blobs.delete(blob);
    expect(await runtime.renew!(one)).toMatch(/^sha256:/);
    // Nothing has changed since, and what was stored is not there any more.
    const two = await runtime.checkpoint!(incarnation);
    expect(await runtime.renew!(two)).toBeUndefined();
    const elsewhere = await open();
    expect(await evaluated(elsewhere, await elsewhere.restore(two, bound("s")), "x")).toBe("1");
  });

  it("is no other session's to restore", async () => {
    const runtime = await open();
    const snapshot = await runtime.snapshot(await create(runtime, "mine"), "external");
    await expect(runtime.restore(snapshot, bound("yours"))).rejects.toMatchObject({ code: "failed_precondition" });
  });
});

describe("any sequence of turns, captures, restores and forks", () => {
  it("comes to what the turns alone come to", async () => {
    const runtime = await open();
    const step = fc.constantFrom("turn", "turn", "turn", "checkpoint", "warm", "cold", "fork");
    const code =
      "globalThis.sum = ((globalThis.sum ?? 7) * 31 + (globalThis.list ??= []).push({ n: globalThis.sum })) % 1000003; return sum + ':' + list.length";
    const plain = await create(runtime, "plain");
    const expected: string[] = [];
    for (let turn = 0; turn < 40; turn++) expected.push(await evaluated(runtime, plain, code));
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 40 }), async (steps) => {
        let incarnation = await create(runtime, "s0");
        let turns = 0;
        for (const [index, kind] of steps.entries()) {
          const options = bound(incarnation.sessionUid, index + 2);
          switch (kind) {
            case "turn":
              expect(await evaluated(runtime, incarnation, code)).toBe(expected[turns++]);
              break;
            case "checkpoint":
              await runtime.checkpoint!(incarnation);
              break;
            case "warm":
              incarnation = await runtime.restore(await runtime.snapshot(incarnation, "local"), options);
              break;
            case "cold":
              incarnation = await runtime.restore(await runtime.snapshot(incarnation, "external"), options);
              break;
            case "fork": {
              const parent = incarnation;
              incarnation = await runtime.fork(await runtime.checkpoint!(parent), bound(`s${index + 1}`));
              await runtime.stop(parent);
              break;
            }
          }
        }
        await runtime.stop(incarnation);
      }),
      { numRuns: 15 },
    );
  });
});

describe("a runtime that cannot do its work", () => {
  it.each([
    ["throws while it loads", "throw new Error('no')", "internal"],
    ["is no JavaScript", "this is not", "internal"],
    ["never finishes loading", "for (;;);", "resource_exhausted"],
  ])("says so of a script that %s", async (_what, bad, code) => {
    const runtime = await open({ script: bad, limits: { turnCpuMs: 50, sliceCpuMs: 50 } });
    await expect(create(runtime)).rejects.toMatchObject({ code, message: expect.stringMatching(/script does not load/) });
    await expect(runtime.describe()).rejects.toMatchObject({ code });
  });

  it("says so of a script that serves nothing", async () => {
    const runtime = await open({ script: "globalThis.x = 1" });
    await expect(create(runtime)).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringMatching(/must serve a harness/),
    });
  });

  it("refuses bounds that are none", async () => {
    await expect(open({ limits: { stackBytes: 2 ** 20 } })).rejects.toMatchObject({ field: "limits.stackBytes" });
  });

  it("ends a thread that hangs, and the sessions on it are interrupted and go on elsewhere", async () => {
    const clock = new VirtualClock();
    const runtime = await open({ ports: { ...realPorts, clock }, hungAfterMs: 1000, limits: { sliceCpuMs: 60_000, turnCpuMs: 60_000 } });
    const [hanging, neighbour] = [await create(runtime, "hanging"), await create(runtime, "neighbour")];
    await evaluated(runtime, neighbour, "globalThis.x = 5");
    const checkpoint = await runtime.checkpoint!(neighbour);
    const turn = evaluated(runtime, hanging, "for (;;);");
    turn.catch(() => undefined);
    // Once that turn is under way, nothing is heard of the thread.
    await systemClock.sleep(50);
    const next = evaluated(runtime, neighbour, "x");
    next.catch(() => undefined);
    await systemClock.sleep(1);
    clock.advance(1000);
    await expect(turn).rejects.toMatchObject({ code: "unavailable" });
    await expect(next).rejects.toMatchObject({ code: "unavailable" });
    expect(await runtime.status(neighbour)).toBe(ComputeState.COMPUTE_TERMINATED);
    const again = await runtime.restore(checkpoint, bound("neighbour"));
    expect(await evaluated(runtime, again, "x")).toBe("5");
  });
});

describe("what a guest prints", () => {
  it("is given to whoever asked for it, by session", async () => {
    const printed: string[] = [];
    const runtime = await open({ onConsole: (session, text) => printed.push(`${session}: ${text}`), limits: { consoleChars: 20 } });
    const incarnation = await create(runtime);
    await evaluated(runtime, incarnation, "console.log('hello', [1]); console.error('x'.repeat(100)); console.warn('late')");
    expect(printed).toEqual(["s: hello [1]", `s: ${"x".repeat(10)}`]);
  });
});
