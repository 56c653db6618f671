import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { applyDeltas, deltaOf, DeltaWriter, mergeDeltas, pageOf, PAGE_BYTES, PAGE_WORDS, readDelta } from "./memory-delta.ts";

const PAGES = 8;

/** A memory in which some bytes are set, and a page that is full of others. */
const memoryArbitrary = fc
  .tuple(fc.array(fc.tuple(fc.nat(PAGES * PAGE_BYTES - 1), fc.nat(255)), { maxLength: 20 }), fc.nat(PAGES - 1), fc.nat(255))
  .map(([writes, full, fill]) => {
    const memory = new Uint8Array(PAGES * PAGE_BYTES);
    for (let index = 0; index < PAGE_BYTES; index++) memory[full * PAGE_BYTES + index] = (index * fill) & 255;
    for (const [at, byte] of writes) memory[at] = byte;
    return memory;
  });

const between = (before: Uint8Array, now: Uint8Array) => deltaOf(now, (number) => pageOf(before, number)).finish("small");

function applied(memory: Uint8Array, deltas: readonly Uint8Array[]): Uint8Array {
  const result = memory.slice();
  applyDeltas(result, deltas);
  return result;
}

function pagesOf(delta: Uint8Array, memoryBytes: number): number[] {
  return [...applyDeltas(new Uint8Array(memoryBytes), [delta])];
}

describe("what changed in a memory", () => {
  it("makes the memory before into the one after, and back", () => {
    fc.assert(
      fc.property(memoryArbitrary, memoryArbitrary, (before, now) => {
        const delta = between(before, now);
        expect(applied(before, [delta])).toEqual(now);
        expect(applied(now, [delta])).toEqual(before);
      }),
    );
  });

  it("is combined in any order, and merged into one that is the same", () => {
    fc.assert(
      fc.property(fc.array(memoryArbitrary, { minLength: 2, maxLength: 6 }), fc.nat(), (memories, rotation) => {
        const deltas = memories.slice(1).map((memory, index) => between(memories[index]!, memory));
        const [first, last] = [memories[0]!, memories.at(-1)!];
        const turned = [...deltas.slice(rotation % deltas.length), ...deltas.slice(0, rotation % deltas.length)];
        expect(applied(first, turned)).toEqual(last);
        expect(applied(first, [mergeDeltas(deltas, last.length)])).toEqual(last);
      }),
    );
  });

  it("is nothing of what did not change, also where it changed back", () => {
    const zero = new Uint8Array(2 * PAGE_BYTES);
    const set = zero.slice();
    set[5000] = 7;
    expect(pagesOf(between(zero, set), zero.length)).toEqual([1]);
    expect(pagesOf(mergeDeltas([between(zero, set), between(set, zero)], zero.length), zero.length)).toEqual([]);
    expect(pagesOf(between(set, set), zero.length)).toEqual([]);
  });

  it("is told page by page, once it was read", () => {
    const now = new Uint8Array(3 * PAGE_BYTES).fill(1, PAGE_BYTES, 2 * PAGE_BYTES);
    const told: number[] = [];
    const writer = deltaOf(
      now,
      () => undefined,
      (number, page) => {
        told.push(number);
        expect(page).toEqual(pageOf(now, number));
      },
    );
    expect([writer.pages, told]).toEqual([1, [1]]);
  });

  it("takes much more than its first room, and the worst of pages", () => {
    const now = Uint8Array.from({ length: 200 * PAGE_BYTES }, (_, index) => ((index >> 2) % 4 === 0 ? 255 - (index & 127) : 0));
    const delta = deltaOf(now, () => undefined).finish("thorough");
    expect(applied(new Uint8Array(now.length), [delta])).toEqual(now);
  });

  const page = (number: number) => {
    const writer = new DeltaWriter();
    writer.add(number, new Uint32Array(PAGE_WORDS).fill(1));
    return writer.finish("small");
  };
  it.each([
    ["nothing", new Uint8Array()],
    ["a length alone", Uint8Array.of(8, 0, 0, 0)],
    ["no compressed bytes", Uint8Array.of(8, 0, 0, 0, 1, 2, 3)],
    ["longer than such a memory can make it", Uint8Array.of(255, 255, 255, 0, 1, 2, 3)],
    ["another length than it says", Uint8Array.from(page(0), (byte, index) => (index === 0 ? byte + 4 : byte))],
    ["of a page outside of the memory", page(2)],
  ])("is DATA_LOSS where it is %s", (_what, packed) => {
    expect(() => readDelta(packed, 2 * PAGE_BYTES, () => undefined)).toThrow(expect.objectContaining({ code: "data_loss" }));
  });
});
