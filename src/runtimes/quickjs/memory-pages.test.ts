import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { changedPages, combine, mergePacked, packPages, PAGE_BYTES, unpackPages, type Pages } from "./memory-pages.ts";

/** A memory of a few pages in which some bytes are set. */
const memoryArbitrary = fc.array(fc.tuple(fc.nat(8 * PAGE_BYTES - 1), fc.nat(255)), { maxLength: 20 }).map((writes) => {
  const memory = new Uint8Array(8 * PAGE_BYTES);
  for (const [at, byte] of writes) memory[at] = byte;
  return memory;
});

const deltaOf = (before: Uint8Array, now: Uint8Array) =>
  changedPages(now, (number) => before.subarray(number * PAGE_BYTES, (number + 1) * PAGE_BYTES));

/** `memory` combined with deltas. */
function applied(memory: Uint8Array, deltas: readonly Pages[]): Uint8Array {
  const pages: Pages = new Map();
  for (let number = 0; number < 8; number++) pages.set(number, memory.slice(number * PAGE_BYTES, (number + 1) * PAGE_BYTES));
  for (const delta of deltas) combine(pages, delta);
  const result = new Uint8Array(memory.length);
  for (const [number, bytes] of pages) result.set(bytes, number * PAGE_BYTES);
  return result;
}

describe("pages of a memory", () => {
  it("changes between two memories, packed and unpacked, make the one into the other", () => {
    fc.assert(
      fc.property(memoryArbitrary, memoryArbitrary, (before, now) => {
        const packed = packPages(deltaOf(before, now), "small");
        expect(applied(before, [unpackPages(packed, now.length)])).toEqual(now);
      }),
    );
  });

  it("deltas of a chain are combined in any order, and merged into one that is the same", () => {
    fc.assert(
      fc.property(fc.array(memoryArbitrary, { minLength: 2, maxLength: 6 }), fc.nat(), (memories, rotation) => {
        const deltas = memories.slice(1).map((memory, index) => packPages(deltaOf(memories[index]!, memory), "small"));
        const last = memories.at(-1)!;
        const turned = [...deltas.slice(rotation % deltas.length), ...deltas.slice(0, rotation % deltas.length)];
        const unpacked = turned.map((delta) => unpackPages(delta, last.length));
        expect(applied(memories[0]!, unpacked)).toEqual(last);
        expect(applied(memories[0]!, [unpackPages(mergePacked(deltas, last.length), last.length)])).toEqual(last);
      }),
    );
  });

  it("holds nothing of what did not change, also when it changed back", () => {
    const zero = new Uint8Array(2 * PAGE_BYTES);
    const set = zero.slice();
    set[5000] = 7;
    expect([...deltaOf(zero, set).keys()]).toEqual([1]);
    const there = packPages(deltaOf(zero, set), "small");
    const back = packPages(deltaOf(set, zero), "small");
    expect(unpackPages(mergePacked([there, back], zero.length), zero.length).size).toBe(0);
  });

  it.each([
    ["no compressed bytes", Uint8Array.of(1, 2, 3)],
    ["nothing", new Uint8Array()],
    ["a page outside of the memory", packPages(new Map([[9, new Uint8Array(PAGE_BYTES)]]), "small")],
    ["more pages than the memory has", packPages(new Map([0, 1, 2].map((page) => [page, new Uint8Array(PAGE_BYTES)])), "small")],
  ])("calls %s DATA_LOSS", (_what, packed) => {
    expect(() => unpackPages(packed, 2 * PAGE_BYTES)).toThrow(expect.objectContaining({ code: "data_loss" }));
  });
});
