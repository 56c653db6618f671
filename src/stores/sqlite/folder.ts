/**
 * The data folder, held by one process at a time.
 *
 * The lock is a transaction on an empty SQLite file of its own that is never committed. The operating system lets go of it
 * when the process dies, however it dies, so there is no stale lock to clean up and no process id to compare.
 */

import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { HoldfastError } from "../../base/index.ts";
import { makeFolder } from "../../node/index.ts";
import { faultOf, toStoreError } from "./faults.ts";

/** A folder that no other process can open while this one has it. */
export interface HeldFolder extends Disposable {
  /** The path of the journal's file. */
  readonly journalPath: string;
}

/**
 * Creates the folder where it is missing (readable for its owner only, and ignored by Git, since it may be made in somebody's project) and takes
 * it. Throws UNAVAILABLE while another process
 * has it, FAILED_PRECONDITION where it cannot be used.
 */
export function holdFolder(folder: string): HeldFolder {
  const path = resolve(folder);
  if (makeFolder(path, "data folder")) ignoreInGit(path);
  const lock = takeLock(join(path, "journal.lock"));
  return { journalPath: join(path, "journal.sqlite"), [Symbol.dispose]: () => lock.close() };
}

/** A folder that was there before is left as it is. */
function ignoreInGit(path: string): void {
  try {
    writeFileSync(join(path, ".gitignore"), "*\n", { flag: "wx", mode: 0o600 });
  } catch {
    // No journal depends on it; a disk that takes no file is told of by what does.
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
