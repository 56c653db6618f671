/**
 * What SQLite's errors mean to a caller, and what a store does about each.
 *
 * - `passing`: nothing of the transaction was kept, and the next one may succeed (a full disk, a busy file).
 * - `lasting`: the file or the disk cannot be trusted any more. The store takes no further change until it is opened again;
 *   going on could acknowledge what is not there.
 */

import { HoldfastError, type ErrorCode } from "../../base/index.ts";

/** A fault in a form that crosses threads. */
export interface StoreFault {
  readonly code: ErrorCode;
  readonly message: string;
  /** SQLite's extended result code; 0 where the fault is not SQLite's. */
  readonly errcode: number;
  readonly lasts: boolean;
}

const BUSY = 5;
const LOCKED = 6;
const NOMEM = 7;
const READONLY = 8;
const IOERR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANTOPEN = 14;
const NOTADB = 26;
/** The shared-memory file beside the journal could not grow, which is how a full disk shows first. */
const IOERR_SHMSIZE = IOERR | (19 << 8);

type Meaning = Omit<StoreFault, "errcode">;

const DISK_FULL: Meaning = {
  code: "resource_exhausted",
  message: "journal: the disk or the file's limit is full; nothing of the change was kept, and changes work again once there is room",
  lasts: false,
};

const MEANINGS: Readonly<Record<number, Meaning>> = {
  [BUSY]: { code: "unavailable", message: "journal: the file is locked by another process; try again later", lasts: false },
  [LOCKED]: { code: "unavailable", message: "journal: the file is locked; try again later", lasts: false },
  [NOMEM]: { code: "resource_exhausted", message: "journal: there is not enough memory; nothing of the change was kept", lasts: false },
  [READONLY]: { code: "failed_precondition", message: "journal: the file or its folder is read-only; it must be writable", lasts: false },
  [IOERR]: {
    code: "unavailable",
    message: "journal: the disk failed; changes are refused until the server is started again on a sound disk",
    lasts: true,
  },
  [CORRUPT]: { code: "data_loss", message: "journal: the file is damaged; restore it from a copy", lasts: true },
  [FULL]: DISK_FULL,
  [IOERR_SHMSIZE]: DISK_FULL,
  [CANTOPEN]: { code: "failed_precondition", message: "journal: the file cannot be opened; its folder must be writable", lasts: true },
  [NOTADB]: { code: "data_loss", message: "journal: the file is damaged or is no journal; restore it from a copy", lasts: true },
};

/** What `error` means. A HoldfastError keeps its meaning and lasts: no other code than SQLite's passes. */
export function faultOf(error: unknown): StoreFault {
  if (error instanceof HoldfastError) return { code: error.code, message: error.message, errcode: 0, lasts: true };
  const errcode = errcodeOf(error);
  const meaning = MEANINGS[errcode] ?? MEANINGS[errcode & 0xff];
  if (meaning !== undefined) return { ...meaning, errcode };
  return { code: "internal", message: "journal: an internal error; the server's log has the details", errcode, lasts: false };
}

/** The error of a fault. `cause` is kept where it was caught in this thread. */
export function errorOfFault({ code, message, errcode, lasts }: StoreFault, cause?: unknown): HoldfastError {
  return new HoldfastError(code, message, { details: { errcode, lasts }, cause });
}

/** `error` as the HoldfastError that a caller gets. */
export function toStoreError(error: unknown): HoldfastError {
  return error instanceof HoldfastError ? error : errorOfFault(faultOf(error), error);
}

function errcodeOf(error: unknown): number {
  return error instanceof Error && "errcode" in error && typeof error.errcode === "number" ? error.errcode : 0;
}
