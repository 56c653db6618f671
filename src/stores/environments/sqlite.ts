/**
 * Environments in a SQLite file beside the journal.
 *
 * Invariant: each change is one statement, so it is there whole or not at all, and on the disk when the call resolves.
 *
 * It is written in the caller's thread: a change is rare, and costs one flush.
 */

import type { DatabaseSync, SQLOutputValue, StatementSync } from "node:sqlite";
import { HoldfastError } from "../../base/index.ts";
import type { EnvironmentChange, EnvironmentInsertion, EnvironmentStore, StoredEnvironment } from "../../spi/index.ts";
import { openOwnFile, told, type OwnFile } from "../own-file/index.ts";

export interface SqliteEnvironmentsOptions {
  /** The data folder, which must be there. */
  readonly folder: string;
}

/** The name of the file in the data folder. */
export const ENVIRONMENTS_FILE = "environments.sqlite";

/** Marked "HFEN". */
const FILE: OwnFile = {
  name: "environments",
  file: ENVIRONMENTS_FILE,
  applicationId: 0x4846454e,
  migrations: [
    `CREATE TABLE environments (
      id TEXT NOT NULL PRIMARY KEY,
      uid TEXT NOT NULL UNIQUE,
      version INTEGER NOT NULL,
      definition TEXT NOT NULL,
      create_time_ms INTEGER NOT NULL,
      update_time_ms INTEGER NOT NULL
    ) STRICT;`,
  ],
  trial: "DELETE FROM environments WHERE id = ''",
};

/** Opens the environments of a data folder. Throws FAILED_PRECONDITION where the file cannot be used, DATA_LOSS where it is damaged. */
export function openSqliteEnvironments({ folder }: SqliteEnvironmentsOptions): EnvironmentStore {
  return new SqliteEnvironments(openOwnFile(folder, FILE));
}

class SqliteEnvironments implements EnvironmentStore {
  readonly #db: DatabaseSync;
  readonly #all: StatementSync;
  readonly #one: StatementSync;
  readonly #insert: StatementSync;
  readonly #replace: StatementSync;
  readonly #remove: StatementSync;
  #isClosed = false;

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#all = db.prepare("SELECT * FROM environments ORDER BY id");
    this.#one = db.prepare("SELECT * FROM environments WHERE id = ?");
    this.#insert = db.prepare("INSERT INTO environments VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING");
    this.#replace = db.prepare(
      "UPDATE environments SET version = ?, definition = ?, update_time_ms = ? WHERE id = ? AND uid = ? AND version = ?",
    );
    this.#remove = db.prepare("DELETE FROM environments WHERE id = ? AND uid = ? AND version = ?");
  }

  async load(): Promise<readonly StoredEnvironment[]> {
    return told(FILE.name, () => this.#all.all().map(rowOf));
  }

  async insert(row: StoredEnvironment): Promise<EnvironmentInsertion> {
    return told(FILE.name, () => {
      const { id, uid, version, definition, createTimeMs, updateTimeMs } = row;
      const { changes } = this.#insert.run(id, uid, version, definition, createTimeMs, updateTimeMs);
      const kept = this.#find(id);
      if (kept === undefined) throw new HoldfastError("internal", "environments: one that was just written is not there");
      return { kind: Number(changes) === 1 ? "inserted" : "taken", row: kept };
    });
  }

  async replace({ id, uid, version, definition, updateTimeMs }: StoredEnvironment): Promise<EnvironmentChange> {
    return told(FILE.name, () => {
      const { changes } = this.#replace.run(version, definition, updateTimeMs, id, uid, version - 1);
      const row = this.#find(id);
      return row === undefined ? { kind: "unknown" } : { kind: Number(changes) === 1 ? "changed" : "conflict", row };
    });
  }

  async remove({ id, uid, version }: Pick<StoredEnvironment, "id" | "uid" | "version">): Promise<EnvironmentChange> {
    return told(FILE.name, () => {
      const row = this.#find(id);
      if (row === undefined) return { kind: "unknown" };
      const { changes } = this.#remove.run(id, uid, version);
      return { kind: Number(changes) === 1 ? "changed" : "conflict", row };
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isClosed) this.#db.close();
    this.#isClosed = true;
  }

  #find(id: string): StoredEnvironment | undefined {
    const row = this.#one.get(id);
    return row === undefined ? undefined : rowOf(row);
  }
}

function rowOf(row: Record<string, SQLOutputValue>): StoredEnvironment {
  return {
    id: String(row["id"]),
    uid: String(row["uid"]),
    version: Number(row["version"]),
    definition: String(row["definition"]),
    createTimeMs: Number(row["create_time_ms"]),
    updateTimeMs: Number(row["update_time_ms"]),
  };
}
