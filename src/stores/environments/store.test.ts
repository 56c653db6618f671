import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { EnvironmentStore, StoredEnvironment } from "../../spi/index.ts";
import { createMemoryEnvironments, openSqliteEnvironments } from "./index.ts";

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-environments-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function opened(store: EnvironmentStore): EnvironmentStore {
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

const row = (id: string, changes: Partial<StoredEnvironment> = {}): StoredEnvironment => ({
  id,
  uid: `uid-${id}`,
  version: 1,
  definition: '{"description":"ein Labor — größer"}',
  createTimeMs: 1_000,
  updateTimeMs: 2_000,
  ...changes,
});

const stores: readonly (readonly [string, () => EnvironmentStore])[] = [
  ["memory", () => opened(createMemoryEnvironments())],
  ["SQLite", () => opened(openSqliteEnvironments({ folder: newFolder() }))],
];

describe.each(stores)("environments in %s", (_name, open) => {
  it("are given back as they were inserted, by id", async () => {
    const store = open();
    for (const each of [row("b"), row("a"), row("c", { definition: "{}" })]) {
      expect(await store.insert(each)).toEqual({ kind: "inserted", row: each });
    }
    expect(await store.load()).toEqual([row("a"), row("b"), row("c", { definition: "{}" })]);
  });

  it("hold an id once: of two at a time, one is inserted and the other told of it", async () => {
    const store = open();
    const outcomes = await Promise.all(["one", "other"].map((uid) => store.insert(row("a", { uid }))));
    expect(outcomes.map(({ kind }) => kind).toSorted()).toEqual(["inserted", "taken"]);
    const winner = outcomes.find(({ kind }) => kind === "inserted")?.row;
    for (const outcome of outcomes) expect(outcome.row).toEqual(winner);
    expect(await store.load()).toEqual([winner]);
  });

  it("are replaced from the version before under their uid, and from no other", async () => {
    const store = open();
    await store.insert(row("a"));
    const next = row("a", { version: 2, definition: "{}", updateTimeMs: 5_000 });
    expect(await store.replace({ ...next, createTimeMs: 9 })).toEqual({ kind: "changed", row: next });
    const late = { kind: "conflict", row: next };
    expect(await store.replace(next)).toEqual(late);
    expect(await store.replace(row("a", { version: 4 }))).toEqual(late);
    expect(await store.replace(row("a", { version: 3, uid: "another" }))).toEqual(late);
    expect(await store.replace(row("b", { version: 2 }))).toEqual({ kind: "unknown" });
    expect(await store.load()).toEqual([next]);
  });

  it("are removed at their version under their uid, and the id is free again", async () => {
    const store = open();
    await store.insert(row("a"));
    for (const wrong of [
      { uid: "uid-a", version: 2 },
      { uid: "another", version: 1 },
    ]) {
      expect(await store.remove({ id: "a", ...wrong })).toEqual({ kind: "conflict", row: row("a") });
    }
    expect(await store.remove(row("a"))).toEqual({ kind: "changed", row: row("a") });
    expect(await store.remove(row("a"))).toEqual({ kind: "unknown" });
    expect(await store.insert(row("a", { uid: "another" }))).toMatchObject({ kind: "inserted" });
  });
});

describe("the file of environments", () => {
  it("has them when it is opened again, as they were left", async () => {
    const folder = newFolder();
    const first = openSqliteEnvironments({ folder });
    for (const id of ["a", "b"]) await first.insert(row(id));
    await first.replace(row("a", { version: 2, definition: "{}" }));
    await first.remove(row("b"));
    await first[Symbol.asyncDispose]();
    await first[Symbol.asyncDispose]();
    expect(await opened(openSqliteEnvironments({ folder })).load()).toEqual([row("a", { version: 2, definition: "{}" })]);
  });

  it("is refused where there is no folder; the message has no path", () => {
    expect(() => openSqliteEnvironments({ folder: join(newFolder(), "nowhere") })).toThrow(
      /^environments: the file cannot be opened; its folder must be there and be writable$/,
    );
  });
});
