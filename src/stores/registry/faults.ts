/** What SQLite's errors mean to whoever changes the registry. */

import { HoldfastError, type ErrorCode } from "../../base/index.ts";

const BUSY = 5;
const READONLY = 8;
const IOERR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANTOPEN = 14;
const NOTADB = 26;

const MEANINGS: Readonly<Record<number, readonly [code: ErrorCode, message: string]>> = {
  [BUSY]: ["unavailable", "registry: the file is locked by another process; try again later"],
  [READONLY]: ["failed_precondition", "registry: the file or its folder is read-only; it must be writable"],
  [IOERR]: ["unavailable", "registry: the disk failed; read the registration before you try again"],
  [CORRUPT]: ["data_loss", "registry: the file is damaged; restore it from a copy"],
  [FULL]: ["resource_exhausted", "registry: the disk is full; nothing of the change was kept"],
  [CANTOPEN]: ["failed_precondition", "registry: the file cannot be opened; its folder must be there and be writable"],
  [NOTADB]: ["data_loss", "registry: the file is damaged or is no registry; restore it from a copy"],
};

/** `error` as the HoldfastError that a caller gets. */
export function registryFault(error: unknown): HoldfastError {
  if (error instanceof HoldfastError) return error;
  const errcode = error instanceof Error && "errcode" in error && typeof error.errcode === "number" ? error.errcode : 0;
  const [code, message] = MEANINGS[errcode & 0xff] ?? ["internal", "registry: an internal error; the server's log has the details"];
  return new HoldfastError(code, message, { details: { errcode }, cause: error });
}
