/** The registry's file: its schema, and how an older one becomes current. A step is never changed, and is made whole or not at all. */

import type { DatabaseSync } from "node:sqlite";
import { HoldfastError } from "../../base/index.ts";

/** Marks a file as a registry: "HFRG". */
const APPLICATION_ID = 0x48465247;

/** Step n makes version n of version n − 1; version 0 is an empty file. */
export const MIGRATIONS: readonly string[] = [
  `CREATE TABLE registrations (
    name TEXT NOT NULL PRIMARY KEY,
    uid TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL,
    spec BLOB NOT NULL,
    spec_digest TEXT NOT NULL,
    create_time_ms INTEGER NOT NULL,
    update_time_ms INTEGER NOT NULL,
    retire_time_ms INTEGER,
    retire_reason TEXT
  ) STRICT, WITHOUT ROWID;`,
];

/** Throws FAILED_PRECONDITION for a database that is no registry, and for one of a newer version. Changes nothing. */
export function requireRegistry(db: DatabaseSync, newest: number = MIGRATIONS.length): number {
  const version = numberOf(db, "PRAGMA user_version");
  const applicationId = numberOf(db, "PRAGMA application_id");
  const isNew = version === 0 && applicationId === 0 && numberOf(db, "SELECT count(*) FROM sqlite_schema") === 0;
  if (applicationId !== APPLICATION_ID && !isNew) {
    throw new HoldfastError("failed_precondition", "registry: the file in the data folder is some other database; move it away");
  }
  if (version <= newest) return version;
  const message = `registry: the file has schema version ${version}, written by a newer Holdfast; this one knows versions up to ${newest}`;
  throw new HoldfastError("failed_precondition", message);
}

/** Brings the file to the version of the last step. */
export function migrate(db: DatabaseSync, steps: readonly string[] = MIGRATIONS): void {
  for (let version = requireRegistry(db, steps.length) + 1; version <= steps.length; version++) {
    // A step that fails leaves its transaction open; whoever opened the file closes it then, which undoes it.
    db.exec("BEGIN IMMEDIATE");
    db.exec(steps[version - 1]!);
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${version}; COMMIT`);
  }
}

/** The number that a pragma or a query of one column answers; −1 where it answers none. */
export function numberOf(db: DatabaseSync, sql: string): number {
  const row = db.prepare(sql).get();
  const value = row === undefined ? undefined : Object.values(row)[0];
  return typeof value === "number" ? value : -1;
}
