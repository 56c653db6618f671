/**
 * Blobs as files: `<folder>/<first two hex digits>/<sixty-four hex digits>`.
 *
 * Invariants:
 * - A file under its final name is whole and on the disk: it is written and synced under a temporary name, then renamed, then the folder
 *   is synced. A crash leaves a temporary file, which the next opening removes, or nothing.
 * - What is read is checked against the name. A damaged file is DATA_LOSS, never bytes.
 * - The same bytes are one file, however many put them, in however many processes.
 * - The time of a file's last change is when it was put or renewed, by the clock of whoever did. A file that is removed for being old is
 *   first taken away from its name, then looked at: one that another process renews meanwhile is put back, or that process finds it gone
 *   and is told so.
 *
 * Names are opened and renamed on this thread, which takes microseconds; bytes are read, written and synced on Node's own threads. Each
 * step there would wait for its turn twice, and a blob has eight.
 */

import { readdirSync, renameSync, rmSync, statSync, utimesSync, type Stats } from "node:fs";
import { readdir, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { threadId } from "node:worker_threads";
import { HoldfastError, type Clock } from "../../base/index.ts";
import { makeFolder } from "../../node/index.ts";
import type { BlobName, BlobRef, BlobStore, CallOptions, DeleteBlobOptions, StoredBlob } from "../../spi/index.ts";
import { addressOf, checkedBlob, hexOf, nameOf } from "./blob-address.ts";
import { readWhole, syncFolder, writeSynced } from "./synced-file.ts";

/** A temporary file that is older is nobody's any longer. */
const ABANDONED_AFTER_MS = 60 * 60 * 1000;
const TEMPORARY = ".part";

/** How many stores this process has opened. */
let opened = 0;

/** What a store of files is opened with. */
export interface FileBlobStoreOptions {
  /** Made where there is none. */
  readonly folder: string;
  /** Tells how old files are, and which temporary ones are abandoned. */
  readonly clock: Pick<Clock, "nowMs">;
}

/**
 * Opens a store of files. Throws FAILED_PRECONDITION where the folder is none and cannot be made, RESOURCE_EXHAUSTED where the disk is full,
 * UNAVAILABLE where it cannot be read.
 */
export function openFileBlobStore({ folder, clock }: FileBlobStoreOptions): BlobStore {
  makeFolder(folder, "blob folder");
  try {
    removeAbandoned(folder, clock.nowMs());
  } catch (error) {
    throw unavailable(error);
  }
  return new FileBlobStore(folder, clock);
}

/**
 * The same for a folder that need not be there: it is made for the first blob, and what a crash left half-written in it is not looked for, which
 * would take longer the more blobs there are.
 */
export function fileBlobStoreAt({ folder, clock }: FileBlobStoreOptions): BlobStore {
  return new FileBlobStore(folder, clock);
}

class FileBlobStore implements BlobStore {
  readonly #folder: string;
  readonly #clock: Pick<Clock, "nowMs">;
  /** Folders that this process made or saw, and whose own names are on the disk. */
  readonly #folders = new Set<string>();
  /** What the temporary files of this store, and of no other one, begin with; a process may have the id of one that crashed. */
  readonly #author: string;
  #temporary = 0;

  constructor(folder: string, clock: Pick<Clock, "nowMs">) {
    this.#folder = folder;
    this.#clock = clock;
    this.#author = `${process.pid}-${threadId}-${clock.nowMs().toString(36)}-${opened++}`;
  }

  async put(bytes: Uint8Array, { signal }: CallOptions = {}): Promise<BlobRef> {
    signal?.throwIfAborted();
    const ref = addressOf(bytes);
    const file = this.#fileOf(ref);
    try {
      if (isWhole(file, bytes.length) && this.#renew(file)) await syncFolder(dirname(file));
      else await this.#write(file, bytes);
      return ref;
    } catch (error) {
      throw unavailable(error);
    }
  }

  async get(ref: BlobName, { signal }: CallOptions = {}): Promise<Uint8Array | undefined> {
    const file = this.#fileOf(ref);
    signal?.throwIfAborted();
    try {
      const bytes = checkedBlob(ref, await readWhole(file));
      signal?.throwIfAborted();
      return bytes;
    } catch (error) {
      if (error instanceof HoldfastError) throw error;
      signal?.throwIfAborted();
      if (codeOf(error) === "ENOENT") return undefined;
      throw unavailable(error);
    }
  }

  async renew(ref: BlobName, { signal }: CallOptions = {}): Promise<boolean> {
    const file = this.#fileOf(ref);
    signal?.throwIfAborted();
    try {
      return this.#renew(file);
    } catch (error) {
      throw unavailable(error);
    }
  }

  async *list({ signal }: CallOptions = {}): AsyncGenerator<StoredBlob, void, undefined> {
    for (const part of await namesIn(this.#folder)) {
      if (!PART_NAME.test(part)) continue;
      for (const hex of await namesIn(join(this.#folder, part))) {
        signal?.throwIfAborted();
        const found = BLOB_NAME.test(hex) ? await statOf(join(this.#folder, part, hex)) : undefined;
        if (found?.isFile() === true) yield { ...nameOf(hex), sizeBytes: found.size, storedMs: found.mtimeMs };
      }
    }
  }

  async delete(ref: BlobName, { signal, storedBeforeMs }: DeleteBlobOptions = {}): Promise<boolean> {
    const file = this.#fileOf(ref);
    signal?.throwIfAborted();
    try {
      if (storedBeforeMs !== undefined) return this.#deleteOld(file, storedBeforeMs);
      await rm(file);
      return true;
    } catch (error) {
      if (codeOf(error) === "ENOENT") return false;
      throw unavailable(error);
    }
  }

  /** Whether the file is there; its time is now. */
  #renew(file: string): boolean {
    const nowSeconds = this.#clock.nowMs() / 1000;
    try {
      utimesSync(file, nowSeconds, nowSeconds);
      return true;
    } catch (error) {
      if (codeOf(error) === "ENOENT") return false;
      throw error;
    }
  }

  /** All in one go, so that within this process nobody renews it meanwhile; see the invariants for other ones. */
  #deleteOld(file: string, storedBeforeMs: number): boolean {
    if (!(statSync(file).mtimeMs < storedBeforeMs)) return false;
    const taken = this.#temporaryOf(file);
    renameSync(file, taken);
    if (statSync(taken).mtimeMs < storedBeforeMs) {
      rmSync(taken);
      return true;
    }
    renameSync(taken, file);
    return false;
  }

  #temporaryOf(file: string): string {
    return `${file}.${this.#author}-${this.#temporary++}${TEMPORARY}`;
  }

  #fileOf(ref: BlobName): string {
    const hex = hexOf(ref);
    return join(this.#folder, hex.slice(0, 2), hex);
  }

  async #write(file: string, bytes: Uint8Array): Promise<void> {
    try {
      await this.#writeOnce(file, bytes);
    } catch (error) {
      if (codeOf(error) !== "ENOENT") throw error;
      // Its folder was empty, and somebody has cleared it away.
      this.#folders.delete(dirname(file));
      await this.#writeOnce(file, bytes);
    }
  }

  async #writeOnce(file: string, bytes: Uint8Array): Promise<void> {
    const folder = dirname(file);
    await this.#makeFolder(folder);
    const temporary = this.#temporaryOf(file);
    try {
      await writeSynced(temporary, bytes, this.#clock.nowMs());
      renameSync(temporary, file);
    } catch (error) {
      rmSync(temporary, { force: true });
      throw error;
    }
    await syncFolder(folder);
  }

  async #makeFolder(folder: string): Promise<void> {
    if (this.#folders.has(folder)) return;
    if (statSync(folder, { throwIfNoEntry: false }) === undefined) makeFolder(folder, "blob folder");
    // Another process may have made it, and not have come further.
    await syncFolder(this.#folder);
    this.#folders.add(folder);
  }
}

/** Whether the blob is there already, as long as it should be (a damaged one is written anew). Its name may not be on the disk yet. */
function isWhole(file: string, sizeBytes: number): boolean {
  return statSync(file, { throwIfNoEntry: false })?.size === sizeBytes;
}

const PART_NAME = /^[0-9a-f]{2}$/;
const BLOB_NAME = /^[0-9a-f]{64}$/;

/** The names in a folder; none where it is gone. */
export async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return [];
    throw unavailable(error);
  }
}

async function statOf(file: string): Promise<Stats | undefined> {
  try {
    return await stat(file);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw unavailable(error);
  }
}

/** Removes what a crash left half-written. Others may be writing now: only what is old goes. */
export function removeAbandoned(folder: string, nowMs: number): void {
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(TEMPORARY)) continue;
    const file = join(folder, name);
    const modifiedMs = statSync(file, { throwIfNoEntry: false })?.mtimeMs;
    if (modifiedMs !== undefined && nowMs - modifiedMs > ABANDONED_AFTER_MS) rmSync(file, { force: true });
  }
}

export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}

export function unavailable(cause: unknown): HoldfastError {
  if (cause instanceof HoldfastError) return cause;
  const details = { errno: codeOf(cause) };
  return new HoldfastError("unavailable", "the blob store cannot be used; the server's log has the details", { details, cause });
}
