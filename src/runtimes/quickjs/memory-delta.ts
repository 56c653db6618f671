/**
 * What changed in a VM's memory, as bytes: for every changed page of 4 KiB the words that are not what they were, combined with what they
 * were by exclusive or, compressed. Pure.
 *
 * Invariants:
 * - Deltas commute: a memory is its base combined with all of its deltas, in whatever order. So two of them are merged without a third.
 * - A page that is absent is zero; so is memory that the VM did not have yet.
 * - Words are little-endian, as WebAssembly has them.
 */

import { brotliCompressSync, brotliDecompressSync, constants } from "node:zlib";
import { HoldfastError } from "../../base/index.ts";

/** Bytes of a page. Smaller than WebAssembly's own, since a turn that changes little touches few of these. */
export const PAGE_BYTES = 4096;
/** Words of a page. */
export const PAGE_WORDS = PAGE_BYTES / 4;

/** Zero words between two runs of others that are written out: a run of its own would take as many. */
const GAP_WORDS = 2;

/** A base is stored once and may take longer; Brotli at 3 is as fast as the fastest deflate on what a turn changes, and a quarter smaller. */
const QUALITIES = { small: 3, thorough: 7 } as const;

/** Where deltas are written before they are compressed; grown as needed, and kept, since fresh memory costs more than the writing. */
let scratch = new Uint32Array(64 * PAGE_WORDS);
const SCRATCH_KEPT_WORDS = 2 ** 20;

/**
 * Writes one delta: `[pages]`, then for each page `[number, runs]`, then for each run `[first word | words << 16]` and the words. One writer
 * at a time.
 */
export class DeltaWriter {
  /** Pages so far. */
  pages = 0;
  #at = 1;

  /** Adds the words of a page, combined; one without any is left out. Answers whether there were any. */
  add(number: number, words: Uint32Array): boolean {
    this.#makeRoom();
    const head = this.#at;
    let at = head + 2;
    let runs = 0;
    for (let first = nextWord(words, 0); first < PAGE_WORDS; runs++) {
      const end = runEnd(words, first);
      scratch[at++] = first | ((end - first) << 16);
      for (let index = first; index < end; index++) scratch[at++] = words[index]!;
      first = nextWord(words, end);
    }
    if (runs === 0) return false;
    scratch[head] = number;
    scratch[head + 1] = runs;
    this.#at = at;
    this.pages++;
    return true;
  }

  /** The delta. */
  finish(effort: keyof typeof QUALITIES): Uint8Array {
    scratch[0] = this.pages;
    const plain = new Uint8Array(scratch.buffer, 0, this.#at * 4);
    const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT } = constants;
    const compressed = brotliCompressSync(plain, {
      params: { [BROTLI_PARAM_QUALITY]: QUALITIES[effort], [BROTLI_PARAM_SIZE_HINT]: plain.length },
    });
    const packed = new Uint8Array(4 + compressed.length);
    new DataView(packed.buffer).setUint32(0, plain.length, true);
    packed.set(compressed, 4);
    if (scratch.length > SCRATCH_KEPT_WORDS) scratch = new Uint32Array(64 * PAGE_WORDS);
    return packed;
  }

