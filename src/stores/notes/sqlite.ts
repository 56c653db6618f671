/**
 * Notes in a SQLite file beside the journal.
 *
 * Invariant: each change is one statement, so it is there whole or not at all, and on the disk when the call resolves.
 *
 * It is written in the caller's thread: a note changes when a client starts a session, registers tools or says what it thinks of a message.
 */

import type { DatabaseSync, StatementSync } from "node:sqlite";
import { HoldfastError, type SessionUid } from "../../base/index.ts";
import type { Note, NoteChange, NoteEntry, NotePut, NoteStore } from "../../spi/index.ts";
import { openOwnFile, told, type OwnFile } from "../own-file/index.ts";

export interface SqliteNotesOptions {
  /** The data folder, which must be there. */
  readonly folder: string;
}

/** The name of the file in the data folder. */
export const NOTES_FILE = "notes.sqlite";

/** Marked "HFNO". */
const FILE: OwnFile = {
  name: "notes",
  file: NOTES_FILE,
  applicationId: 0x48464e4f,
  migrations: [
    `CREATE TABLE notes (
      session TEXT NOT NULL,
      key TEXT NOT NULL,
      version INTEGER NOT NULL,
      value BLOB NOT NULL,
      PRIMARY KEY (session, key)
    ) STRICT;
    CREATE TABLE entries (
      session TEXT NOT NULL,
      list TEXT NOT NULL,
      place INTEGER NOT NULL,
      value BLOB NOT NULL,
      PRIMARY KEY (session, list, place)
    ) STRICT;`,
  ],
  trial: "DELETE FROM notes WHERE session = ''",
};

/** Opens the notes of a data folder. Throws FAILED_PRECONDITION where the file cannot be used, DATA_LOSS where it is damaged. */
export function openSqliteNotes({ folder }: SqliteNotesOptions): NoteStore {
  return new SqliteNotes(openOwnFile(folder, FILE));
}

class SqliteNotes implements NoteStore {
  readonly #db: DatabaseSync;
  readonly #get: StatementSync;
  readonly #insert: StatementSync;
  readonly #replace: StatementSync;
  readonly #append: StatementSync;
  readonly #entries: StatementSync;
  readonly #removals: readonly StatementSync[];
  #isClosed = false;

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#get = db.prepare("SELECT version, value FROM notes WHERE session = ? AND key = ?");
    this.#insert = db.prepare("INSERT INTO notes VALUES (?, ?, 1, ?) ON CONFLICT DO NOTHING");
    this.#replace = db.prepare("UPDATE notes SET version = version + 1, value = ? WHERE session = ? AND key = ? AND version = ?");
    this.#append = db.prepare(
      `INSERT INTO entries SELECT ?1, ?2, count(*) + 1, ?3 FROM entries WHERE session = ?1 AND list = ?2 HAVING count(*) < ?4 RETURNING place`,
    );
    this.#entries = db.prepare("SELECT place, value FROM entries WHERE session = ? AND list = ? AND place > ? ORDER BY place LIMIT ?");
    this.#removals = ["notes", "entries"].map((table) => db.prepare(`DELETE FROM ${table} WHERE session = ?`));
  }

  async get(session: SessionUid, key: string): Promise<Note | undefined> {
    return told(FILE.name, () => this.#find(session, key));
  }

  async put({ session, key, value, replaces }: NotePut): Promise<NoteChange> {
    return told(FILE.name, () => {
      const { changes } = replaces === 0 ? this.#insert.run(session, key, value) : this.#replace.run(value, session, key, replaces);
      const version = this.#find(session, key)?.version ?? 0;
      return { kind: Number(changes) === 1 ? "kept" : "conflict", version };
    });
  }

  async append(entry: Parameters<NoteStore["append"]>[0]): Promise<number | undefined> {
    const { session, list, value, entriesMax } = entry;
    return told(FILE.name, () => {
      const row = this.#append.get(session, list, value, entriesMax);
      return row === undefined ? undefined : Number(row["place"]);
    });
  }

  async entries(page: Parameters<NoteStore["entries"]>[0]): Promise<readonly NoteEntry[]> {
    const { session, list, after, limit } = page;
    return told(FILE.name, () =>
      this.#entries.all(session, list, after, limit).map((row) => ({ place: Number(row["place"]), value: bytesOf(row["value"]) })),
    );
  }

  async remove(session: SessionUid): Promise<void> {
    told(FILE.name, () => {
      // A session that goes leaves nothing behind that a second removal would not find.
      for (const removal of this.#removals) removal.run(session);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isClosed) this.#db.close();
    this.#isClosed = true;
  }

  #find(session: SessionUid, key: string): Note | undefined {
    const row = this.#get.get(session, key);
    return row === undefined ? undefined : { version: Number(row["version"]), value: bytesOf(row["value"]) };
  }
}

function bytesOf(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value;
  throw new HoldfastError("data_loss", "notes: one cannot be read; restore the file from a copy");
}
