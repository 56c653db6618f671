/** Where large payloads live: content-addressed, written before the record that names them. */

import type { CallOptions } from "./harness.ts";

/** A blob's address in a record: `uri` and `digest` go into the `*_uri` and `*_digest` fields. */
export interface BlobRef {
  readonly uri: string;
  /** `sha256:` and the lowercase hex SHA-256 of the bytes. */
  readonly digest: string;
  readonly sizeBytes: number;
}

/** A store of blobs. */
export interface BlobStore {
  /** Stores bytes durably; the same bytes again are the same blob. */
  put(bytes: Uint8Array, options?: CallOptions): Promise<BlobRef>;
  /** The bytes of a blob, checked against the digest (DATA_LOSS where they differ); undefined when it is not here. */
  get(ref: Pick<BlobRef, "uri" | "digest">, options?: CallOptions): Promise<Uint8Array | undefined>;
  /** Removes a blob that nothing refers to any longer; one that is not here is passed over. */
  delete(ref: Pick<BlobRef, "uri" | "digest">, options?: CallOptions): Promise<void>;
}
