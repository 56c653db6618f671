/**
 * Where large payloads live: content-addressed, written before the record that names them.
 *
 * Invariant: a blob that was put or renewed counts as new. So whoever is about to name blobs renews them first, and a sweep of what nobody
 * names (`src/controller/capture-sweep.ts`) takes only what is old.
 */

import type { SessionUid } from "../base/ids.ts";
import type { CallOptions } from "./harness.ts";

/** What names a blob: `uri` and `digest` go into the `*_uri` and `*_digest` fields of a record. */
export interface BlobName {
  readonly uri: string;
  /** `sha256:` and the lowercase hex SHA-256 of the bytes. */
  readonly digest: string;
}

/** A blob that was stored. */
export interface BlobRef extends BlobName {
  readonly sizeBytes: number;
}

/** A blob as a listing has it. */
export interface StoredBlob extends BlobRef {
  /** When it was put or renewed last, in milliseconds since the Unix epoch by the clock of whoever did. */
  readonly storedMs: number;
}

/** Which blob is removed. */
export interface DeleteBlobOptions extends CallOptions {
  /** Set: it stays if it was put or renewed at this time or later. */
  readonly storedBeforeMs?: number | undefined;
}

/** A store of blobs. */
export interface BlobStore {
  /** Stores bytes durably; the same bytes again are the same blob, renewed. */
  put(bytes: Uint8Array, options?: CallOptions): Promise<BlobRef>;
  /** The bytes of a blob, checked against the digest (DATA_LOSS where they differ); undefined when it is not here. */
  get(name: BlobName, options?: CallOptions): Promise<Uint8Array | undefined>;
  /** Makes a blob count as new; answers whether it is here. */
  renew(name: BlobName, options?: CallOptions): Promise<boolean>;
  /** The blobs that are here, in no order. One that is put or removed meanwhile may be among them or not. */
  list(options?: CallOptions): AsyncIterable<StoredBlob>;
  /** Removes a blob that nothing refers to any longer; answers whether it was here and went. */
  delete(name: BlobName, options?: DeleteBlobOptions): Promise<boolean>;
}

/** Whose blobs are removed. */
export interface RemoveBlobsOptions extends CallOptions {
  /** What was put or renewed at this time or later stays. */
  readonly storedBeforeMs: number;
  /** How many blobs go at most. */
  readonly removedMax: number;
}

/**
 * Blobs of sessions: what the records of a session name, each session's apart, so that all of it can go with the session. The same bytes put
 * by two sessions are two blobs with one name.
 */
export interface SessionBlobs {
  /** The blobs of one session. Nothing is made for it before the first one is put. */
  of(session: SessionUid): BlobStore;
  /** What the session is called by in a listing: its uid, or what stands for one that is no good name of a folder. */
  ownerOf(session: SessionUid): string;
  /** Those that have something here, in no order. One that puts its first blob meanwhile may be among them or not. */
  owners(options?: CallOptions): AsyncIterable<string>;
  /** Removes the old blobs of a session that is gone, and answers which went. */
  remove(owner: string, options: RemoveBlobsOptions): Promise<readonly StoredBlob[]>;
}

/**
 * The blobs that a stored capture is made of beside itself, as its bytes name them; they have no parts of their own. Undefined for bytes that
 * are no capture of the kind in question. Throws FAILED_PRECONDITION for one in a format of another version.
 */
export type CaptureParts = (bytes: Uint8Array) => readonly BlobName[] | undefined;

/** A snapshot's one string for a blob. */
export function snapshotUri({ uri, digest }: BlobName): string {
  return `${uri}#${digest}`;
}

/** The blob that a snapshot's string names; undefined where it names none. */
export function snapshotBlob(externalUri: string): BlobName | undefined {
  const at = externalUri.lastIndexOf("#");
  return at < 0 ? undefined : { uri: externalUri.slice(0, at), digest: externalUri.slice(at + 1) };
}
