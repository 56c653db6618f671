import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../node/index.ts";
import { createMemoryBlobStore } from "../../stores/blobs/index.ts";
import { snapshotUri, type BlobStore } from "../../spi/index.ts";
import { forwardingBlobs } from "../../testing/index.ts";
import { applyDeltas, deltaOf as changesOf, mergeDeltas, PAGE_BYTES } from "./memory-delta.ts";
import type { Layer } from "./snapshot-format.ts";
import { layersKept, SnapshotStore, type StoredBase } from "./snapshot-store.ts";

const PINS = { wasm: "a".repeat(64), script: "b".repeat(64) };
const MEMORY_BYTES = 64 * PAGE_BYTES;
const STATE = { memoryBytes: MEMORY_BYTES, stackPointer: 1, runtimePtr: 2, contextPtr: 3 };
const merge = async (deltas: readonly Uint8Array[], memoryBytes: number) => mergeDeltas(deltas, memoryBytes);

const pageOf = (seed: number) => Uint8Array.from({ length: PAGE_BYTES }, (_, index) => (index * seed) & 255);
function deltaOf(page: number, seed: number): Uint8Array {
  const memory = new Uint8Array(MEMORY_BYTES);
  memory.set(pageOf(seed), page * PAGE_BYTES);
  return changesOf(memory, () => undefined).finish("small");
}

interface Stored {
  readonly blobs: BlobStore;
  readonly store: SnapshotStore;
  readonly base: StoredBase;
}

async function stored(): Promise<Stored> {
  const blobs = createMemoryBlobStore({ clock: systemClock });
  const store = new SnapshotStore(blobs, PINS);
  return { blobs, store, base: await store.putBase({ state: STATE, pages: changesOf(new Uint8Array(), () => undefined).finish("small") }) };
}

const headOf = (base: StoredBase) => ({ base: base.ref, session: "s", memoryBytes: MEMORY_BYTES, timers: [], nowMs: 5 });

