/** A blob store that does what another does, but for what is changed of it. */

import type { BlobStore } from "../spi/index.ts";

/** `blobs`, with some of its functions in the place of its own. */
export function forwardingBlobs(blobs: BlobStore, changed: Partial<BlobStore> = {}): BlobStore {
  return {
    put: (bytes, options) => blobs.put(bytes, options),
    get: (name, options) => blobs.get(name, options),
    renew: (name, options) => blobs.renew(name, options),
    list: (options) => blobs.list(options),
    delete: (name, options) => blobs.delete(name, options),
    ...changed,
  };
}
