/**
 * Pages of a VM's memory as they were at its last capture.
 *
 * They lie in a WebAssembly memory of their own: like the VM's, it takes room only where it is written to, and goes back to the system as a
 * whole. Thousands of small buffers would stay with the allocator when a VM is gone.
 */

import { PAGE_BYTES, pageOf } from "./memory-delta.ts";

/** Bytes of a page of WebAssembly. */
const WASM_PAGE_BYTES = 65_536;

/** Pages by their number. */
export class StoredPages {
  readonly #memoryBytes: number;
  #memory: WebAssembly.Memory | undefined;
  #bytes = new Uint8Array();
  readonly #numbers = new Set<number>();

  /** `memoryBytes`: as long as the memory whose pages they are; it may be more. */
  constructor(memoryBytes: number) {
    this.#memoryBytes = memoryBytes;
  }

  /** A view of a page, until the next `set`; undefined for one that was never set. */
  get(number: number): Uint8Array | undefined {
    return this.#numbers.has(number) ? pageOf(this.#bytes, number) : undefined;
  }

  /** Keeps a copy. */
  set(number: number, bytes: Uint8Array): void {
    const end = (number + 1) * PAGE_BYTES;
    if (end > this.#bytes.length) this.#makeRoom(Math.max(end, this.#memoryBytes));
    this.#bytes.set(bytes, number * PAGE_BYTES);
    this.#numbers.add(number);
  }

  /** All of them: their numbers, and their bytes one after the other. */
  all(): { readonly numbers: Uint32Array<ArrayBuffer>; readonly bytes: Uint8Array<ArrayBuffer> } {
    const numbers = Uint32Array.from(this.#numbers);
    const bytes = new Uint8Array(numbers.length * PAGE_BYTES);
    for (const [index, number] of numbers.entries()) bytes.set(pageOf(this.#bytes, number), index * PAGE_BYTES);
    return { numbers, bytes };
  }

  #makeRoom(bytes: number): void {
    const wasmPages = Math.ceil(bytes / WASM_PAGE_BYTES);
    if (this.#memory === undefined) this.#memory = new WebAssembly.Memory({ initial: wasmPages });
    else this.#memory.grow(wasmPages - this.#bytes.length / WASM_PAGE_BYTES);
    this.#bytes = new Uint8Array(this.#memory.buffer);
  }
}