  /** A page takes its words and, at worst, a head for every third of them. */
  #makeRoom(): void {
    if (this.#at + 2 * PAGE_WORDS <= scratch.length) return;
    const larger = new Uint32Array(scratch.length * 2);
    larger.set(scratch.subarray(0, this.#at));
    scratch = larger;
  }
}

function nextWord(words: Uint32Array, from: number): number {
  let index = from;
  while (index < PAGE_WORDS && words[index] === 0) index++;
  return index;
}

function runEnd(words: Uint32Array, first: number): number {
  let end = first + 1;
  for (let index = end; index < PAGE_WORDS && index - end <= GAP_WORDS; index++) {
    if (words[index] !== 0) end = index + 1;
  }
  return end;
}

/** Is given each run: the page's number, its first word, and the words. */
export type RunVisitor = (page: number, first: number, words: Uint32Array) => void;

/**
 * Reads a delta of a memory of at most `memoryBytes`. Throws DATA_LOSS for what is none: its bytes were checked against their digest, so
 * whoever wrote them was not this program. Runs before the fault have been visited.
 */
export function readDelta(packed: Uint8Array, memoryBytes: number, visit: RunVisitor): void {
  try {
    const words = inflated(packed, memoryBytes);
    let at = 1;
    for (let page = 0; page < words[0]!; page++) {
      const [number, runs] = [words[at]!, words[at + 1]!];
      at += 2;
      if (!(number < memoryBytes / PAGE_BYTES)) throw new RangeError("a page lies outside of the memory");
      for (let run = 0; run < runs; run++) {
        const head = words[at++]!;
        const [first, count] = [head & 0xffff, head >>> 16];
        if (!(first + count <= PAGE_WORDS && at + count <= words.length)) throw new RangeError("a run lies outside of its page");
        visit(number, first, words.subarray(at, at + count));
        at += count;
      }
    }
    if (at !== words.length) throw new RangeError("its length is another");
  } catch (cause) {
    if (cause instanceof HoldfastError) throw cause;
    throw new HoldfastError("data_loss", "a stored snapshot is damaged: its pages cannot be read", { cause });
  }
}

/** How long a delta is before it is compressed, as it says itself: what reading it costs. */
export function plainBytesOf(packed: Uint8Array): number {
  return packed.length < 4 ? 0 : new DataView(packed.buffer, packed.byteOffset, packed.byteLength).getUint32(0, true);
}

function inflated(packed: Uint8Array, memoryBytes: number): Uint32Array {
  const plainBytes = plainBytesOf(packed);
  // Every page with all of its words and the heads of as many runs as there can be.
  const most = 4 + Math.ceil(memoryBytes / PAGE_BYTES) * 2 * PAGE_BYTES;
  if (plainBytes < 4 || plainBytes > most || plainBytes % 4 !== 0) throw new RangeError("its length cannot be right");
  const plain = brotliDecompressSync(packed.subarray(4), { chunkSize: Math.max(64, plainBytes + 1), maxOutputLength: plainBytes });
  if (plain.length !== plainBytes) throw new RangeError("its length is another");
  const isAligned = plain.byteOffset % 4 === 0;
  const bytes = isAligned ? plain : Uint8Array.from(plain);
  return new Uint32Array(bytes.buffer, bytes.byteOffset, plainBytes / 4);
}

/** Combines deltas into a memory, in place. Answers the numbers of the pages that were touched. */
export function applyDeltas(memory: Uint8Array, deltas: readonly Uint8Array[]): Set<number> {
  const touched = new Set<number>();
  const words = new Uint32Array(memory.buffer, memory.byteOffset, memory.length / 4);
  for (const delta of deltas) {
    readDelta(delta, memory.length, (page, first, run) => {
      touched.add(page);
      const from = page * PAGE_WORDS + first;
      for (let index = 0; index < run.length; index++) words[from + index]! ^= run[index]!;
    });
  }
  return touched;
}

/** Several deltas as one. Words that are as they were before all of them are left out. */
export function mergeDeltas(deltas: readonly Uint8Array[], memoryBytes: number): Uint8Array {
  const pages = new Map<number, Uint32Array>();
  for (const delta of deltas) {
    readDelta(delta, memoryBytes, (number, first, run) => {
      let page = pages.get(number);
      if (page === undefined) pages.set(number, (page = new Uint32Array(PAGE_WORDS)));
      for (let index = 0; index < run.length; index++) page[first + index]! ^= run[index]!;
    });
  }
  const writer = new DeltaWriter();
  for (const [number, words] of pages) writer.add(number, words);
  return writer.finish("small");
}

/**
 * What of `memory` is not what `before` says, as a delta. `onChanged` is called for each page that differs, after it was read, and may change
 * what `before` says of it.
 */
export function deltaOf(
  memory: Uint8Array,
  before: (number: number) => Uint8Array | undefined,
  onChanged: (number: number, page: Uint8Array) => void = () => undefined,
): DeltaWriter {
  const writer = new DeltaWriter();
  for (let number = 0; number * PAGE_BYTES < memory.length; number++) {
    const now = pageOf(memory, number);
    const then = before(number) ?? ZERO;
    if (Buffer.compare(now, then) === 0) continue;
    const [a, b] = [wordsOf(now), wordsOf(then)];
    for (let index = 0; index < PAGE_WORDS; index++) combined[index] = a[index]! ^ b[index]!;
    writer.add(number, combined);
    onChanged(number, now);
  }
  return writer;
}

/** A view of a page. */
export function pageOf(memory: Uint8Array, number: number): Uint8Array {
  return memory.subarray(number * PAGE_BYTES, (number + 1) * PAGE_BYTES);
}

const ZERO = new Uint8Array(PAGE_BYTES);
const combined = new Uint32Array(PAGE_WORDS);

function wordsOf(bytes: Uint8Array): Uint32Array {
  return new Uint32Array(bytes.buffer, bytes.byteOffset, PAGE_WORDS);
}
