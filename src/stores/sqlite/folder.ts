/**
 * The data folder, held by one process at a time.
 *
 * The lock is a transaction on an empty SQLite file of its own that is never committed. The operating system lets go of it
 * when the process dies, however it dies, so there is no stale lock to clean up and no process id to compare.
 */

import { closeSync, fsyncSync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { HoldfastError, type ErrorOptions } from "../../base/index.ts";
import { faultOf, toStoreError } from "./faults.ts";

/** A folder that no other process can open while this one has it. */
export interface HeldFolder extends Disposable {
  /** The path of the journal's file. */
  readonly journalPath: string;
}

/**
 * Creates the folder where it is missing (readable for its owner only) and takes it. Throws UNAVAILABLE while another process
 * has it, FAILED_PRECONDITION where it cannot be used.
 */
export function holdFolder(folder: string): HeldFolder {
  const path = resolve(folder);
  makeFolder(path);
  const lock = takeLock(join(path, "journal.lock"));
  return { journalPath: join(path, "journal.sqlite"), [Symbol.dispose]: () => lock.close() };
}

/** Makes what is missing of the path, one folder at a time: Node's own way to make parents never ends below /proc. */
function makeFolder(path: string): void {
  const missing: string[] = [];
  for (let at = path; !isFolder(at) && dirname(at) !== at; at = dirname(at)) missing.push(at);
  try {
    for (const folder of missing.reverse()) {
      makeOne(folder);
      syncFolder(dirname(folder));
    }
  } catch (error) {
    throw folderError(error);
  }
}

/** Whether there is a folder. Throws FAILED_PRECONDITION where there is something else. */
function isFolder(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isDirectory()) throw noFolder();
  return found !== undefined;
}

function makeOne(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Somebody else may have made it meanwhile.
    if (!isFolder(path)) throw error;
  }
}

/** A new folder survives a loss of power only once its parent's list of names does. */
function syncFolder(path: string): void {
  if (process.platform === "win32") return;
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function takeLock(path: string): DatabaseSync {
  let lock: DatabaseSync | undefined;
  try {
    lock = new DatabaseSync(path);
    lock.exec("PRAGMA busy_timeout = 0; PRAGMA journal_mode = OFF; BEGIN EXCLUSIVE");
    return lock;
  } catch (error) {
    lock?.close();
    const fault = faultOf(error);
    if (fault.errcode === 5) {
      const message = "data folder: another running process has it; stop that one, or name another folder (--data)";
      throw new HoldfastError("unavailable", message, { cause: error });
    }
    throw toStoreError(error);
  }
}

function noFolder(options?: ErrorOptions): HoldfastError {
  return new HoldfastError("failed_precondition", "data folder: is not a folder; name one, or a path where one can be made", options);
}

function folderError(error: unknown): HoldfastError {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const options = { details: { code }, cause: error };
  switch (code) {
    case "EEXIST":
    case "ENOTDIR":
      return noFolder(options);
    case "EACCES":
    case "EPERM":
    case "EROFS":
    case "ENOENT": // Where no folder can be made at all, as in /proc.
      return new HoldfastError("failed_precondition", "data folder: cannot be made here; its parent must be writable", options);
    case "ENOSPC":
    case "EDQUOT":
      return new HoldfastError("resource_exhausted", "data folder: the disk is full", options);
    default:
      return new HoldfastError("unavailable", "data folder: cannot be used", options);
  }
}
