import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import { sessionUidOf } from "../../base/index.ts";
import type { NoteStore } from "../../spi/index.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { createMemoryNotes, NOTES_FILE, openSqliteNotes } from "./index.ts";

function newFolder(): string {
  const folder = new TemporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  return folder.path;
}

function opened(store: NoteStore): NoteStore {
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const one = sessionUidOf("one");
const other = sessionUidOf("other");

const stores: readonly (readonly [string, () => NoteStore])[] = [
  ["memory", () => opened(createMemoryNotes())],
  ["SQLite", () => opened(openSqliteNotes({ folder: newFolder() }))],
];

describe.each(stores)("notes in %s", (_name, open) => {
  it("are given back as they were put, by session and key", async () => {
    const store = open();
    const value = Buffer.from("größer");
    expect(await store.put({ session: one, key: "client", value, replaces: 0 })).toEqual({ kind: "kept", version: 1 });
    value.fill(0);
    expect(await store.get(one, "client")).toEqual({ value: bytes("größer"), version: 1 });
    expect(await store.get(one, "else")).toBeUndefined();
    expect(await store.get(other, "client")).toBeUndefined();
    expect(await store.put({ session: one, key: "empty", value: bytes(""), replaces: 0 })).toEqual({ kind: "kept", version: 1 });
    expect(await store.get(one, "empty")).toEqual({ value: bytes(""), version: 1 });
  });

  it("are replaced from the version that is there, and from no other", async () => {
    const store = open();
    const put = (text: string, replaces: number) => store.put({ session: one, key: "client", value: bytes(text), replaces });
    expect(await put("never", 1)).toEqual({ kind: "conflict", version: 0 });
    await put("a", 0);
    expect(await put("b", 1)).toEqual({ kind: "kept", version: 2 });
    expect(await put("late", 1)).toEqual({ kind: "conflict", version: 2 });
    expect(await put("again", 0)).toEqual({ kind: "conflict", version: 2 });
    expect(await store.get(one, "client")).toEqual({ value: bytes("b"), version: 2 });
  });

  it("have lists, in order and bounded", async () => {
    const store = open();
    const append = (text: string) => store.append({ session: one, list: "feedback", value: bytes(text), entriesMax: 3 });
    expect([await append("a"), await append("b"), await append("c"), await append("d")]).toEqual([1, 2, 3, undefined]);
    const entries = (after: number, limit: number) => store.entries({ session: one, list: "feedback", after, limit });
    expect(await entries(0, 2)).toEqual([
      { place: 1, value: bytes("a") },
      { place: 2, value: bytes("b") },
    ]);
    expect(await entries(2, 9)).toEqual([{ place: 3, value: bytes("c") }]);
    expect(await store.entries({ session: other, list: "feedback", after: 0, limit: 9 })).toEqual([]);
    expect(await store.append({ session: other, list: "feedback", value: bytes("x"), entriesMax: 3 })).toBe(1);
  });

  it("go with their session, and no other's go with them", async () => {
    const store = open();
    for (const session of [one, other]) {
      await store.put({ session, key: "client", value: bytes("a"), replaces: 0 });
      await store.append({ session, list: "feedback", value: bytes("a"), entriesMax: 3 });
    }
    await store.remove(one);
    await store.remove(one);
    expect(await store.get(one, "client")).toBeUndefined();
    expect(await store.entries({ session: one, list: "feedback", after: 0, limit: 9 })).toEqual([]);
    expect(await store.get(other, "client")).toMatchObject({ version: 1 });
    expect(await store.entries({ session: other, list: "feedback", after: 0, limit: 9 })).toHaveLength(1);
    expect(await store.put({ session: one, key: "client", value: bytes("new"), replaces: 0 })).toEqual({ kind: "kept", version: 1 });
  });
});

describe("the file of notes", () => {
  it("has them when it is opened again", async () => {
    const folder = newFolder();
    const first = openSqliteNotes({ folder });
    await first.put({ session: one, key: "client", value: bytes("a"), replaces: 0 });
    await first.append({ session: one, list: "feedback", value: bytes("b"), entriesMax: 3 });
    await first[Symbol.asyncDispose]();
    await first[Symbol.asyncDispose]();
    const second = opened(openSqliteNotes({ folder }));
    expect(await second.get(one, "client")).toEqual({ value: bytes("a"), version: 1 });
    expect(await second.append({ session: one, list: "feedback", value: bytes("c"), entriesMax: 3 })).toBe(2);
  });

  it("is refused when it is something else, and damaged when a note cannot be read", async () => {
    const noise = newFolder();
    writeFileSync(join(noise, NOTES_FILE), "not a database, and long enough to be looked at".repeat(100));
    expect(() => openSqliteNotes({ folder: noise })).toThrow(expect.objectContaining({ code: "data_loss" }));
    const foreign = newFolder();
    new DatabaseSync(join(foreign, NOTES_FILE)).exec("CREATE TABLE t (x)");
    expect(() => openSqliteNotes({ folder: foreign })).toThrow(/some other database/);
  });
});
