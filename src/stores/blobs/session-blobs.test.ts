import { existsSync, mkdirSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { sessionUidOf, UID_CHARS_MAX } from "../../base/index.ts";
import type { SessionBlobs } from "../../spi/index.ts";
import { VirtualClock } from "../../testing/ports.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { createFileSessionBlobs, createMemorySessionBlobs } from "./index.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);
const [ADA, BOB] = [sessionUidOf("0197-ada"), sessionUidOf("0197-bob")];

let folder: TemporaryFolder;
let clock: VirtualClock;
beforeEach(() => {
  folder = new TemporaryFolder();
  clock = new VirtualClock();
});
afterEach(() => folder[Symbol.dispose]());

const outputs = () => join(folder.path, "outputs");
const openFiles = () => createFileSessionBlobs({ folder: outputs(), clock });
const owners = async (blobs: SessionBlobs) => (await Array.fromAsync(blobs.owners())).toSorted();

describe.each([
  ["files", () => openFiles()],
  ["memory", () => createMemorySessionBlobs({ clock })],
] as [string, () => SessionBlobs][])("blobs of sessions in %s", (_kind, open) => {
  it("are each session's own, under one name where they are the same bytes", async () => {
    const blobs = open();
    const ref = await blobs.of(ADA).put(bytesOf("hello"));
    expect(await blobs.of(BOB).get(ref)).toBeUndefined();
    expect(await blobs.of(BOB).put(bytesOf("hello"))).toEqual(ref);
    expect(await blobs.of(ADA).get(ref)).toEqual(bytesOf("hello"));
    expect(await owners(blobs)).toEqual([ADA, BOB]);
  });

  it("are there for everybody who has the session's store, whoever put the first one", async () => {
    const blobs = open();
    const [mine, others] = [blobs.of(ADA), blobs.of(ADA)];
    const ref = await mine.put(bytesOf("hello"));
    expect(await others.get(ref)).toEqual(bytesOf("hello"));
    expect(await others.renew(ref)).toBe(true);
    expect(await Array.fromAsync(others.list())).toMatchObject([ref]);
    expect(await others.delete(ref)).toBe(true);
    expect(await mine.get(ref)).toBeUndefined();
  });

  it("are nothing before the first is put", async () => {
    const blobs = open();
    const [ref] = [await blobs.of(ADA).put(bytesOf("hello"))];
    expect(await blobs.of(BOB).get(ref)).toBeUndefined();
    expect(await blobs.of(BOB).renew(ref)).toBe(false);
    expect(await Array.fromAsync(blobs.of(BOB).list())).toEqual([]);
    expect(await owners(blobs)).toEqual([ADA]);
  });

  it("go by owner: those that are old, so many and no more; an owner that has none left is none", async () => {
    const blobs = open();
    const owner = blobs.ownerOf(ADA);
    for (const text of ["1", "22", "333"]) await blobs.of(ADA).put(bytesOf(text));
    const putMs = clock.nowMs();
    expect(await blobs.remove(owner, { storedBeforeMs: putMs, removedMax: 10 })).toEqual([]);
    expect(await blobs.remove(owner, { storedBeforeMs: putMs + 1, removedMax: 2 })).toHaveLength(2);
    expect(await owners(blobs)).toEqual([owner]);
    clock.advance(1);
    const late = await blobs.of(ADA).put(bytesOf("4444"));
    expect(await blobs.remove(owner, { storedBeforeMs: putMs + 1, removedMax: 10 })).toHaveLength(1);
    expect(await Array.fromAsync(blobs.of(ADA).list())).toMatchObject([late]);
    expect(await blobs.remove(owner, { storedBeforeMs: putMs + 2, removedMax: 10 })).toMatchObject([{ ...late, storedMs: putMs + 1 }]);
    expect(await owners(blobs)).toEqual([]);
    expect(await blobs.remove(owner, { storedBeforeMs: putMs + 2, removedMax: 10 })).toEqual([]);
  });

  it("may be put again after all of them went", async () => {
    const blobs = open();
    const ada = blobs.of(ADA);
    await ada.put(bytesOf("hello"));
    clock.advance(1);
    await blobs.remove(blobs.ownerOf(ADA), { storedBeforeMs: clock.nowMs(), removedMax: 10 });
    expect(await ada.get(await ada.put(bytesOf("hello")))).toEqual(bytesOf("hello"));
  });

  it.each(["../../etc", "a/b", ".", "A", "a_b", "ä", " ", "_0", "x".repeat(UID_CHARS_MAX), "Ü".repeat(UID_CHARS_MAX)])(
    "keep a session apart whose uid is %j",
    async (text) => {
      const blobs = open();
      const uid = sessionUidOf(text);
      const ref = await blobs.of(uid).put(bytesOf("hello"));
      await blobs.of(ADA).put(bytesOf("hello"));
      expect(await blobs.of(uid).get(ref)).toEqual(bytesOf("hello"));
      expect(await owners(blobs)).toEqual([blobs.ownerOf(ADA), blobs.ownerOf(uid)].toSorted());
      expect(readdirSync(folder.path).filter((name) => name !== "outputs")).toEqual([]);
    },
  );
});

