/**
 * What a disk may leave of the last transaction in a write-ahead log when the power fails while it is written: some of its frames, a
 * part of one, or one with wrong bytes. Nothing of it was acknowledged, so nothing or all of it may be there afterwards.
 */

import { closeSync, openSync, readFileSync, readSync, statSync, truncateSync, writeSync } from "node:fs";

/** SQLite's log: a header, then frames of a header and a page. */
const LOG_HEADER_BYTES = 32;
const FRAME_BYTES = 24 + 4096;

/** One way in which a log may be torn. */
export interface Tear {
  readonly name: string;
  /** Damages the log at `path`, whose last transaction lies from `from` to `to`. */
  readonly apply: (path: string, from: number, to: number) => void;
}

/** The ways that are tried. */
export const TEARS: readonly Tear[] = [
  { name: "nothing of it", apply: (path, from) => truncateSync(path, from) },
  { name: "part of its first frame", apply: (path, from) => truncateSync(path, from + 700) },
  { name: "all but its last frame", apply: (path, _, to) => truncateSync(path, to - FRAME_BYTES) },
  { name: "all but its last byte", apply: (path, _, to) => truncateSync(path, to - 1) },
  { name: "a wrong byte in its first page", apply: (path, from) => flip(path, from + 24 + 99) },
  { name: "a wrong byte in its last page", apply: (path, _, to) => flip(path, to - 5) },
  { name: "a wrong byte in its last frame's header", apply: (path, _, to) => flip(path, to - FRAME_BYTES + 3) },
  { name: "zeros for its last page", apply: (path, _, to) => overwrite(path, to - 4096, Buffer.alloc(4096)) },
];

/** How far a log reaches: the frames behind that belong to an earlier round, whose pages are in the file already. */
export interface LogEnd {
  /** Changes with every round. */
  readonly salt: string;
  readonly bytes: number;
}

/** Where the log at `path` ends. */
export function logEnd(path: string): LogEnd {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size < LOG_HEADER_BYTES) return { salt: "", bytes: 0 };
  const log = readFileSync(path);
  const salt = log.toString("hex", 16, 24);
  let bytes = LOG_HEADER_BYTES;
  while (bytes + FRAME_BYTES <= size && log.toString("hex", bytes + 8, bytes + 16) === salt) bytes += FRAME_BYTES;
  return { salt, bytes };
}

/** Damages what the log at `path` has gained since it ended at `before`. Returns whether there was anything to damage. */
export function tearLog(tear: Tear, path: string, before: LogEnd): boolean {
  const after = logEnd(path);
  const from = before.salt === after.salt ? before.bytes : LOG_HEADER_BYTES;
  if (after.bytes <= from) return false;
  truncateSync(path, after.bytes);
  tear.apply(path, from, after.bytes);
  return true;
}

function flip(path: string, at: number): void {
  const file = openSync(path, "r");
  const byte = Buffer.alloc(1);
  readSync(file, byte, 0, 1, at);
  closeSync(file);
  overwrite(path, at, Buffer.from([(byte[0] ?? 0) ^ 0x41]));
}

function overwrite(path: string, at: number, bytes: Buffer): void {
  const file = openSync(path, "r+");
  writeSync(file, bytes, 0, bytes.length, at);
  closeSync(file);
}
