/** The registry's file. */

import type { OwnFile } from "../own-file/index.ts";

/** The name of the file in the data folder. */
export const REGISTRY_FILE = "registry.sqlite";

/** Marked "HFRG". */
export const REGISTRY: OwnFile = {
  name: "registry",
  file: REGISTRY_FILE,
  applicationId: 0x48465247,
  migrations: [
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
  ],
  trial: "DELETE FROM registrations WHERE name = ''",
};
