/** Blobs in this process: for tests and for what need not outlive it. */

import type { Clock } from "../../base/index.ts";
import type { BlobName, BlobStore } from "../../spi/index.ts";
import { addressOf, checkedBlob, hexOf } from "./blob-address.ts";

interface Kept {
  readonly name: BlobName;
  readonly bytes: Uint8Array;
  storedMs: number;
}

/** A store in memory. What is put and what is given are copies (the `slice` of a Node Buffer would be none): nobody changes a blob. */
export function createMemoryBlobStore({ clock }: { readonly clock: Pick<Clock, "nowMs"> }): BlobStore {
  const blobs = new Map<string, Kept>();
  const renew = (hex: string): boolean => {
    const kept = blobs.get(hex);
    if (kept !== undefined) kept.storedMs = clock.nowMs();
    return kept !== undefined;
  };
  return {
    put: async (bytes, { signal } = {}) => {
      signal?.throwIfAborted();
      const ref = addressOf(bytes);
      const hex = hexOf(ref);
      const name = { uri: ref.uri, digest: ref.digest };
      if (!renew(hex)) blobs.set(hex, { name, bytes: new Uint8Array(bytes), storedMs: clock.nowMs() });
      return ref;
    },
    get: async (name, { signal } = {}) => {
      signal?.throwIfAborted();
      const kept = blobs.get(hexOf(name));
      return kept === undefined ? undefined : checkedBlob(name, new Uint8Array(kept.bytes));
    },
    renew: async (name, { signal } = {}) => {
      signal?.throwIfAborted();
      return renew(hexOf(name));
    },
    list: async function* ({ signal } = {}) {
      for (const { name, bytes, storedMs } of blobs.values()) {
        signal?.throwIfAborted();
        yield { ...name, sizeBytes: bytes.length, storedMs };
      }
    },
    delete: async (name, { signal, storedBeforeMs = Number.POSITIVE_INFINITY } = {}) => {
      signal?.throwIfAborted();
      const hex = hexOf(name);
      const kept = blobs.get(hex);
      return kept !== undefined && kept.storedMs < storedBeforeMs && blobs.delete(hex);
    },
  };
}
