/**
 * Pages of a VM's memory as they were at its last capture.
 *
 * They lie in a WebAssembly memory of their own: like the VM's, it takes room only where it is written to, and goes back to the system as a
 * whole. Thousands of small buffers would stay with the allocator when a VM is gone.
 */

import { PAGE_BYTES } from "./memory-pages.ts";

/** Bytes of a page of WebAssembly. */
const WASM_PAGE_BYTES = 65_536;

/** Pages by their number. */
export class StoredPages {
  #memory: WebAssembly.Memory | undefined;
  readonly #numbers = new Set<number>();

  /** A view of a page, until the next `set`; undefined for one that was never set. */
  get(number: number): Uint8Array | undefined {
    if (this.#memory === undefined || !this.#numbers.has(number)) return undefined;
    return new Uint8Array(this.#memory.buffer, number * PAGE_BYTES, PAGE_BYTES);
  }

  /** Keeps a copy. */
  set(number: number, bytes: Uint8Array): void {
    const wasmPages = Math.ceil(((number + 1) * PAGE_BYTES) / WASM_PAGE_BYTES);
    this.#memory ??= new WebAssembly.Memory({ initial: wasmPages });
    const missing = wasmPages - this.#memory.buffer.byteLength / WASM_PAGE_BYTES;
    if (missing > 0) this.#memory.grow(missing);
    new Uint8Array(this.#memory.buffer).set(bytes, number * PAGE_BYTES);
    this.#numbers.add(number);
  }
}
