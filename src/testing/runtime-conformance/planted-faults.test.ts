/** Each case must be able to fail: a runtime with one fault planted in it does not pass the case that is there for it. */

import { create } from "@bufbuild/protobuf";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { fenceOf, sessionUidOf } from "../../base/index.ts";
import { RuntimeCapabilitiesSchema } from "../../gen/agentsessions/v1/session_pb.ts";
import { cryptoRandom, nodeDigest, systemClock } from "../../node/index.ts";
import { bundleHarness, createQuickJsRuntime } from "../../runtimes/quickjs/index.ts";
import { ComputeState, type Incarnation, type Runtime, type SnapshotRef } from "../../spi/index.ts";
import { createMemoryBlobStore } from "../../stores/blobs/index.ts";
import { runtimeCases } from "./index.ts";

const ports = { clock: systemClock, random: cryptoRandom, digest: nodeDigest };

let script: string;
beforeAll(async () => {
  const file = fileURLToPath(new URL("../../harnesses/counter.ts", import.meta.url));
  script = await bundleHarness({ file, exportName: "createCounterHarness" });
});

type Planted = (sound: Runtime) => Partial<Runtime>;

/** A runtime that does what `sound` does but for what is planted. */
function plant(sound: Runtime, planted: Planted): Runtime {
  return {
    name: sound.name,
    create: (spec, options) => sound.create(spec, options),
    attach: (incarnation, options) => sound.attach(incarnation, options),
    describe: (options) => sound.describe(options),
    snapshot: (incarnation, kind, options) => sound.snapshot(incarnation, kind, options),
    checkpoint: (incarnation, options) => sound.checkpoint!(incarnation, options),
    restore: (snapshot, options) => sound.restore(snapshot, options),
    fork: (snapshot, options) => sound.fork(snapshot, options),
    stop: (incarnation, options) => sound.stop(incarnation, options),
    status: (incarnation, options) => sound.status(incarnation, options),
    capabilities: () => sound.capabilities(),
    renew: (snapshot, options) => sound.renew!(snapshot, options),
    discard: (snapshot, newer, options) => sound.discard!(snapshot, newer, options),
    [Symbol.asyncDispose]: () => sound[Symbol.asyncDispose](),
    ...planted(sound),
  };
}

const NO_ABORT = new AbortController().signal;
const without = { signal: NO_ABORT };
const elsewhere = { sessionUid: sessionUidOf("elsewhere"), fence: fenceOf(9) };

