/**
 * Blobs as files: `<folder>/<first two hex digits>/<sixty-four hex digits>`.
 *
 * Invariants:
 * - A file under its final name is whole and on the disk: it is written and synced under a temporary name, then renamed, then the folder
 *   is synced. A crash leaves a temporary file, which the next opening removes, or nothing.
 * - What is read is checked against the name. A damaged file is DATA_LOSS, never bytes.
 * - The same bytes are one file, however many put them, in however many processes.
 */

import { mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { threadId } from "node:worker_threads";
import { HoldfastError } from "../../base/index.ts";
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

/** Opens a store of files. Throws UNAVAILABLE where the folder cannot be made or read. */
export function openFileBlobStore({ folder, nowMs }: FileBlobStoreOptions): BlobStore {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
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
      if (!(await isWhole(file, bytes.length))) await this.#write(file, bytes);
      return ref;
    } catch (error) {
      throw unavailable(error);
    }
  }

  async get(ref: Pick<BlobRef, "uri" | "digest">, { signal }: CallOptions = {}): Promise<Uint8Array | undefined> {
    const file = this.#fileOf(ref);
    signal?.throwIfAborted();
    try {
      const { buffer, byteOffset, length } = await readFile(file, signal === undefined ? {} : { signal });
      return checkedBlob(ref, new Uint8Array(buffer, byteOffset, length));
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
      await rename(temporary, file);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
    await syncFolder(folder);
  }

  async #makeFolder(folder: string): Promise<void> {
    if (this.#folders.has(folder)) return;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await syncFolder(this.#folder);
    this.#folders.add(folder);
  }
}

/**
 * Whether the blob is there already, as long as it should be (a damaged one is written anew). Whoever renamed it may not have synced the
 * folder yet, so that is done here.
 */
async function isWhole(file: string, sizeBytes: number): Promise<boolean> {
  try {
    if ((await stat(file)).size !== sizeBytes) return false;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
  await syncFolder(dirname(file));
  return true;
}

async function writeSynced(file: string, bytes: Uint8Array): Promise<void> {
  const handle = await open(file, "wx", 0o600);
  try {
    await handle.writeFile(bytes);
    await handle.datasync();
  } finally {
    await handle.close();
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
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
  const details = { errno: codeOf(cause) };
  return new HoldfastError("unavailable", "the blob store cannot be used; the server's log has the details", { details, cause });
}
