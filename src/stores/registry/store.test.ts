import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { create } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished } from "vitest";
import { CapabilitiesSchema } from "../../gen/agentsessions/v1/harness_pb.ts";
import { HarnessSpecSchema } from "../../gen/agentsessions/v1/harness_registry_pb.ts";
import type { RegisteredHarness, RegistrationStore } from "../../spi/index.ts";
import { createMemoryRegistrations, openSqliteRegistrations, REGISTRY_FILE } from "./index.ts";
import { REGISTRY } from "./file.ts";

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-registry-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function opened(store: RegistrationStore): RegistrationStore {
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

const row = (name: string, changes: Partial<RegisteredHarness> = {}): RegisteredHarness => ({
  name,
  uid: `uid-${name}`,
  version: 1,
  spec: create(HarnessSpecSchema, {
    placement: { case: "remote", value: { address: "127.0.0.1:7000" } },
    capabilities: create(CapabilitiesSchema, { forkSafe: true }),
    descriptorId: "coder",
  }),
  specDigest: "sha256:00",
  createTimeMs: 1_000,
  updateTimeMs: 2_000,
  retired: undefined,
  ...changes,
});

const stores: readonly (readonly [string, () => RegistrationStore])[] = [
  ["memory", () => opened(createMemoryRegistrations())],
  ["SQLite", () => opened(openSqliteRegistrations({ folder: newFolder() }))],
];

describe.each(stores)("registrations in %s", (_name, open) => {
  it("are given back as they were inserted, by name", async () => {
    const store = open();
    const retired = row("a", { retired: { timeMs: 3_000, reason: "no longer wanted — ever" } });
    const substrate = row("z", {
      spec: create(HarnessSpecSchema, { placement: { case: "substrate", value: { atespace: "s", template: "t" } } }),
    });
    for (const each of [row("b"), retired, substrate]) expect(await store.insert(each)).toEqual({ kind: "inserted", row: each });
    expect(await store.load()).toEqual([retired, row("b"), substrate]);
  });

  it("hold a name once: of two at a time, one is inserted and the other told of it", async () => {
    const store = open();
    const rivals = [row("a", { uid: "one" }), row("a", { uid: "other", specDigest: "sha256:11" })];
    const outcomes = await Promise.all(rivals.map((rival) => store.insert(rival)));
    expect(outcomes.map(({ kind }) => kind).toSorted()).toEqual(["inserted", "taken"]);
    const winner = outcomes.find(({ kind }) => kind === "inserted")?.row;
    for (const outcome of outcomes) expect(outcome.row).toEqual(winner);
    expect(await store.load()).toEqual([winner]);
  });

  it("are replaced from the version before, and from no other", async () => {
    const store = open();
    await store.insert(row("a"));
    const retired = row("a", { version: 2, updateTimeMs: 5_000, retired: { timeMs: 5_000, reason: "" } });
    expect(await store.replace(retired)).toEqual({ kind: "replaced", row: retired });
    const late = row("a", { version: 2, updateTimeMs: 6_000 });
    expect(await store.replace(late)).toEqual({ kind: "conflict", row: retired });
    expect(await store.replace(row("a", { version: 4 }))).toEqual({ kind: "conflict", row: retired });
    const back = row("a", { version: 3, updateTimeMs: 7_000 });
    expect(await store.replace(back)).toEqual({ kind: "replaced", row: back });
    expect(await store.replace(row("b", { version: 2 }))).toEqual({ kind: "unknown" });
    expect(await store.load()).toEqual([back]);
  });

  it("keep their spec, uid and time of creation whatever a change says", async () => {
    const store = open();
    await store.insert(row("a"));
    await store.replace(row("a", { version: 2, uid: "other", specDigest: "sha256:11", createTimeMs: 9, spec: create(HarnessSpecSchema) }));
    expect(await store.load()).toEqual([row("a", { version: 2 })]);
  });
});

describe("a registry's file", () => {
  it("has its registrations when it is opened again, durably each time", async () => {
    const folder = newFolder();
    for (const name of ["a", "b"]) {
      const store = openSqliteRegistrations({ folder });
      await store.insert(row(name));
      await store[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    }
    expect((await opened(openSqliteRegistrations({ folder })).load()).map(({ name }) => name)).toEqual(["a", "b"]);
  });

  it("is refused, and left as it is, when it is another database or of a newer version", () => {
    const other = newFolder();
    new DatabaseSync(join(other, REGISTRY_FILE)).exec("CREATE TABLE t (x)");
    const before = readFileSync(join(other, REGISTRY_FILE));
    expect(() => openSqliteRegistrations({ folder: other })).toThrow(/some other database/);
    expect(readFileSync(join(other, REGISTRY_FILE)).equals(before)).toBe(true);
    const newer = newFolder();
    void openSqliteRegistrations({ folder: newer })[Symbol.asyncDispose]();
    new DatabaseSync(join(newer, REGISTRY_FILE)).exec(`PRAGMA user_version = ${REGISTRY.migrations.length + 1}`);
    expect(() => openSqliteRegistrations({ folder: newer })).toThrow(expect.objectContaining({ code: "failed_precondition" }));
  });

  it("is refused when it is no database, is no file, or has no folder; no message has the path", () => {
    const noise = newFolder();
    writeFileSync(join(noise, REGISTRY_FILE), "not a database, and long enough to be looked at".repeat(100));
    const folder = newFolder();
    mkdirSync(join(folder, REGISTRY_FILE));
    for (const [at, code] of [
      [noise, "data_loss"],
      [folder, "failed_precondition"],
      [join(newFolder(), "nowhere"), "failed_precondition"],
    ] as const) {
      let error: unknown;
      try {
        openSqliteRegistrations({ folder: at });
      } catch (thrown) {
        error = thrown;
      }
      expect(error).toMatchObject({ code });
      expect(String(error)).not.toContain(tmpdir());
    }
  });

  it("is damaged when a spec cannot be read", async () => {
    const folder = newFolder();
    const store = opened(openSqliteRegistrations({ folder }));
    await store.insert(row("a"));
    new DatabaseSync(join(folder, REGISTRY_FILE)).exec("UPDATE registrations SET spec = x'0aff'");
    await expect(store.load()).rejects.toMatchObject({ code: "data_loss" });
  });
});
