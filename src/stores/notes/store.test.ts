import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { sessionUidOf } from "../../base/index.ts";
import type { NoteStore } from "../../spi/index.ts";
import { createMemoryNotes, openSqliteNotes } from "./index.ts";

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-notes-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function opened(store: NoteStore): NoteStore {
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

const [session, other] = [sessionUidOf("s"), sessionUidOf("other")];
const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values);

const stores: readonly (readonly [string, () => NoteStore])[] = [
  ["memory", () => opened(createMemoryNotes())],
  ["SQLite", () => opened(openSqliteNotes({ folder: newFolder() }))],
];

describe.each(stores)("notes in %s", (_name, open) => {
  it("are kept under their session and key, an empty one too", async () => {
    const store = open();
    expect(await store.get(session, "tools")).toBeUndefined();
    expect(await store.put({ session, key: "tools", value: bytes(1, 2), replaces: 0 })).toEqual({ kind: "kept", version: 1 });
    expect(await store.put({ session: other, key: "tools", value: bytes(), replaces: 0 })).toEqual({ kind: "kept", version: 1 });
    expect(await store.get(session, "tools")).toEqual({ value: bytes(1, 2), version: 1 });
    expect(await store.get(other, "tools")).toEqual({ value: bytes(), version: 1 });
    expect(await store.get(session, "start")).toBeUndefined();
  });

  it("are replaced at their version; of two who change one, the other is told of it", async () => {
    const store = open();
    const put = (value: number, replaces: number) => store.put({ session, key: "k", value: bytes(value), replaces });
    expect(await put(1, 3)).toEqual({ kind: "conflict", version: 0 });
    const outcomes = await Promise.all([put(1, 0), put(2, 0)]);
    expect(outcomes).toEqual([
      { kind: "kept", version: 1 },
      { kind: "conflict", version: 1 },
    ]);
    expect(await put(3, 1)).toEqual({ kind: "kept", version: 2 });
    expect(await put(4, 1)).toEqual({ kind: "conflict", version: 2 });
    expect(await store.get(session, "k")).toEqual({ value: bytes(3), version: 2 });
  });

  it("share nothing with who put them there", async () => {
    const store = open();
    const value = bytes(1);
    await store.put({ session, key: "k", value, replaces: 0 });
    await store.append({ session, list: "l", value, entriesMax: 1 });
    value[0] = 9;
    expect((await store.get(session, "k"))?.value).toEqual(bytes(1));
    expect(await store.entries({ session, list: "l", after: 0, limit: 1 })).toEqual([{ place: 1, value: bytes(1) }]);
  });

  it("are lists too: in order, page by page, each of its session, and no longer than they may be", async () => {
    const store = open();
    const append = (value: number, list = "l") => store.append({ session, list, value: bytes(value), entriesMax: 3 });
    for (const place of [1, 2, 3]) expect(await append(place * 10)).toBe(place);
    expect(await append(40)).toBeUndefined();
    expect(await append(50, "m")).toBe(1);
    expect(await store.append({ session: other, list: "l", value: bytes(60), entriesMax: 3 })).toBe(1);
    const page = (after: number, limit: number) => store.entries({ session, list: "l", after, limit });
    expect(await page(0, 2)).toEqual([
      { place: 1, value: bytes(10) },
      { place: 2, value: bytes(20) },
    ]);
    expect(await page(2, 2)).toEqual([{ place: 3, value: bytes(30) }]);
    expect(await page(3, 2)).toEqual([]);
    expect(await store.entries({ session, list: "none", after: 0, limit: 2 })).toEqual([]);
  });

  it("go with their session, and no other's do", async () => {
    const store = open();
    for (const of of [session, other]) {
      await store.put({ session: of, key: "k", value: bytes(1), replaces: 0 });
      await store.append({ session: of, list: "l", value: bytes(1), entriesMax: 3 });
    }
    for (let time = 0; time < 2; time++) await store.remove(session);
    expect(await store.get(session, "k")).toBeUndefined();
    expect(await store.entries({ session, list: "l", after: 0, limit: 9 })).toEqual([]);
    expect(await store.get(other, "k")).toBeDefined();
    expect(await store.entries({ session: other, list: "l", after: 0, limit: 9 })).toHaveLength(1);
    expect(await store.put({ session, key: "k", value: bytes(2), replaces: 0 })).toEqual({ kind: "kept", version: 1 });
  });
});

describe("the file of notes", () => {
  it("has them when it is opened again", async () => {
    const folder = newFolder();
    const first = openSqliteNotes({ folder });
    await first.put({ session, key: "k", value: bytes(1), replaces: 0 });
    await first.put({ session, key: "k", value: bytes(2), replaces: 1 });
    await first.append({ session, list: "l", value: bytes(3), entriesMax: 1 });
    await first[Symbol.asyncDispose]();
    await first[Symbol.asyncDispose]();
    const again = opened(openSqliteNotes({ folder }));
    expect(await again.get(session, "k")).toEqual({ value: bytes(2), version: 2 });
    expect(await again.append({ session, list: "l", value: bytes(4), entriesMax: 1 })).toBeUndefined();
  });

  it("is refused where there is no folder; the message has no path", () => {
    expect(() => openSqliteNotes({ folder: join(newFolder(), "nowhere") })).toThrow(
      /^notes: the file cannot be opened; its folder must be there and be writable$/,
    );
  });
});
