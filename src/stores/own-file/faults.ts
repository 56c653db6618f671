/** What SQLite's errors mean to whoever changes such a file. */

import { HoldfastError, type ErrorCode } from "../../base/index.ts";

const BUSY = 5;
const READONLY = 8;
const IOERR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANTOPEN = 14;
const NOTADB = 26;

const MEANINGS: Readonly<Record<number, readonly [code: ErrorCode, message: string]>> = {
  [BUSY]: ["unavailable", "the file is locked by another process; try again later"],
  [READONLY]: ["failed_precondition", "the file or its folder is read-only; it must be writable"],
  [IOERR]: ["unavailable", "the disk failed; read what there is before you try again"],
  [CORRUPT]: ["data_loss", "the file is damaged; restore it from a copy"],
  [FULL]: ["resource_exhausted", "the disk is full; nothing of the change was kept"],
  [CANTOPEN]: ["failed_precondition", "the file cannot be opened; its folder must be there and be writable"],
  [NOTADB]: ["data_loss", "the file is damaged or is no database; restore it from a copy"],
};

/** `error` as the HoldfastError that a caller gets; `name` is the store's, which messages begin with. */
export function ownFileFault(error: unknown, name: string): HoldfastError {
  if (error instanceof HoldfastError) return error;
  const errcode = error instanceof Error && "errcode" in error && typeof error.errcode === "number" ? error.errcode : 0;
  const [code, message] = MEANINGS[errcode & 0xff] ?? ["internal", "an internal error; the server's log has the details"];
  return new HoldfastError(code, `${name}: ${message}`, { details: { errcode }, cause: error });
}

/** What `work` comes to, with its faults told. */
export function told<T>(name: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw ownFileFault(error, name);
  }
}
