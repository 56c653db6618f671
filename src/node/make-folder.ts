/** Makes a folder with what is missing above it. */

import { closeSync, fsyncSync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { HoldfastError, type ErrorOptions } from "../base/index.ts";

/**
 * Makes what is missing of the path, for its owner alone, one folder at a time: Node's own way to make parents never ends below /proc. What
 * was made is on the disk when it returns. True when this call made the folder itself. `what` is what errors call it, such as `data folder`. Throws FAILED_PRECONDITION where no folder
 * can be, RESOURCE_EXHAUSTED where the disk is full, UNAVAILABLE for whatever else the system says.
 */
export function makeFolder(folder: string, what: string): boolean {
  const missing: string[] = [];
  try {
    for (let at = resolve(folder); !isFolder(at) && dirname(at) !== at; at = dirname(at)) missing.push(at);
    let isMade = false;
    for (const path of missing.reverse()) {
      isMade = makeOne(path);
      syncFolder(dirname(path));
    }
    return isMade;
  } catch (error) {
    throw folderError(error, what);
  }
}

/** There is something else in the place of a folder. */
class NoFolder extends Error {}

/** Whether there is a folder. Throws where there is something else. */
function isFolder(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isDirectory()) throw new NoFolder();
  return found !== undefined;
}

/** True when it made the folder; false when somebody else has made it meanwhile. */
function makeOne(path: string): boolean {
  try {
    mkdirSync(path, { mode: 0o700 });
    return true;
  } catch (error) {
    if (!isFolder(path)) throw error;
    return false;
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

function folderError(cause: unknown, what: string): HoldfastError {
  const errno = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown";
  const options: ErrorOptions = { details: { errno }, cause };
  const isTaken = cause instanceof NoFolder || errno === "EEXIST" || errno === "ENOTDIR";
  if (isTaken) {
    return new HoldfastError("failed_precondition", `${what}: is not a folder; name one, or a path where one can be made`, options);
  }
  switch (errno) {
    case "EACCES":
    case "EPERM":
    case "EROFS":
    case "ENOENT": // Where no folder can be made at all, as in /proc.
      return new HoldfastError("failed_precondition", `${what}: cannot be made here; its parent must be writable`, options);
    case "ENOSPC":
    case "EDQUOT":
      return new HoldfastError("resource_exhausted", `${what}: the disk is full`, options);
    default:
      return new HoldfastError("unavailable", `${what}: cannot be used; the server's log has the details`, options);
  }
}
