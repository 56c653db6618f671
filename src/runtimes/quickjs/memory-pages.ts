/**
 * A VM's memory as pages of 4 KiB, and what changed in it as a delta: the numbers of the changed pages, and each of them combined with what
 * it was before by exclusive or, compressed. Pure.
 *
 * Invariants:
 * - Deltas commute: a memory is its base combined with all of its deltas, in whatever order. So two of them are merged without a third.
 * - A page that is absent is zero; so is memory that the VM did not have yet.
 */

import { brotliCompressSync, brotliDecompressSync, constants } from "node:zlib";
import { HoldfastError } from "../../base/index.ts";

/** Bytes of a page. Smaller than WebAssembly's own, since a turn that changes little touches few of these. */
export const PAGE_BYTES = 4096;

/** Pages by their number. */
export type Pages = Map<number, Uint8Array>;

/**
 * Measured on what a small turn changes (44 pages of which 4 KB are not zero): Brotli at 3 gives 4.6 KB in 0.18 ms, at 5 4.1 KB in 0.53 ms;
 * deflate at 1 gives 6.0 KB in 0.15 ms, at 6 4.8 KB in 0.68 ms. A base is stored once, and may take longer.
 */
const QUALITIES = { small: 3, thorough: 6 } as const;

/** Encodes pages that were combined already. `thorough` trades time for bytes. */
export function packPages(pages: ReadonlyMap<number, Uint8Array>, effort: keyof typeof QUALITIES): Uint8Array {
  const plain = new Uint8Array(4 + pages.size * (4 + PAGE_BYTES));
  const view = new DataView(plain.buffer);
  view.setUint32(0, pages.size, true);
  let entry = 0;
  for (const [number, bytes] of pages) {
    view.setUint32(4 + entry * 4, number, true);
    plain.set(bytes, 4 + pages.size * 4 + entry * PAGE_BYTES);
    entry++;
  }
  const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT } = constants;
  return brotliCompressSync(plain, { params: { [BROTLI_PARAM_QUALITY]: QUALITIES[effort], [BROTLI_PARAM_SIZE_HINT]: plain.length } });
}

/**
 * Decodes what `packPages` made, of a memory of at most `memoryBytes`. Throws DATA_LOSS for anything else: the bytes were checked against
 * their digest, so whoever wrote them was not this program.
 */
export function unpackPages(packed: Uint8Array, memoryBytes: number): Pages {
  const pageCount = Math.ceil(memoryBytes / PAGE_BYTES);
  try {
    const plain = brotliDecompressSync(packed, { maxOutputLength: 4 + pageCount * (4 + PAGE_BYTES) });
    const view = new DataView(plain.buffer, plain.byteOffset, plain.byteLength);
    const count = view.getUint32(0, true);
    if (plain.length !== 4 + count * (4 + PAGE_BYTES)) throw new RangeError("the length is another");
    const pages: Pages = new Map();
    for (let entry = 0; entry < count; entry++) {
      const number = view.getUint32(4 + entry * 4, true);
      if (number >= pageCount) throw new RangeError("a page lies outside of the memory");
      const from = 4 + count * 4 + entry * PAGE_BYTES;
      pages.set(number, new Uint8Array(plain.buffer, plain.byteOffset + from, PAGE_BYTES));
    }
    return pages;
  } catch (cause) {
    throw new HoldfastError("data_loss", "a snapshot's pages cannot be read", { cause });
  }
}

/** Combines `delta` into `pages`; pages of `pages` are replaced, never written to. */
export function combine(pages: Pages, delta: ReadonlyMap<number, Uint8Array>): void {
  for (const [number, bytes] of delta) {
    const before = pages.get(number);
    pages.set(number, before === undefined ? bytes : xorOf(before, bytes));
  }
}

/** Several deltas as one. Pages that are as they were before all of them are left out. */
export function mergePacked(packed: readonly Uint8Array[], memoryBytes: number): Uint8Array {
  const merged: Pages = new Map();
  for (const one of packed) combine(merged, unpackPages(one, memoryBytes));
  for (const [number, bytes] of merged) {
    if (ZERO.equals(bytes)) merged.delete(number);
  }
  return packPages(merged, "small");
}

/** The pages of `memory` that are not what `before` says, combined with it. */
export function changedPages(memory: Uint8Array, before: (number: number) => Uint8Array | undefined): Pages {
  const changed: Pages = new Map();
  for (let number = 0; number * PAGE_BYTES < memory.length; number++) {
    const now = pageOf(memory, number);
    const then = before(number);
    if (Buffer.compare(now, then ?? ZERO) !== 0) changed.set(number, then === undefined ? now.slice() : xorOf(then, now));
  }
  return changed;
}

/** A view of a page. */
export function pageOf(memory: Uint8Array, number: number): Uint8Array {
  return memory.subarray(number * PAGE_BYTES, (number + 1) * PAGE_BYTES);
}

const ZERO = Buffer.alloc(PAGE_BYTES);

/** One page combined with another. */
export function xorOf(left: Uint8Array, right: Uint8Array): Uint8Array {
  const result = new Uint8Array(PAGE_BYTES);
  // Eight times as fast by words, where both lie on word boundaries.
  if (left.byteOffset % 4 === 0 && right.byteOffset % 4 === 0) {
    const words = new Uint32Array(result.buffer);
    const [a, b] = [wordsOf(left), wordsOf(right)];
    for (let index = 0; index < words.length; index++) words[index] = a[index]! ^ b[index]!;
  } else {
    for (let index = 0; index < PAGE_BYTES; index++) result[index] = left[index]! ^ right[index]!;
  }
  return result;
}

function wordsOf(bytes: Uint8Array): Uint32Array {
  return new Uint32Array(bytes.buffer, bytes.byteOffset, PAGE_BYTES / 4);
}
