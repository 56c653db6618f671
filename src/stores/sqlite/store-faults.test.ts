/** What goes wrong with files: each is told plainly, nothing is acknowledged that is not kept, and nothing crashes. */

import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { JournalStore } from "../../journal/index.ts";
import {
  append,
  appendAs,
  claimAs,
  created,
  fence,
  HOST_A,
  HOST_B,
  output,
  recordsOf,
  requireChain,
  rowOf,
  seedOf,
  uid,
} from "../../testing/journal-conformance/fixtures.ts";
import { testDigest, VirtualClock } from "../../testing/ports.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { openSqliteStore, type SqliteStoreOptions } from "./index.ts";

let folder: TemporaryFolder;
beforeEach(() => {
  folder = new TemporaryFolder();
});
afterEach(() => folder[Symbol.dispose]());

const clock = new VirtualClock();
const open = (more: Partial<SqliteStoreOptions> = {}) => openSqliteStore({ folder: folder.path, clock, digest: testDigest, ...more });
const file = () => join(folder.path, "journal.sqlite");
const KIB = 1024;

async function filled(records: number): Promise<void> {
  await using store = await open();
  await created(store, "a");
  for (let at = 0; at < records; at += 500) await append(store, "a", ...Array.from({ length: 500 }, () => output("x".repeat(500))));
}

/** Appends until an append fails; returns how many succeeded and the failure. */
async function appendUntilFailure(store: JournalStore, text: string): Promise<{ made: number; failure: unknown }> {
  for (let made = 0; made < 10_000; made++) {
    try {
      await append(store, "a", output(text));
    } catch (failure) {
      return { made, failure };
    }
  }
  throw new Error("nothing failed");
}

describe("a folder that cannot be used", () => {
  it("is no folder, or lies below something that is none", async () => {
    const path = join(folder.path, "file");
    writeFileSync(path, "");
    for (const wrong of [path, join(path, "below")]) {
      await expect(open({ folder: wrong })).rejects.toMatchObject({
        code: "failed_precondition",
        message: expect.stringMatching(/^data folder: is not a folder/) as string,
      });
    }
  });

  it("is a link that leads nowhere", async () => {
    const path = join(folder.path, "link");
    symlinkSync(join(folder.path, "nowhere"), path);
    await expect(open({ folder: path })).rejects.toMatchObject({ code: "failed_precondition" });
  });

  it.runIf(existsSync("/proc/self"))("lies where no folder can be made", async () => {
    for (const path of ["/proc/nowhere", "/proc/nowhere/below/it"]) {
      await expect(open({ folder: path })).rejects.toMatchObject({
        code: "failed_precondition",
        message: "data folder: cannot be made here; its parent must be writable",
      });
    }
  });

  it("is held: by this process it can be opened once, and again after it was closed", async () => {
    const first = await open();
    await expect(open()).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(/another running process has it/) as string,
    });
    await first[Symbol.asyncDispose]();
    await (await open())[Symbol.asyncDispose]();
  });

  it("is made with its parents, for its owner only", async () => {
    const path = join(folder.path, "one", "two");
    await (await open({ folder: path }))[Symbol.asyncDispose]();
    expect([statSync(path).mode & 0o777, existsSync(join(path, "journal.sqlite"))]).toEqual([0o700, true]);
  });
});