describe("blobs of sessions in files", () => {
  it("are in a folder of the session's name, which is made for the first and goes with the last", async () => {
    const blobs = openFiles();
    await Array.fromAsync(blobs.of(ADA).list());
    expect(existsSync(outputs())).toBe(false);
    await blobs.of(ADA).put(bytesOf("hello"));
    expect(readdirSync(outputs())).toEqual([ADA]);
    clock.advance(1);
    await blobs.remove(ADA, { storedBeforeMs: clock.nowMs(), removedMax: 10 });
    expect(readdirSync(outputs())).toEqual([]);
  });

  it("are put without a look at the others: what a crash left half-written goes with the session", async () => {
    const blobs = openFiles();
    const { digest } = await blobs.of(ADA).put(bytesOf("hello"));
    const half = join(outputs(), ADA, digest.slice(7, 9), "half.part");
    writeFileSync(half, "hel");
    utimesSync(half, 1, 1);
    await openFiles().of(ADA).put(bytesOf("hello again"));
    expect(existsSync(half)).toBe(true);
    clock.advance(1);
    await blobs.remove(ADA, { storedBeforeMs: clock.nowMs(), removedMax: 10 });
    expect(readdirSync(outputs())).toEqual([]);
  });

  it("take no file of somebody else for theirs", async () => {
    const blobs = openFiles();
    await blobs.of(ADA).put(bytesOf("hello"));
    writeFileSync(join(outputs(), ADA, "note"), "mine");
    mkdirSync(join(outputs(), "Something else"));
    expect(await owners(blobs)).toEqual([ADA]);
    clock.advance(1);
    expect(await blobs.remove(ADA, { storedBeforeMs: clock.nowMs(), removedMax: 10 })).toHaveLength(1);
    expect(readdirSync(join(outputs(), ADA))).toEqual(["note"]);
    await expect(blobs.remove("../outputs", { storedBeforeMs: 0, removedMax: 1 })).rejects.toMatchObject({ field: "owner" });
  });

  it("follow no link, and pass over what no session has put there", async () => {
    const blobs = openFiles();
    await blobs.of(ADA).put(bytesOf("hello"));
    const elsewhere = join(folder.path, "elsewhere");
    mkdirSync(join(elsewhere, "empty"), { recursive: true });
    writeFileSync(join(elsewhere, "film.part"), "half");
    utimesSync(join(elsewhere, "film.part"), 1, 1);
    symlinkSync(elsewhere, join(outputs(), "link"));
    writeFileSync(join(outputs(), "readme"), "mine");
    mkdirSync(join(outputs(), "x".repeat(UID_CHARS_MAX + 1)));
    expect(await owners(blobs)).toEqual([ADA]);
    clock.advance(1);
    for (const owner of ["link", "readme"]) {
      expect(await blobs.remove(owner, { storedBeforeMs: clock.nowMs(), removedMax: 10 })).toEqual([]);
    }
    expect(readdirSync(elsewhere).toSorted()).toEqual(["empty", "film.part"]);
    expect(readdirSync(outputs())).toHaveLength(4);
  });

  it("are told apart where the file system takes both cases for one", () => {
    const [small, large] = [sessionUidOf("ada"), sessionUidOf("ADA")];
    expect(openFiles().ownerOf(small).toLowerCase()).not.toBe(openFiles().ownerOf(large).toLowerCase());
  });
});
