/** Who keeps its neighbours on a thread waiting, by computing or by what is captured of it: once, and then it is on another thread. */

import { fileURLToPath } from "node:url";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { fenceOf, sessionUidOf } from "../../base/index.ts";
import { cryptoRandom, nodeDigest, systemClock } from "../../node/index.ts";
import type { Runtime } from "../../spi/index.ts";
import { createMemoryBlobStore } from "../../stores/blobs/index.ts";
import { evaluated } from "../../testing/evaluated.ts";
import { bundleHarness, createQuickJsRuntime, type QuickJsRuntimeOptions } from "./index.ts";

const ports = { clock: systemClock, random: cryptoRandom, digest: nodeDigest };
const bound = (session: string, fence = 2) => ({ sessionUid: sessionUidOf(session), fence: fenceOf(fence) });

let script: string;
beforeAll(async () => {
  const file = fileURLToPath(new URL("../../testing/guests/evaluator.ts", import.meta.url));
  script = await bundleHarness({ file, exportName: "createEvaluator" });
});

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime[Symbol.asyncDispose]()));
});

async function open(options: Partial<QuickJsRuntimeOptions> = {}): Promise<Runtime> {
  const runtime = await createQuickJsRuntime({ script, blobs: createMemoryBlobStore(ports), ports, workers: 1, ...options });
  opened.push(runtime);
  return runtime;
}

const create = (runtime: Runtime) => runtime.create({ ...bound("s", 1), harness: "evaluator" });

describe("a session that computes for long", () => {
  it("is moved to a thread for its like, with its memory and what is stored of it", async () => {
    const runtime = await open({ slowSliceCpuMs: 5 });
    const incarnation = await create(runtime);
    await evaluated(runtime, incarnation, "globalThis.x = 1");
    const before = await runtime.checkpoint!(incarnation);
    await evaluated(runtime, incarnation, "for (let i = 0; i < 3e5; i++); x = 2");
    await evaluated(runtime, incarnation, "for (let i = 0; i < 3e5; i++); return ++x");
    const after = await runtime.snapshot(incarnation, "external");
    expect(await evaluated(runtime, await runtime.restore(before, bound("s")), "x")).toBe("1");
    expect(await evaluated(runtime, await runtime.restore(after, bound("s", 3)), "x")).toBe("3");
  });
});

describe("a session whose captures take long", () => {
  const LARGE = "for (const part of parts) { part.fill(parts.turn, 0); await new Promise((done) => setTimeout(done, 1)); } parts.turn++";

  it("keeps its neighbours waiting once: it is on the thread for its like from then on, and so are its forks", async () => {
    const runtime = await open({ limits: { turnCpuMs: 20_000 } });
    const incarnation = await create(runtime);
    // 24 MiB in slices that are short enough, each turn.
    await evaluated(
      runtime,
      incarnation,
      "globalThis.parts = []; parts.turn = 1; while (parts.length < 24) { parts.push(new Uint32Array(2 ** 18)); await new Promise((done) => setTimeout(done, 1)); }",
    );
    for (let turn = 0; turn < 2; turn++) {
      await evaluated(runtime, incarnation, LARGE);
      await runtime.checkpoint!(incarnation);
    }
    const snapshot = await runtime.snapshot(incarnation, "external");
    expect((await runtime.restore(snapshot, bound("s"))).worker).toBe("quickjs-slow");
    const child = await runtime.fork(snapshot, bound("child"));
    expect(child.worker).toBe("quickjs-slow");
    expect(await evaluated(runtime, child, "parts.turn")).toBe("3");
  });

  it("merges much of it apart, in parts", async () => {
    const runtime = await open({ limits: { turnCpuMs: 60_000 } });
    const incarnation = await create(runtime);
    await evaluated(runtime, incarnation, "globalThis.parts = [new Uint32Array(2 ** 19)]; parts.turn = 1");
    for (let turn = 0; turn < 12; turn++) {
      await evaluated(runtime, incarnation, LARGE);
      await runtime.checkpoint!(incarnation);
    }
    const again = await runtime.restore(await runtime.snapshot(incarnation, "external"), bound("s"));
    expect(await evaluated(runtime, again, "parts.turn + ' ' + parts[0].every((word) => word === 12)")).toBe("13 true");
  });

  it("stays with the others where it has a large heap and changes little of it", async () => {
    const runtime = await open({ slowSliceCpuMs: 1_000 });
    const incarnation = await create(runtime);
    await evaluated(runtime, incarnation, "globalThis.big = Array.from({ length: 2e4 }, (_, i) => ({ i })); 1");
    for (let turn = 0; turn < 3; turn++) {
      await evaluated(runtime, incarnation, "++big[7].i");
      await runtime.checkpoint!(incarnation);
    }
    const snapshot = await runtime.snapshot(incarnation, "external");
    expect((await runtime.restore(snapshot, bound("s"))).worker).toBe("quickjs-1");
  });
});
