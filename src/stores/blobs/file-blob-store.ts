/**
 * Blobs as files: `<folder>/<first two hex digits>/<sixty-four hex digits>`.
 *
 * Invariants:
 * - A file under its final name is whole and on the disk: it is written and synced under a temporary name, then renamed, then the folder
 *   is synced. A crash leaves a temporary file, which the next opening removes, or nothing.
 * - What is read is checked against the name. A damaged file is DATA_LOSS, never bytes.
 * - The same bytes are one file, however many put them, in however many processes.
 *
 * Names are opened and renamed on this thread, which takes microseconds; bytes are read, written and synced on Node's own threads. Each
 * step there would wait for its turn twice, and a blob has eight.
 */

import { closeSync, fdatasync, fstatSync, fsync, openSync, read, readdirSync, renameSync, rmSync, statSync, write } from "node:fs";
import { rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { threadId } from "node:worker_threads";
import { HoldfastError } from "../../base/index.ts";
import { makeFolder } from "../../node/index.ts";
import type { BlobRef, BlobStore, CallOptions } from "../../spi/index.ts";
import { addressOf, checkedBlob, hexOf } from "./blob-address.ts";

/** A temporary file that is older is nobody's any longer. */
const ABANDONED_AFTER_MS = 60 * 60 * 1000;
const TEMPORARY = ".part";

/** How many stores this process has opened. */
let opened = 0;

/** What a store of files is opened with. */
export interface FileBlobStoreOptions {
  /** Made where there is none. */
  readonly folder: string;
  /** Now, in milliseconds since the Unix epoch: tells which temporary files are abandoned. */
  readonly nowMs: number;
}

/**
 * Opens a store of files. Throws FAILED_PRECONDITION where the folder is none and cannot be made, RESOURCE_EXHAUSTED where the disk is full,
 * UNAVAILABLE where it cannot be read.
 */
export function openFileBlobStore({ folder, nowMs }: FileBlobStoreOptions): BlobStore {
  makeFolder(folder, "blob folder");
  try {
    removeAbandoned(folder, nowMs);
  } catch (error) {
    throw unavailable(error);
  }
  return new FileBlobStore(folder, nowMs);
}

class FileBlobStore implements BlobStore {
  readonly #folder: string;
  /** Folders that this process made or saw, and whose own names are on the disk. */
  readonly #folders = new Set<string>();
  /** What the temporary files of this store, and of no other one, begin with; a process may have the id of one that crashed. */
  readonly #author: string;
  #temporary = 0;

  constructor(folder: string, nowMs: number) {
    this.#folder = folder;
    this.#author = `${process.pid}-${threadId}-${nowMs.toString(36)}-${opened++}`;
  }

  async put(bytes: Uint8Array, { signal }: CallOptions = {}): Promise<BlobRef> {
    signal?.throwIfAborted();
    const ref = addressOf(bytes);
    const file = this.#fileOf(ref);
    try {
      if (isWhole(file, bytes.length)) await syncFolder(dirname(file));
      else await this.#write(file, bytes);
      return ref;
    } catch (error) {
      throw unavailable(error);
    }
  }

  async get(ref: Pick<BlobRef, "uri" | "digest">, { signal }: CallOptions = {}): Promise<Uint8Array | undefined> {
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

  async delete(ref: Pick<BlobRef, "uri" | "digest">, { signal }: CallOptions = {}): Promise<void> {
    const file = this.#fileOf(ref);
    signal?.throwIfAborted();
    try {
      await rm(file, { force: true });
    } catch (error) {
      throw unavailable(error);
    }
  }

  #fileOf(ref: Pick<BlobRef, "uri" | "digest">): string {
    const hex = hexOf(ref);
    return join(this.#folder, hex.slice(0, 2), hex);
  }

  async #write(file: string, bytes: Uint8Array): Promise<void> {
    const folder = dirname(file);
    await this.#makeFolder(folder);
    const temporary = `${file}.${this.#author}-${this.#temporary++}${TEMPORARY}`;
    try {
      await writeSynced(temporary, bytes);
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

const readBytes = promisify(read);
const writeBytes = promisify(write);
const syncBytes = promisify(fdatasync);
const syncAll = promisify(fsync);

async function readWhole(file: string): Promise<Uint8Array> {
  const descriptor = openSync(file, "r");
  try {
    const bytes = new Uint8Array(fstatSync(descriptor).size);
    for (let at = 0; at < bytes.length;) {
      const { bytesRead } = await readBytes(descriptor, bytes, at, bytes.length - at, at);
      // It became shorter: what is read is not what its name says.
      if (bytesRead === 0) return bytes.subarray(0, at);
      at += bytesRead;
    }
    return bytes;
  } finally {
    closeSync(descriptor);
  }
}

async function writeSynced(file: string, bytes: Uint8Array): Promise<void> {
  const descriptor = openSync(file, "wx", 0o600);
  try {
    for (let at = 0; at < bytes.length;) {
      const { bytesWritten } = await writeBytes(descriptor, bytes, at, bytes.length - at, at);
      at += bytesWritten;
    }
    await syncBytes(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

async function syncFolder(folder: string): Promise<void> {
  const descriptor = openSync(folder, "r");
  try {
    await syncAll(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Removes what a crash left half-written. Others may be writing now: only what is old goes. */
function removeAbandoned(folder: string, nowMs: number): void {
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(TEMPORARY)) continue;
    const file = join(folder, name);
    const modifiedMs = statSync(file, { throwIfNoEntry: false })?.mtimeMs;
    if (modifiedMs !== undefined && nowMs - modifiedMs > ABANDONED_AFTER_MS) rmSync(file, { force: true });
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}

function unavailable(cause: unknown): HoldfastError {
  if (cause instanceof HoldfastError) return cause;
  const details = { errno: codeOf(cause) };
  return new HoldfastError("unavailable", "the blob store cannot be used; the server's log has the details", { details, cause });
}
