/**
 * The version of the journal file's schema, and how an older file becomes a current one: in one transaction, whole or not at all.
 */

import type { DatabaseSync } from "node:sqlite";
import { HoldfastError } from "../../base/index.ts";
import { MIGRATIONS } from "./migrations.ts";

/** Marks a file as a journal: "HFJL". */
const APPLICATION_ID = 0x48464a4c;

/**
 * The version of the file's schema; 0 for a new file. Changes nothing. Throws FAILED_PRECONDITION for a file of a newer version,
 * and for a database that is no journal.
 */
export function schemaVersionOf(db: DatabaseSync, newest: number = MIGRATIONS.length): number {
  const version = numberOf(db, "PRAGMA user_version");
  requireJournal(db, version);
  if (version <= newest) return version;
  throw new HoldfastError(
    "failed_precondition",
    `journal: the file has schema version ${version}, written by a newer Holdfast; this one knows versions up to ${newest}`,
  );
}

/**
 * Brings the file to the version of the last step. Throws as `schemaVersionOf` does, and SQLite's error where a step fails; the file
 * is as it was then.
 */
export function migrate(db: DatabaseSync, steps: readonly string[] = MIGRATIONS): void {
  const version = schemaVersionOf(db, steps.length);
  if (version === steps.length) return;
  db.exec("BEGIN IMMEDIATE");
  try {
    for (const step of steps.slice(version)) db.exec(step);
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${steps.length}; COMMIT`);
  } catch (error) {
    rollBack(db);
    throw error;
  }
}

function requireJournal(db: DatabaseSync, version: number): void {
  const applicationId = numberOf(db, "PRAGMA application_id");
  const isNew = version === 0 && applicationId === 0 && numberOf(db, "SELECT count(*) FROM sqlite_schema") === 0;
  if (applicationId === APPLICATION_ID || isNew) return;
  throw new HoldfastError("failed_precondition", "journal: the file in the data folder is some other database; name another folder", {
    details: { applicationId, version },
  });
}

/** Ends a transaction that failed, if SQLite has not ended it by itself. */
export function rollBack(db: DatabaseSync): void {
  // Node tells from 22.16 on; before that, only trying does.
  const told = "isTransaction" in db;
  if (told && !db.isTransaction) return;
  try {
    db.exec("ROLLBACK");
  } catch (error) {
    if (!told) return;
    const message = "journal: a change that failed could not be undone; changes are refused until the server is started again";
    throw new HoldfastError("unavailable", message, { details: { lasts: true }, cause: error });
  }
}

/** The number that a pragma or a query of one column answers; −1 where it answers none. */
export function numberOf(db: DatabaseSync, sql: string): number {
  const row = db.prepare(sql).get();
  const value = row === undefined ? undefined : Object.values(row)[0];
  return typeof value === "number" ? value : -1;
}
