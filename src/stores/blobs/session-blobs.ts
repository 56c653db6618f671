/**
 * Blobs of sessions: in memory, or as files in `<folder>/<session>/`, each session's a store of its own (`file-blob-store.ts`).
 *
 * Invariants:
 * - Two sessions have two folders, whatever their uids are and whatever the file system takes for one name: a uid of lowercase letters, digits
 *   and `-` names its folder, and any other is told by its digest.
 * - Nothing is made before a session's first blob is put. To put one costs the same however many there are: what a crash left half-written goes
 *   with the session.
 * - What is removed was old, each blob looked at by itself. A folder goes once it is empty.
 * - What lies there otherwise (files, links to elsewhere, folders of other names) belongs to no session: it is passed over and never followed.
 */

import { hash } from "node:crypto";
import { lstatSync, readdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { invalidArgument, UID_CHARS_MAX, type Clock, type SessionUid } from "../../base/index.ts";
import type { BlobStore, RemoveBlobsOptions, SessionBlobs, StoredBlob } from "../../spi/index.ts";
import { codeOf, fileBlobStoreAt, namesIn, removeAbandoned, unavailable, type FileBlobStoreOptions } from "./file-blob-store.ts";
import { createMemoryBlobStore } from "./memory-blob-store.ts";

/** Names that are told between two turns of the event loop. */
const NAMES_AT_ONCE = 64;

const PLAIN = /^[0-9a-z][0-9a-z-]*$/;
const DIGESTED = /^_[0-9a-f]{64}$/;

/** Blobs of sessions in files under a folder, which need not be there. */
export function createFileSessionBlobs({ folder, clock }: FileBlobStoreOptions): SessionBlobs {
  const blobsOf = (owner: string): BlobStore => fileBlobStoreAt({ folder: join(folder, owner), clock });
  return {
    of: (session) => blobsOf(ownerOf(session)),
    ownerOf,
    owners: async function* ({ signal } = {}) {
      for (const [at, name] of (await namesIn(folder)).entries()) {
        // A long list must not keep the event loop from everybody else.
        if (at % NAMES_AT_ONCE === 0) await new Promise(setImmediate);
        signal?.throwIfAborted();
        if (isOwner(name) && isFolder(join(folder, name))) yield name;
      }
    },
    remove: async (owner, options) => {
      if (!isOwner(owner)) throw invalidArgument("owner", "must be what this store calls a session");
      if (!isFolder(join(folder, owner))) return [];
      const removed = await removeOld(blobsOf(owner), options);
      leaveNothingEmpty(join(folder, owner), clock.nowMs());
      return removed;
    },
  };
}

/** Blobs of sessions in this process. */
export function createMemorySessionBlobs({ clock }: { readonly clock: Pick<Clock, "nowMs"> }): SessionBlobs {
  const stores = new Map<string, BlobStore>();
  return {
    of: (session) => {
      const owner = ownerOf(session);
      const unused = createMemoryBlobStore({ clock });
      const here = (): BlobStore => stores.get(owner) ?? unused;
      return {
        put: (bytes, options) => {
          stores.set(owner, here());
          return here().put(bytes, options);
        },
        get: (name, options) => here().get(name, options),
        renew: (name, options) => here().renew(name, options),
        list: (options) => here().list(options),
        delete: (name, options) => here().delete(name, options),
      };
    },
    ownerOf,
    owners: async function* () {
      yield* stores.keys();
    },
    remove: async (owner, options) => {
      const blobs = stores.get(owner);
      if (blobs === undefined) return [];
      const removed = await removeOld(blobs, options);
      const left = await Array.fromAsync(blobs.list());
      if (left.length === 0) stores.delete(owner);
      return removed;
    },
  };
}

function ownerOf(session: SessionUid): string {
  return PLAIN.test(session) ? session : `_${hash("sha256", session, "hex")}`;
}

function isOwner(name: string): boolean {
  return (PLAIN.test(name) && name.length <= UID_CHARS_MAX) || DIGESTED.test(name);
}

/** Whether there is a folder, and no link to one: whoever followed that would clear up somewhere else. */
function isFolder(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch (error) {
    throw unavailable(error);
  }
}

async function removeOld(blobs: BlobStore, { storedBeforeMs, removedMax, signal }: RemoveBlobsOptions): Promise<readonly StoredBlob[]> {
  const removed: StoredBlob[] = [];
  for await (const blob of blobs.list({ signal })) {
    if (removed.length >= removedMax) break;
    if (blob.storedMs < storedBeforeMs && (await blobs.delete(blob, { storedBeforeMs, signal }))) removed.push(blob);
  }
  return removed;
}

/** Removes what a crash left half-written, and the folders that hold nothing any more. */
function leaveNothingEmpty(folder: string, nowMs: number): void {
  try {
    removeAbandoned(folder, nowMs);
    for (const entry of readdirSync(folder, { withFileTypes: true })) if (entry.isDirectory()) removeIfEmpty(join(folder, entry.name));
    removeIfEmpty(folder);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw unavailable(error);
  }
}

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch (error) {
    if (codeOf(error) !== "ENOTEMPTY" && codeOf(error) !== "ENOENT") throw error;
  }
}
