import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { STATEMENT_NAMES, type WriteList } from "./statements.ts";
import { inlineWriter, workerWriter, type WriterLink } from "./writer-link.ts";

let folder: TemporaryFolder;
beforeEach(() => {
  folder = new TemporaryFolder();
});
afterEach(() => folder[Symbol.dispose]());

const options = () => ({ path: join(folder.path, "journal.sqlite"), fileBytesMax: undefined });

/** Inserts of records with these seqs. */
function records(...seqs: number[]): WriteList {
  return {
    statements: seqs.map(() => STATEMENT_NAMES.indexOf("insertRecord")),
    values: seqs.flatMap((seq) => [1, seq, 3, 1, null, null, "ab".repeat(32), Uint8Array.of(seq)]),
  };
}

function seqsInFile(): number[] {
  using db = new DatabaseSync(options().path, { readOnly: true });
  return db
    .prepare("SELECT seq FROM records ORDER BY position")
    .all()
    .map(({ seq }) => Number(seq));
}

const LINKS: readonly (readonly [string, () => Promise<WriterLink>])[] = [
  ["inline", async () => inlineWriter(options())],
  ["worker", () => workerWriter(options())],
];

describe.each(LINKS)("a writer, %s", (_, open) => {
  it("keeps lists whole, in the order in which they came", async () => {
    const link = await open();
    await Promise.all([link.write(records(1, 2)), link.write(records(3)), link.write(records(4, 5))]);
    expect(seqsInFile()).toEqual([1, 2, 3, 4, 5]);
    await link.close();
  });

  it("keeps nothing of a list that fails, and all of the next", async () => {
    const link = await open();
    await link.write(records(1));
    await expect((async () => link.write(records(2, 1, 3)))()).rejects.toMatchObject({ code: "internal" });
    expect(seqsInFile()).toEqual([1]);
    await link.write(records(2));
    expect(seqsInFile()).toEqual([1, 2]);
    await link.close();
  });
});

describe("a writer in a thread", () => {
  it("keeps what was staged with the write that follows", async () => {
    const link = await workerWriter(options());
    link.stage?.(records(1));
    link.stage?.(records(2));
    await link.write(records(3));
    expect(seqsInFile()).toEqual([1, 2, 3]);
    await link.close();
  });

  it("refuses the write that follows a staged list that fails, and keeps nothing of either", async () => {
    const link = await workerWriter(options());
    await link.write(records(1));
    link.stage?.(records(2));
    link.stage?.(records(1));
    link.stage?.(records(3));
    await expect(link.write(records(4))).rejects.toMatchObject({ code: "internal" });
    expect(seqsInFile()).toEqual([1]);
    await link.write(records(2));
    expect(seqsInFile()).toEqual([1, 2]);
    await link.close();
  });

  it("says so when the file cannot be opened there", async () => {
    using db = new DatabaseSync(options().path);
    db.exec("CREATE TABLE mine (x)");
    await expect(workerWriter(options())).rejects.toMatchObject({ code: "failed_precondition" });
  });

  it("fails for good when the thread dies, and nobody waits for it", async () => {
    const link = await workerWriter(options());
    await link.write(records(1));
    // A statement's value that is no value: the thread fails outside of any transaction's care.
    link.stage?.({ statements: { length: 1 } as never, values: [] });
    const written = link.write(records(2));
    await expect(written).rejects.toMatchObject({ code: "unavailable", details: { lasts: true } });
    await expect(link.write(records(3))).rejects.toMatchObject({ code: "unavailable" });
    await link.close();
    expect(seqsInFile()).toEqual([1]);
  });
});
