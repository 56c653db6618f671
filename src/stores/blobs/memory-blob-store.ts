/** Blobs in this process: for tests and for what need not outlive it. */

import type { BlobStore } from "../../spi/index.ts";
import { addressOf, checkedBlob, hexOf } from "./blob-address.ts";

/** A store in memory. What is put and what is given are copies: nobody changes a blob. */
export function createMemoryBlobStore(): BlobStore {
  const blobs = new Map<string, Uint8Array>();
  return {
    put: async (bytes, { signal } = {}) => {
      signal?.throwIfAborted();
      const ref = addressOf(bytes);
      const hex = hexOf(ref);
      if (!blobs.has(hex)) blobs.set(hex, bytes.slice());
      return ref;
    },
    get: async (ref, { signal } = {}) => {
      signal?.throwIfAborted();
      const bytes = blobs.get(hexOf(ref));
      return bytes === undefined ? undefined : checkedBlob(ref, bytes.slice());
    },
    delete: async (ref, { signal } = {}) => {
      signal?.throwIfAborted();
      blobs.delete(hexOf(ref));
    },
  };
}