describe.each(["inline", "worker"] as const)("a file that is no sound journal, written %s", (writer) => {
  it.each([
    ["garbage", async () => writeFileSync(file(), "no journal".repeat(1_000)), "data_loss"],
    ["another database", async () => withFile("CREATE TABLE mine (x)"), "failed_precondition"],
    [
      "a newer journal",
      async () => {
        await filled(0);
        withFile("PRAGMA user_version = 99");
      },
      "failed_precondition",
    ],
    [
      "a file that was cut",
      async () => {
        await filled(500);
        truncateSync(file(), Math.floor(statSync(file()).size / 2));
      },
      "data_loss",
    ],
  ])("is refused at opening: %s", async (_, damage, code) => {
    await damage();
    const before = readFileSync(file());
    await expect(open({ writer })).rejects.toMatchObject({ code, message: expect.stringMatching(/^journal: /) as string });
    expect(readFileSync(file()).equals(before)).toBe(true);
    writeFileSync(file(), "");
    await (await open({ writer }))[Symbol.asyncDispose]();
  });

  it("is told where it is met: overwritten pages are DATA_LOSS to whoever reads or extends them, and end all changes", async () => {
    await filled(4_000);
    overwriteRecords();
    await using store = await open({ writer });
    await expect(recordsOf(store, "a")).rejects.toMatchObject({ code: "data_loss" });
    const { lastSeq } = (await rowOf(store, "a")).projection;
    expect(lastSeq).toBe(4_000);
    await created(store, "b");
    for (const name of ["a", "b"]) await expect(append(store, name, output("x"))).rejects.toMatchObject({ code: "data_loss" });
    await expect(store.ready()).rejects.toMatchObject({ code: "data_loss" });
    await expect(store.create(seedOf("c"))).rejects.toMatchObject({ code: "data_loss" });
    expect((await store.list({ limit: 9 })).rows.map(({ seed }) => seed.uid)).toEqual(["a", "b"]);
  });
});

function withFile(sql: string): void {
  using db = new DatabaseSync(file());
  db.exec(sql);
}

/** Overwrites the last two thirds of the file, where records are read and where they are added. */
function overwriteRecords(): void {
  const third = Math.floor(statSync(file()).size / 3 / 4096) * 4096;
  const handle = openSync(file(), "r+");
  writeSync(handle, new Uint8Array(2 * third).fill(0xff), 0, 2 * third, third);
  closeSync(handle);
}

describe.each(["inline", "worker"] as const)("a file that goes away under a store, written %s", (writer) => {
  const aside = () => join(folder.path, "aside");
  const gone = { code: "unavailable", message: expect.stringMatching(/^journal: the file was deleted or replaced/) as string };

  const WAYS: readonly (readonly [string, () => void, (() => void) | undefined])[] = [
    ["deleted", () => unlinkSync(file()), undefined],
    ["moved", () => renameSync(file(), aside()), () => renameSync(aside(), file())],
    [
      "replaced by a copy of itself",
      () => {
        writeFileSync(join(folder.path, "copy"), readFileSync(file()));
        renameSync(file(), aside());
        renameSync(join(folder.path, "copy"), file());
      },
      () => renameSync(aside(), file()),
    ],
    ["left without its log", () => unlinkSync(`${file()}-wal`), undefined],
  ];

  it.each(WAYS)("acknowledges nothing any more: %s", async (_, goAway, comeBack) => {
    const lines: string[] = [];
    const store = await open({ writer, log: { log: (level, message) => void lines.push(`${level} ${message}`) } });
    await created(store, "a");
    await append(store, "a", output("kept"));
    await store.ready();
    goAway();
    await expect(append(store, "a", output("lost"))).rejects.toMatchObject(gone);
    await expect(store.create(seedOf("b"))).rejects.toMatchObject(gone);
    await expect(store.ready()).rejects.toMatchObject(gone);
    expect(lines).toEqual(["error journal: changes cannot be written"]);
    expect((await recordsOf(store, "a")).length).toBe(1);
    await store[Symbol.asyncDispose]();
    if (comeBack === undefined) return;
    comeBack();
    await using again = await open({ writer });
    expect(await rowOf(again, "a")).toMatchObject({ projection: { lastSeq: 1 } });
    await append(again, "a", output("two"));
    requireChain(await recordsOf(again, "a"));
    expect((await again.list({ limit: 9 })).rows.length).toBe(1);
  });

  it("is not ready even if nothing was written since", async () => {
    const store = await open({ writer });
    await store.ready();
    unlinkSync(file());
    await expect(store.ready()).rejects.toMatchObject(gone);
    await store[Symbol.asyncDispose]();
  });
});

