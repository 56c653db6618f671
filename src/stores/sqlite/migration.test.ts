/**
 * A journal that an earlier Holdfast wrote, at schema version 2, and what that Holdfast said of it: `old-files/version-2.sql` is
 * its file as statements, `version-2.json` every session's resource, head and hashes in the order of its listing.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { toJson } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SessionSchema } from "../../gen/agentsessions/v1/session_pb.ts";
import { sessionOf } from "../../journal/index.ts";
import type { JournalStore } from "../../journal/index.ts";
import { append, end, output, recordsOf, requireChain, rowOf, uid } from "../../testing/journal-conformance/fixtures.ts";
import { testDigest, VirtualClock } from "../../testing/ports.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { openSqliteStore } from "./index.ts";
import { MIGRATIONS } from "./migrations.ts";
import { migrate, numberOf } from "./schema.ts";

const oldFile = (name: string) => readFileSync(new URL(`./old-files/${name}`, import.meta.url), "utf8");

let folder: TemporaryFolder;
beforeEach(() => {
  folder = new TemporaryFolder();
  using db = new DatabaseSync(path());
  db.exec(oldFile("version-2.sql"));
});
afterEach(() => folder[Symbol.dispose]());

const path = () => join(folder.path, "journal.sqlite");
function versionOf(): number {
  using db = new DatabaseSync(path());
  return numberOf(db, "PRAGMA user_version");
}

const open = () => openSqliteStore({ folder: folder.path, clock: new VirtualClock(), digest: testDigest });

/** All that is said of a journal, in the form in which the earlier Holdfast said it. */
async function factsOf(store: JournalStore): Promise<unknown[]> {
  const facts: unknown[] = [];
  for (const { seed } of (await store.list({ limit: 99, includeDeleted: true })).rows) {
    const row = await rowOf(store, seed.uid);
    const records = await recordsOf(store, seed.uid);
    requireChain(records);
    const asides = [...(await store.readAsides({ session: seed.uid }))].map(([seq, bytes]) => [seq, Buffer.from(bytes).toString("hex")]);
    facts.push({
      session: toJson(SessionSchema, sessionOf(row)),
      fence: row.fence,
      keptSeq: row.keptSeq ?? null,
      headHash: row.projection.headHash,
      hashes: records.map(({ contentHash }) => contentHash.slice(0, 16)),
      asides,
    });
  }
  return facts;
}

describe("a journal of schema version 2", () => {
  it("opens, and says of every session what it said", async () => {
    expect(versionOf()).toBe(2);
    for (const round of ["migrated", "opened again"]) {
      await using store = await open();
      expect({ round, facts: await factsOf(store) }).toEqual({ round, facts: JSON.parse(oldFile("version-2.json")) as unknown });
    }
    expect(versionOf()).toBe(MIGRATIONS.length);
    using db = new DatabaseSync(path());
    expect(db.prepare("PRAGMA integrity_check").all()).toMatchObject([{ integrity_check: "ok" }]);
  });

  it("goes on: its open turn ends, its names are taken, its children are listed, what they share is kept", async () => {
    await using store = await open();
    await append(store, "running", output("five"), end());
    requireChain(await recordsOf(store, "running"));
    expect((await store.create({ ...(await rowOf(store, "empty")).seed, uid: uid("new") })).kind).toBe("name-taken");
    const childrenOf = async (name: string) => (await store.list({ limit: 9, parent: uid(name) })).rows.map(({ seed }) => seed.uid);
    expect([await childrenOf("ended"), await childrenOf("child"), await childrenOf("nobody")]).toEqual([["twin"], ["grandchild"], []]);
    expect(await store.reclaim(uid("child"))).toEqual({ kind: "kept", keptSeq: 8 });
    expect(await store.reclaim(uid("deleted"))).toEqual({ kind: "reclaimed" });
  });

  it("is left as it was when the migration fails in its middle", () => {
    using db = new DatabaseSync(path());
    const before = db.prepare("SELECT * FROM sessions").all();
    expect(() => migrate(db, [...MIGRATIONS.slice(0, 2), `${MIGRATIONS[2]} SELECT nonsense`])).toThrow(/nonsense/);
    expect(versionOf()).toBe(2);
    expect(db.prepare("SELECT * FROM sessions").all()).toEqual(before);
  });
});
