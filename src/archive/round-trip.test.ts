import { describe, expect, it } from "vitest";
import fc from "fast-check";
import type { SessionUid } from "../base/index.ts";
import type { JournalStore, StoredRecord } from "../journal/index.ts";
import { nodeSignatures } from "../node/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { openSqliteStore } from "../stores/sqlite/index.ts";
import { exportedFile, importFile, verdictOn } from "../testing/archive-files.ts";
import { Family, familySteps } from "../testing/families.ts";
import { pagesOf } from "../testing/journal-conformance/fixtures.ts";
import { testDigest, VirtualClock } from "../testing/ports.ts";
import { TemporaryFolder } from "../testing/temporary-folder.ts";

const clock = new VirtualClock();
const open = (): JournalStore => createMemoryStore({ clock, digest: testDigest });

async function recordsOf(journal: JournalStore, session: SessionUid): Promise<readonly StoredRecord[]> {
  return (await pagesOf(journal, { session })).flat().map((record) => ({ ...record, bytes: Uint8Array.from(record.bytes) }));
}

/** Exports, imports elsewhere and exports again: every living session, alone and with its family. */
async function roundTrip(from: Family, openOther: () => Promise<JournalStore>, pieceLength: number): Promise<void> {
  for (const session of from.living) {
    for (const family of [false, true]) {
      const lines = await exportedFile(from.journal, session, { form: "lines", family });
      const binary = await exportedFile(from.journal, session, { form: "binary", family });
      for (const file of [lines, binary]) {
        expect(verdictOn(file, { signatures: nodeSignatures }).faults).toEqual([]);
        await using other = await openOther();
        await importFile(other, file, nodeSignatures, pieceLength);
        expect((await exportedFile(other, session, { form: "lines", family })).equals(lines)).toBe(true);
        expect((await exportedFile(other, session, { form: "binary", family })).equals(binary)).toBe(true);
        expect(await recordsOf(other, session)).toEqual(await recordsOf(from.journal, session));
        expect(await importFile(other, file, nodeSignatures, pieceLength)).toMatchObject({ recordsAdded: 0 });
      }
    }
  }
}

describe("an export that is imported and exported again", () => {
  it("is the same bytes, in both forms, however the bytes are cut (memory)", { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(familySteps, fc.integer({ min: 1, max: 5_000 }), async (steps, pieceLength) => {
        await using journal = open();
        const family = new Family(journal);
        await family.live(steps);
        await roundTrip(family, async () => open(), pieceLength);
      }),
      { numRuns: 25 },
    );
  });

  it("is the same bytes, in both forms (SQLite)", { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(familySteps, async (steps) => {
        await using journal = open();
        const family = new Family(journal);
        await family.live(steps.slice(0, 8));
        const folders: TemporaryFolder[] = [];
        const openSqlite = () => {
          const folder = new TemporaryFolder();
          folders.push(folder);
          return openSqliteStore({ folder: folder.path, clock, digest: testDigest });
        };
        try {
          await roundTrip(family, openSqlite, 997);
        } finally {
          for (const folder of folders) folder[Symbol.dispose]();
        }
      }),
      { numRuns: 8 },
    );
  });
});