describe("stored captures", () => {
  it("come back with their base, their layers and their head, also to another process", async () => {
    const { blobs, store, base } = await stored();
    const first = await store.put(headOf(base), [], deltaOf(1, 3), merge, {});
    const second = await store.put(headOf(base), first, deltaOf(2, 5), merge, {});
    const capture = await new SnapshotStore(blobs, PINS).get(snapshotUri(second.at(-1)!), {});
    expect(capture).toMatchObject({ head: { session: "s", nowMs: 5, memoryBytes: MEMORY_BYTES }, base: { image: { state: STATE } } });
    expect(capture?.chain).toEqual(second);
    expect(capture?.deltas.map((delta) => [...applyDeltas(new Uint8Array(MEMORY_BYTES), [delta])])).toEqual([[1], [2]]);
  });

  it("are undefined where they never were, and DATA_LOSS where a part of them is gone", async () => {
    const { blobs, store, base } = await stored();
    const first = await store.put(headOf(base), [], deltaOf(1, 3), merge, {});
    const second = await store.put(headOf(base), first, deltaOf(2, 5), merge, {});
    await blobs.delete(first[0]!);
    await expect(store.get(snapshotUri(first[0]!), {})).resolves.toBeUndefined();
    await expect(store.get(snapshotUri(second[1]!), {})).rejects.toMatchObject({ code: "data_loss" });
    const alone = await store.put(headOf(base), [], deltaOf(3, 3), merge, {});
    await blobs.delete(base.ref);
    await expect(new SnapshotStore(blobs, PINS).get(snapshotUri(alone[0]!), {})).rejects.toMatchObject({ code: "data_loss" });
  });

  it.each([
    ["engine", { ...PINS, wasm: "c".repeat(64) }, /another QuickJS engine \(sha256 aaaaaaaaaaaa…, this host has cccccccccccc…\)/],
    ["script", { ...PINS, script: "c".repeat(64) }, /another harness script \(sha256 bbbbbbbbbbbb…, this host has cccccccccccc…\)/],
  ])("are refused by a host that has another %s", async (_what, pins, message) => {
    const { blobs, store, base } = await stored();
    const layers = await store.put(headOf(base), [], deltaOf(1, 3), merge, {});
    const other = new SnapshotStore(blobs, pins).get(snapshotUri(layers[0]!), {});
    await expect(other).rejects.toMatchObject({ code: "failed_precondition", message: expect.stringMatching(message) });
  });

  it("are refused in a format of another time", async () => {
    const { blobs, store, base } = await stored();
    const layers = await store.put(headOf(base), [], deltaOf(1, 3), merge, {});
    const bytes = (await blobs.get(layers[0]!))!;
    const other = await blobs.put(Buffer.from(Buffer.from(bytes).toString("latin1").replace('"format":1', '"format":9'), "latin1"));
    await expect(store.get(snapshotUri({ ...other, packedBytes: 0 } as Layer), {})).rejects.toMatchObject({ code: "failed_precondition" });
  });

  it.each([
    ["no capture at all", Uint8Array.of(9, 0, 0, 0, 1)],
    ["less than a head", Uint8Array.of(1)],
  ])("are DATA_LOSS where a blob is %s", async (_what, bytes) => {
    const { blobs, store } = await stored();
    const ref = await blobs.put(bytes);
    await expect(store.get(snapshotUri(ref), {})).rejects.toMatchObject({ code: "data_loss" });
  });

  it("read once what many want at once", async () => {
    const { blobs, store, base } = await stored();
    const [layer] = await store.put(headOf(base), [], deltaOf(1, 3), merge, {});
    let reads = 0;
    const counted = new SnapshotStore(
      forwardingBlobs(blobs, {
        get: (ref) => {
          reads++;
          return blobs.get(ref);
        },
      }),
      PINS,
    );
    await Promise.all(Array.from({ length: 8 }, () => counted.get(snapshotUri(layer!), {})));
    expect(reads).toBe(2);
  });

  it("hold what every chain of changes comes to, however often layers are merged", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(63), fc.integer({ min: 1, max: 250 })), { minLength: 1, maxLength: 80 }),
        async (changes) => {
          const { store, base } = await stored();
          const expected = new Uint8Array(MEMORY_BYTES);
          let chain: Layer[] = [];
          for (const [page, seed] of changes) {
            chain = await store.put(headOf(base), chain, deltaOf(page, seed), merge, {});
            applyDeltas(expected, [deltaOf(page, seed)]);
          }
          const capture = await store.get(snapshotUri(chain.at(-1)!), {});
          const found = new Uint8Array(MEMORY_BYTES);
          applyDeltas(found, capture!.deltas);
          expect(found).toEqual(expected);
          expect(chain.length).toBeLessThan(60);
        },
      ),
      { numRuns: 30 },
    );
  });
});

describe("merging layers", () => {
  const chainOf = (...sizes: number[]) => sizes.map((packedBytes) => ({ packedBytes }));
  const KIB = 1024;

  it("leaves a short chain alone", () => {
    expect(layersKept(chainOf(5, 5, 5), 5)).toBe(3);
  });

  it("merges the newest while they are small together, and keeps a large heap", () => {
    expect(layersKept(chainOf(3000 * KIB, ...Array.from({ length: 8 }, () => 2 * KIB)), 2 * KIB)).toBe(1);
    expect(layersKept(chainOf(3000 * KIB, ...Array.from({ length: 8 }, () => 7 * KIB)), 7 * KIB)).toBe(7);
  });

  it("merges a long chain down to what is much larger than the rest", () => {
    expect(layersKept(chainOf(3000 * KIB, ...Array.from({ length: 47 }, () => 20 * KIB)), 20 * KIB)).toBe(1);
    expect(layersKept(chainOf(300 * KIB, ...Array.from({ length: 47 }, () => 20 * KIB)), 20 * KIB)).toBe(0);
  });
});
