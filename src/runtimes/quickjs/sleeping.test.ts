/** Between its turns a guest sleeps, and no timer of it keeps its session from going on, whatever it does. */

import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fenceOf, sessionUidOf } from "../../base/index.ts";
import { cryptoRandom, nodeDigest, systemClock } from "../../node/index.ts";
import type { Incarnation, Runtime } from "../../spi/index.ts";
import { createMemoryBlobStore } from "../../stores/blobs/index.ts";
import { evaluated } from "../../testing/evaluated.ts";
import { bundleHarness, createQuickJsRuntime } from "./index.ts";

const printed: string[] = [];
let runtime: Runtime;
let names = 0;

beforeAll(async () => {
  const file = fileURLToPath(new URL("../../testing/guests/evaluator.ts", import.meta.url));
  runtime = await createQuickJsRuntime({
    script: await bundleHarness({ file, exportName: "createEvaluator" }),
    blobs: createMemoryBlobStore({ clock: systemClock }),
    ports: { clock: systemClock, random: cryptoRandom, digest: nodeDigest },
    workers: 1,
    limits: { sliceCpuMs: 100, turnCpuMs: 300 },
    onConsole: (_session, text) => printed.push(text),
  });
});
afterAll(() => runtime[Symbol.asyncDispose]());

const create = () => runtime.create({ sessionUid: sessionUidOf(`s${++names}`), harness: "h", fence: fenceOf(1) });

/** The session in another sandbox, from what was captured after `code`; everything that it set is due by then. */
async function restoredAfter(code: string): Promise<() => Promise<Incarnation>> {
  const first = await create();
  await evaluated(runtime, first, code);
  const snapshot = await runtime.snapshot(first, "external");
  await systemClock.sleep(10);
  return () => runtime.restore(snapshot, { sessionUid: first.sessionUid, fence: fenceOf(++names) });
}

const overLimit = { name: "HarnessFailure", grpcCode: 8 };

describe("a guest between its turns", () => {
  it("is captured, warm or cold, and ended, whatever timers it has set", async () => {
    const busy = await create();
    await evaluated(runtime, busy, "globalThis.ran = 0; for (let i = 0; i < 500; i++) setInterval(() => ran++, 0); 1");
    await systemClock.sleep(20);
    await runtime.checkpoint!(busy);
    expect((await runtime.snapshot(busy, "local")).memory).toBe(true);
    expect(Number(await evaluated(runtime, busy, "ran"))).toBeGreaterThanOrEqual(500);
    const stored = await runtime.snapshot(busy, "external");
    const again = await runtime.restore(stored, { sessionUid: busy.sessionUid, fence: fenceOf(2) });
    expect(Number(await evaluated(runtime, again, "await new Promise((go) => setTimeout(go, 10)); return ran"))).toBeGreaterThanOrEqual(
      500,
    );
    await runtime.stop(again);
  });

  it("is told nothing but frames: what sends for ever goes on with the next turn", async () => {
    const chatty = await create();
    await evaluated(runtime, chatty, "1");
    // Frames of an exchange that is over are late, and passed over.
    const late = "{ exchange: 1, frame: { case: 'event', value: {} } }";
    await evaluated(runtime, chatty, `(async () => { for (globalThis.sent = 0; ; sent++) await holdfastDoor.send(${late}) })(); 1`);
    await runtime.checkpoint!(chatty);
    const before = await runtime.checkpoint!(chatty);
    await systemClock.sleep(20);
    expect((await runtime.checkpoint!(chatty)).externalUri).toBe(before.externalUri);
    await runtime.stop(chatty);
  });
});

describe("a timer that was captured", () => {
  it("and is due fires before the turn begins, once, in order, with the turn's time", async () => {
    const set = [3, 1, 2].map((ms) => `setTimeout(() => order.push(${ms} + ':' + (Date.now() >= start)), ${ms + 4})`).join(";");
    const restore = await restoredAfter(`globalThis.order = []; globalThis.start = Date.now(); ${set}; 1`);
    await systemClock.sleep(10);
    const again = await restore();
    expect(await evaluated(runtime, again, "order.join()")).toBe("1:true,2:true,3:true");
    expect(await evaluated(runtime, again, "order.length")).toBe("3");
    await runtime.stop(again);
  });

  it("and throws is printed, and nothing else", async () => {
    const restore = await restoredAfter("globalThis.kept = 'kept'; setTimeout(() => { throw new Error('late') }, 1); 1");
    const again = await restore();
    expect(await evaluated(runtime, again, "await new Promise((go) => setTimeout(go, 10)); return kept")).toBe("kept");
    expect(printed.some((text) => text.startsWith("Uncaught Error: late"))).toBe(true);
    await runtime.stop(again);
  });

  it.each([
    ["loops for ever", "setTimeout(() => { for (;;); }, 1)"],
    ["hangs the engine", "setTimeout(() => ({ length: 2 ** 53 - 1, __proto__: Array.prototype }).reverse(), 1)"],
    ["sets ever more", "(function b() { setTimeout(b); setTimeout(b); })()"],
    ["computes for long, each time", "for (let i = 0; i < 50; i++) setInterval(() => { for (let j = 0; j < 2e5; j++); }, 1)"],
  ])("and %s costs one turn, and does not come back", async (_name, code) => {
    const restore = await restoredAfter(`globalThis.kept = 'kept'; ${code}; 1`);
    await expect(evaluated(runtime, await restore(), "await new Promise(() => {})")).rejects.toMatchObject(overLimit);
    const again = await restore();
    expect(await evaluated(runtime, again, "await new Promise((go) => setTimeout(go, 20)); return kept")).toBe("kept");
    await runtime.stop(again);
  });

  it("and breaks the rules of the wire costs two turns, and does not come back", async () => {
    const restore = await restoredAfter("globalThis.kept = 'kept'; setTimeout(() => holdfastDoor.send({ exchange: 77 }), 1); 1");
    const wait = "await new Promise((go) => setTimeout(go, 20)); return kept";
    for (let turn = 0; turn < 2; turn++) {
      await expect(evaluated(runtime, await restore(), wait)).rejects.toMatchObject({ name: "HarnessFailure" });
    }
    const again = await restore();
    expect(await evaluated(runtime, again, wait)).toBe("kept");
    await runtime.stop(again);
  });

  it("comes back where a turn failed by its own doing", async () => {
    const restore = await restoredAfter("globalThis.fired = 0; setTimeout(() => fired++, 1); 1");
    await expect(evaluated(runtime, await restore(), "for (;;);")).rejects.toMatchObject(overLimit);
    const again = await restore();
    expect(await evaluated(runtime, again, "await new Promise((go) => setTimeout(go, 20)); return fired")).toBe("1");
    await runtime.stop(again);
  });
});

describe("a guest that hangs the engine", () => {
  it("costs its neighbour on the same thread some time, and nothing else", async () => {
    const [neighbour, hostile] = [await create(), await create()];
    await evaluated(runtime, neighbour, "globalThis.kept = 'kept'");
    const hung = evaluated(runtime, hostile, "new Array(2 ** 27).join('ab')");
    const answer = evaluated(runtime, neighbour, "kept");
    await expect(hung).rejects.toMatchObject(overLimit);
    expect(await answer).toBe("kept");
    await runtime.stop(neighbour);
  });
});
