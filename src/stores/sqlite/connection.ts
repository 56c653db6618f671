/**
 * Connections to the journal's file: one that writes, one that reads.
 *
 * The writer's durability is what I8 rests on, so it is asked for at every open and then read back: some builds reopen a file
 * in WAL mode with less. A writer that cannot promise it is not used.
 */

import { DatabaseSync } from "node:sqlite";
import { HoldfastError } from "../../base/index.ts";
import { migrate, numberOf, schemaVersionOf } from "./schema.ts";

/** How the writing connection is opened. */
export interface WriterOptions {
  readonly path: string;
  /** The size that the file must not exceed, in bytes; undefined: as large as the disk allows. */
  readonly fileBytesMax: number | undefined;
}

const SYNCHRONOUS_FULL = 2;
/** How long a statement waits for a backup tool that locks the file for a moment. */
const BUSY_MS = 1000;
/** How much of the file a reader maps. Pages beyond it are read the ordinary way. */
const MMAP_BYTES = 1024 * 1024 * 1024;
/** A write-ahead log that grew beyond this is cut back once it was checkpointed. */
const WAL_BYTES_KEPT = 64 * 1024 * 1024;

/** Opens the file for writing, makes it current and checks what it promises. */
export function openWriter({ path, fileBytesMax }: WriterOptions): DatabaseSync {
  return opened(new DatabaseSync(path), (db) => {
    db.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
    // What is not ours is not touched, not even to turn WAL on.
    schemaVersionOf(db);
    db.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL;
      PRAGMA fullfsync = ON;
      PRAGMA checkpoint_fullfsync = ON;
      PRAGMA wal_autocheckpoint = 1000;
      PRAGMA journal_size_limit = ${WAL_BYTES_KEPT};
      PRAGMA cache_size = -64000;
    `);
    requireDurable(db);
    migrate(db);
    requireWritable(db);
    if (fileBytesMax !== undefined) limitFile(db, fileBytesMax);
  });
}

/** Opens the file for reading only. The writer must have opened it before. */
export function openReader(path: string): DatabaseSync {
  return opened(new DatabaseSync(path, { readOnly: true }), (db) => {
    db.exec(`PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA query_only = ON; PRAGMA cache_size = -64000; PRAGMA mmap_size = ${MMAP_BYTES}`);
  });
}

/** Throws FAILED_PRECONDITION unless a commit on this connection is on the disk when it returns. */
export function requireDurable(db: DatabaseSync): void {
  const synchronous = numberOf(db, "PRAGMA synchronous");
  const mode = db.prepare("PRAGMA journal_mode").get()?.journal_mode;
  if (synchronous >= SYNCHRONOUS_FULL && mode === "wal") return;
  throw new HoldfastError("failed_precondition", "journal: this build of SQLite does not keep what it commits (WAL, synchronous=FULL)", {
    details: { synchronous, mode: String(mode) },
  });
}

/** SQLite opens a file that it may not write for reading, without a word. Only a statement that would write tells. */
function requireWritable(db: DatabaseSync): void {
  db.exec("DELETE FROM probes WHERE rowid < 0");
}

function opened(db: DatabaseSync, prepare: (db: DatabaseSync) => void): DatabaseSync {
  try {
    prepare(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function limitFile(db: DatabaseSync, fileBytesMax: number): void {
  const pages = Math.floor(fileBytesMax / numberOf(db, "PRAGMA page_size"));
  db.exec(`PRAGMA max_page_count = ${Math.max(pages, 1)}`);
}