/** What is planted, and the case that must notice. */
const FAULTS: Readonly<Record<string, { readonly planted: Planted; readonly noticedBy: string }>> = {
  "it forgets the fence": {
    planted: (sound) => ({ create: (spec, options) => sound.create({ ...spec, fence: fenceOf(1) }, options) }),
    noticedBy: "life: an incarnation is bound to what it was created for",
  },
  "all sessions have one sandbox": {
    planted: (sound) => {
      let one: Promise<Incarnation> | undefined;
      return { create: (spec, options) => (one ??= sound.create(spec, options)) };
    },
    noticedBy: "life: sandboxes know nothing of each other",
  },
  "every attach makes another harness": {
    planted: (sound) => ({
      attach: async (incarnation, options) => {
        const harness = await sound.attach(incarnation, options);
        return { describe: (call) => harness.describe(call), run: (start, sink, call) => harness.run(start, sink, call) };
      },
    }),
    noticedBy: "life: attaching again gives the same harness",
  },
  "nobody can give up": {
    planted: (sound) => ({ create: (spec) => sound.create(spec, without) }),
    noticedBy: "life: whoever gave up before it began is told so",
  },
  "stopping stops nothing": {
    planted: () => ({ stop: async () => undefined }),
    noticedBy: "life: a stopped one is gone: terminated, and UNAVAILABLE to attach",
  },
  "it boasts": {
    planted: () => ({ capabilities: () => create(RuntimeCapabilitiesSchema, { cowFork: true }) }),
    noticedBy: "life: capabilities are what it does",
  },
  "it works on after its end": {
    planted: () => ({ [Symbol.asyncDispose]: async () => undefined }),
    noticedBy: "life: a disposed runtime does nothing more, and disposing again does nothing",
  },
  "external keeps the sandbox": {
    planted: (sound) => ({ snapshot: (incarnation, _kind, options) => sound.checkpoint!(incarnation, options) }),
    noticedBy: "snapshot: an external one releases the sandbox",
  },
  "local ends the sandbox": {
    planted: (sound) => ({ snapshot: (incarnation, _kind, options) => sound.snapshot(incarnation, "external", options) }),
    noticedBy: "snapshot: a local one keeps the sandbox, which goes on when it is attached",
  },
  "a restore keeps the old incarnation": {
    planted: (sound) => ({ restore: async (snapshot, options) => ({ ...(await sound.restore(snapshot, options)), fence: fenceOf(1) }) }),
    noticedBy: "snapshot: a restored session is bound to its new fence, and goes on",
  },
  "a restore begins anew": {
    planted: (sound) => ({ restore: (_snapshot, options) => sound.create({ ...options, harness: "counter" }) }),
    noticedBy: "snapshot: a restored session is bound to its new fence, and goes on",
  },
  "a checkpoint is the newest, whichever is asked for": {
    planted: (sound) => {
      let newest: SnapshotRef | undefined;
      return {
        checkpoint: async (incarnation, options) => (newest = await sound.checkpoint!(incarnation, options)),
        restore: (snapshot, options) => sound.restore(newest ?? snapshot, options),
      };
    },
    noticedBy: "snapshot: each of many checkpoints can be restored, in any order",
  },
  "it captures during a turn": {
    planted: (sound) => ({ snapshot: (incarnation, kind) => sound.snapshot(incarnation, kind).catch(() => newestOf(sound)) }),
    noticedBy: "snapshot: nothing is captured during a turn",
  },
  "forgetting takes what is needed": {
    planted: (sound) => ({
      restore: (snapshot, options) => (discarded ? Promise.reject(new Error("gone")) : sound.restore(snapshot, options)),
      discard: async () => void (discarded = true),
    }),
    noticedBy: "snapshot: what a newer one replaced can be discarded, and the newer one stays",
  },
  "it says that everything is there": {
    planted: () => ({ renew: async () => undefined }),
    noticedBy: "snapshot: one that is stored is whole, and one that never was is missed by name",
  },
  "it gives one session another's memory": {
    planted: (sound) => ({ restore: (snapshot, options) => sound.fork(snapshot, options) }),
    noticedBy: "snapshot: another session's is not restored",
  },
  "forks share one memory": {
    planted: (sound) => {
      let child: Promise<Incarnation> | undefined;
      return { fork: async (snapshot, options) => ({ ...(await (child ??= sound.fork(snapshot, options))), ...options }) };
    },
    noticedBy: "fork: eight forks of one snapshot go on independently",
  },
  "a fork takes the parent along": {
    planted: (sound) => ({
      fork: async (snapshot, options) => {
        const child = await sound.fork(snapshot, options);
        if (parent !== undefined) await sound.stop(parent);
        return child;
      },
      create: async (spec, options) => (parent = await sound.create(spec, options)),
    }),
    noticedBy: "fork: eight forks of one snapshot go on independently",
  },
  "a late fork is of what the parent is now": {
    planted: (sound) => ({
      create: async (spec, options) => (parent = await sound.create(spec, options)),
      fork: async (_snapshot, options) => sound.fork(await sound.checkpoint!(parent!), options),
    }),
    noticedBy: "fork: a child of a warm parent begins where the parent stood, or the fork is told to retry",
  },
  "what never was is made up": {
    planted: (sound) => ({ restore: () => sound.create({ ...elsewhere, harness: "counter" }) }),
    noticedBy: "fork: a snapshot that never was gives no sandbox",
  },
  "status says that all is well": {
    planted: () => ({ status: async () => ComputeState.COMPUTE_LIVE }),
    noticedBy: "snapshot: an external one releases the sandbox",
  },
};

let discarded = false;
let parent: Incarnation | undefined;

async function newestOf(sound: Runtime): Promise<SnapshotRef> {
  const other = await sound.create({ ...elsewhere, harness: "counter" });
  return sound.snapshot(other, "external");
}

describe("a runtime with a planted fault", () => {
  it.each(Object.entries(FAULTS))("fails: %s", async (_name, { planted, noticedBy }) => {
    [discarded, parent] = [false, undefined];
    const sound = await createQuickJsRuntime({ script, ports, workers: 1, blobs: createMemoryBlobStore(ports) });
    const runtime = plant(sound, planted);
    const open = async () => ({ runtime, sandboxed: true, [Symbol.asyncDispose]: () => sound[Symbol.asyncDispose]() });
    const noticing = runtimeCases(open).filter(({ name }) => name === noticedBy);
    expect(noticing).toHaveLength(1);
    await expect(noticing[0]!.run()).rejects.toThrow();
  });
});