describe.each(["inline", "worker"] as const)("a full file, written %s", (writer) => {
  it("refuses the change that does not fit, keeps what it acknowledged, and goes on where there is room", async () => {
    const limited = await open({ writer, fileBytesMax: 512 * KIB });
    await created(limited, "a");
    const { made, failure } = await appendUntilFailure(limited, "x".repeat(8 * KIB));
    expect(made).toBeGreaterThan(10);
    expect(failure).toMatchObject({
      code: "resource_exhausted",
      message: expect.stringMatching(/full; nothing of the change was kept/) as string,
    });
    await expect(limited.ready()).rejects.toMatchObject({ code: "resource_exhausted" });
    const together = ["a", "b"].map((text) => limited.append(appendAs("a", fence(0), [output(text.repeat(300 * KIB))])));
    for (const call of together) await expect(call).rejects.toMatchObject({ code: "resource_exhausted" });
    expect((await recordsOf(limited, "a")).length).toBe(made);
    await limited[Symbol.asyncDispose]();

    await using roomy = await open({ writer });
    await roomy.ready();
    const kept = await recordsOf(roomy, "a");
    requireChain(kept);
    expect(kept.length).toBe(made);
    await append(roomy, "a", output("x".repeat(8 * KIB)));
  });

  it("refuses a staged transaction whole", async () => {
    const limited = await open({ writer, fileBytesMax: 512 * KIB });
    await created(limited, "a");
    const calls = Array.from({ length: 64 }, () => limited.append(appendAs("a", fence(0), [output("x".repeat(16 * KIB))])));
    const results = await Promise.allSettled(calls);
    expect(new Set(results.map(({ status }) => status))).toEqual(new Set(["rejected"]));
    expect(await recordsOf(limited, "a")).toEqual([]);
    await append(limited, "a", output("small"));
    expect((await recordsOf(limited, "a")).length).toBe(1);
    await limited[Symbol.asyncDispose]();
  });
});

describe("a file that somebody else locks", () => {
  it("refuses changes while it is locked and takes them afterwards", async () => {
    await using store = await open({ writer: "worker" });
    await created(store, "a");
    using other = new DatabaseSync(file());
    other.exec("BEGIN IMMEDIATE");
    await expect(append(store, "a", output("x"))).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(/locked by another process/) as string,
    });
    expect(await recordsOf(store, "a")).toEqual([]);
    other.exec("ROLLBACK");
    await append(store, "a", output("y"));
    await store.ready();
  });
});

describe("leases", () => {
  it("end with the store that gave them: nobody else runs turns on this folder", async () => {
    const first = await open();
    await created(first, "a");
    await first.append(claimAs("a", HOST_A, { leaseMs: 1e9 }));
    await first[Symbol.asyncDispose]();
    await using second = await open();
    expect((await rowOf(second, "a")).holder).toBeUndefined();
    expect(await second.append(claimAs("a", HOST_B))).toMatchObject({ kind: "appended", fence: 2 });
  });
});

describe("the log", () => {
  it("tells of a fault without a payload, once", async () => {
    const lines: string[] = [];
    const log = {
      log: (level: string, message: string, fields?: object) => void lines.push(JSON.stringify({ level, message, ...fields })),
    };
    const store = await open({ fileBytesMax: 256 * KIB, log });
    await created(store, "a");
    await appendUntilFailure(store, "payload ".repeat(1_000));
    await store.append(appendAs("a", fence(0), [output("payload ".repeat(50_000))])).catch(() => undefined);
    await store[Symbol.asyncDispose]();
    expect(lines.length).toBe(1);
    expect(lines[0]).toMatch(/"level":"error".*"code":"resource_exhausted","errcode":13/);
    expect(lines[0]).not.toMatch(/payload/);
  });
});

describe("an option that cannot be meant", () => {
  it("is INVALID_ARGUMENT", async () => {
    for (const fileBytesMax of [0, -1, Number.NaN])
      await expect(open({ fileBytesMax })).rejects.toMatchObject({ code: "invalid_argument" });
    await (await open())[Symbol.asyncDispose]();
  });
});

describe("a store that is used after a fault", () => {
  it("knows no more than the file does: a session whose creation failed is unknown", async () => {
    const store = await open({ fileBytesMax: 256 * KIB });
    const labels = { large: "x".repeat(300 * KIB) };
    await expect(store.create(seedOf("a", { labels, name: "n" }))).rejects.toMatchObject({ code: "resource_exhausted" });
    expect(await store.get(uid("a"))).toBeUndefined();
    expect((await store.create(seedOf("a", { name: "n" }))).kind).toBe("created");
    await store[Symbol.asyncDispose]();
  });
});
