import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HoldfastError } from "../../base/index.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { openReader, openWriter, requireDurable } from "./connection.ts";
import { MIGRATIONS } from "./migrations.ts";
import { migrate, numberOf } from "./schema.ts";

let folder: TemporaryFolder;
let path: string;
beforeEach(() => {
  folder = new TemporaryFolder();
  path = join(folder.path, "journal.sqlite");
});
afterEach(() => folder[Symbol.dispose]());

/** The code of the HoldfastError that a call throws. */
function codeOf(call: () => unknown): string | undefined {
  try {
    call();
  } catch (error) {
    return error instanceof HoldfastError ? error.code : `no HoldfastError: ${String(error)}`;
  }
  return undefined;
}

describe("the writing connection", () => {
  it("keeps what it commits: WAL and synchronous=FULL, on a new file and on one that was there", () => {
    for (const round of ["new", "reopened", "reopened after somebody set it lower"]) {
      const db = openWriter({ path, fileBytesMax: undefined });
      expect([round, numberOf(db, "PRAGMA synchronous")]).toEqual([round, 2]);
      expect(db.prepare("PRAGMA journal_mode").get()).toMatchObject({ journal_mode: "wal" });
      db.exec("PRAGMA synchronous = OFF");
      db.close();
    }
  });

  it("is refused where it would keep less", () => {
    const db = openWriter({ path, fileBytesMax: undefined });
    for (const weak of [
      "PRAGMA synchronous = NORMAL",
      "PRAGMA synchronous = OFF",
      "PRAGMA synchronous = FULL; PRAGMA journal_mode = MEMORY",
    ]) {
      db.exec(weak);
      expect(codeOf(() => requireDurable(db))).toBe("failed_precondition");
    }
    db.exec("PRAGMA journal_mode = WAL");
    requireDurable(db);
    db.close();
  });

  it("checkpoints every 1000 pages and keeps 64 MB of pages", () => {
    const db = openWriter({ path, fileBytesMax: undefined });
    expect(["wal_autocheckpoint", "cache_size", "page_size"].map((name) => numberOf(db, `PRAGMA ${name}`))).toEqual([1000, -64000, 4096]);
    db.close();
  });
});

describe("the reading connection", () => {
  it("cannot write and maps the file", () => {
    const writer = openWriter({ path, fileBytesMax: undefined });
    const reader = openReader(path);
    expect(() => reader.exec("DELETE FROM records")).toThrow(/readonly/);
    expect(numberOf(reader, "PRAGMA mmap_size")).toBeGreaterThan(0);
    reader.close();
    writer.close();
  });
});

describe("migration", () => {
  const withFile = (use: (db: DatabaseSync) => void) => {
    const db = new DatabaseSync(path);
    try {
      use(db);
    } finally {
      db.close();
    }
  };
  const STEPS = [...MIGRATIONS, "ALTER TABLE sessions ADD COLUMN colour TEXT", "UPDATE sessions SET colour = 'red'"];

  it("runs the steps that a file has not had, and each once", () => {
    withFile((db) => {
      migrate(db, STEPS.slice(0, 1));
      db.exec(`INSERT INTO sessions VALUES (1, 'a', '', '', 0, NULL, NULL, NULL, 0, 0, 0, 0, 1, 0, 0, '', '{}', NULL)`);
      migrate(db, STEPS.slice(0, 3));
      expect(numberOf(db, "PRAGMA user_version")).toBe(3);
      migrate(db, STEPS);
      migrate(db, STEPS);
      expect(db.prepare("SELECT uid, colour FROM sessions").all()).toMatchObject([{ uid: "a", colour: "red" }]);
    });
  });

  it("leaves a file as it was when a step fails", () => {
    withFile((db) => {
      migrate(db);
      const broken = [...MIGRATIONS, "ALTER TABLE sessions ADD COLUMN colour TEXT; SELECT nonsense"];
      expect(() => migrate(db, broken)).toThrow();
      expect([numberOf(db, "PRAGMA user_version"), db.isTransaction]).toEqual([MIGRATIONS.length, false]);
      migrate(db, STEPS);
    });
  });

  it("refuses a file of a newer version and says so", () => {
    withFile((db) => migrate(db, STEPS));
    expect(() => openWriter({ path, fileBytesMax: undefined })).toThrow(`schema version ${STEPS.length}, written by a newer Holdfast`);
    withFile((db) => expect(numberOf(db, "PRAGMA user_version")).toBe(STEPS.length));
  });

  it("refuses a database that is no journal, whatever version it claims", () => {
    withFile((db) => db.exec("CREATE TABLE mine (x); INSERT INTO mine VALUES (7)"));
    expect(codeOf(() => openWriter({ path, fileBytesMax: undefined }))).toBe("failed_precondition");
    withFile((db) => db.exec("PRAGMA user_version = 1"));
    expect(() => openWriter({ path, fileBytesMax: undefined })).toThrow(/some other database/);
    withFile((db) => expect(db.prepare("SELECT x FROM mine").all()).toMatchObject([{ x: 7 }]));
  });
});
