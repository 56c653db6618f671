import { mkdirSync, readdirSync, readFileSync, statSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { BlobStore } from "../../spi/index.ts";
import { VirtualClock } from "../../testing/ports.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { createMemoryBlobStore, openFileBlobStore } from "./index.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);
const HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

let folder: TemporaryFolder;
beforeEach(() => {
  folder = new TemporaryFolder();
  clock = new VirtualClock();
});
afterEach(() => folder[Symbol.dispose]());

let clock: VirtualClock;
const openFiles = () => openFileBlobStore({ folder: folder.path, clock });
const files = () => readdirSync(folder.path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());

describe.each([
  ["files", () => openFiles()],
  ["memory", () => createMemoryBlobStore({ clock })],
] as [string, () => BlobStore][])("a blob store of %s", (_kind, open) => {
  it("names a blob by its bytes and gives them back", async () => {
    const blobs = open();
    const ref = await blobs.put(bytesOf("hello"));
    expect(ref).toEqual({ uri: `blob:sha256:${HELLO}`, digest: `sha256:${HELLO}`, sizeBytes: 5 });
    expect(await blobs.get(ref)).toEqual(bytesOf("hello"));
    expect(await blobs.put(bytesOf("hello"))).toEqual(ref);
  });

  it("keeps the empty blob", async () => {
    const blobs = open();
    expect(await blobs.get(await blobs.put(new Uint8Array()))).toEqual(new Uint8Array());
  });

  it("has nothing under another name, and nothing after a delete, which may be repeated", async () => {
    const blobs = open();
    const ref = await blobs.put(bytesOf("hello"));
    const other = `sha256:${"0".repeat(64)}`;
    expect(await blobs.get({ uri: `blob:${other}`, digest: other })).toBeUndefined();
    await blobs.delete(ref);
    await blobs.delete(ref);
    expect(await blobs.get(ref)).toBeUndefined();
  });

  it("gives copies: nobody can change a blob", async () => {
    const blobs = open();
    for (const bytes of [bytesOf("hello"), Buffer.from("hello")]) {
      const ref = await blobs.put(bytes);
      bytes[0] = 0;
      (await blobs.get(ref))!.fill(1);
      expect(Uint8Array.from((await blobs.get(ref))!)).toEqual(bytesOf("hello"));
      await blobs.delete(ref);
    }
  });

  it.each(["../../etc/passwd", "sha256:ABC", `sha256:${HELLO}/..`, ""])("refuses %j as a digest", async (digest) => {
    await expect(open().get({ uri: `blob:${digest}`, digest })).rejects.toMatchObject({ code: "invalid_argument", field: "digest" });
  });

  it("refuses an address of somewhere else", async () => {
    const ref = { uri: "https://example.com/x", digest: `sha256:${HELLO}` };
    await expect(open().delete(ref)).rejects.toMatchObject({ code: "invalid_argument", field: "uri" });
  });

  const all = async (blobs: BlobStore) => (await Array.fromAsync(blobs.list())).toSorted((a, b) => a.sizeBytes - b.sizeBytes);

  it("lists what is there, with the time when each was put or renewed last", async () => {
    const blobs = open();
    expect(await all(blobs)).toEqual([]);
    const [one, other] = [await blobs.put(bytesOf("1")), await blobs.put(bytesOf("22"))];
    const putMs = clock.nowMs();
    expect(await all(blobs)).toEqual([
      { ...one, storedMs: putMs },
      { ...other, storedMs: putMs },
    ]);
    clock.advance(1_000);
    expect(await blobs.renew(one)).toBe(true);
    expect((await all(blobs)).map(({ storedMs }) => storedMs - putMs)).toEqual([1_000, 0]);
    clock.advance(1_000);
    await blobs.put(bytesOf("22"));
    expect((await all(blobs)).map(({ storedMs }) => storedMs - putMs)).toEqual([1_000, 2_000]);
    await blobs.delete(one);
    expect(await blobs.renew(one)).toBe(false);
    expect(await all(blobs)).toHaveLength(1);
  });

  it("removes what is old, and nothing that was renewed since", async () => {
    const blobs = open();
    const ref = await blobs.put(bytesOf("hello"));
    const putMs = clock.nowMs();
    expect(await blobs.delete(ref, { storedBeforeMs: putMs })).toBe(false);
    clock.advance(5);
    await blobs.renew(ref);
    expect(await blobs.delete(ref, { storedBeforeMs: putMs + 5 })).toBe(false);
    expect(await blobs.get(ref)).toEqual(bytesOf("hello"));
    expect(await blobs.delete(ref, { storedBeforeMs: putMs + 6 })).toBe(true);
    expect(await blobs.delete(ref, { storedBeforeMs: putMs + 6 })).toBe(false);
    expect(await blobs.delete(ref)).toBe(false);
  });

  it("does nothing for a caller that gave up", async () => {
    const signal = AbortSignal.abort(new Error("enough"));
    await expect(open().put(bytesOf("hello"), { signal })).rejects.toThrow("enough");
  });
});

describe("a blob store of files", () => {
  it("is the same store when it is opened again", async () => {
    const ref = await openFiles().put(bytesOf("hello"));
    expect(await openFiles().get(ref)).toEqual(bytesOf("hello"));
    expect(files()).toHaveLength(1);
  });

  it("calls a damaged file DATA_LOSS, and writes a torn one anew when the same bytes come again", async () => {
    const blobs = openFiles();
    const ref = await blobs.put(bytesOf("hello"));
    const [entry] = files();
    const file = join(entry!.parentPath, entry!.name);
    writeFileSync(file, "jello");
    await expect(blobs.get(ref)).rejects.toMatchObject({ code: "data_loss" });
    truncateSync(file, 3);
    await expect(blobs.get(ref)).rejects.toMatchObject({ code: "data_loss" });
    await blobs.put(bytesOf("hello"));
    expect(await blobs.get(ref)).toEqual(bytesOf("hello"));
    expect(readFileSync(file, "utf8")).toBe("hello");
  });

  it("takes the same bytes from many at once", async () => {
    const blobs = [openFiles(), openFiles()];
    const refs = await Promise.all(Array.from({ length: 20 }, (_, index) => blobs[index % 2]!.put(bytesOf("hello"))));
    expect(new Set(refs.map(({ uri }) => uri)).size).toBe(1);
    expect(files()).toHaveLength(1);
  });

  it("lists no file that is none of its blobs", async () => {
    const blobs = openFiles();
    const ref = await blobs.put(bytesOf("hello"));
    const [entry] = files();
    for (const name of ["note", `${HELLO}.part`, "0".repeat(63)]) writeFileSync(join(entry!.parentPath, name), "x");
    mkdirSync(join(entry!.parentPath, "1".repeat(64)));
    writeFileSync(join(folder.path, "ff"), "x");
    expect((await Array.fromAsync(blobs.list())).map(({ uri }) => uri)).toEqual([ref.uri]);
  });

  it("loses nothing that another process puts while it is removed for being old", async () => {
    const [mine, others] = [openFiles(), openFiles()];
    for (let round = 0; round < 200; round++) {
      clock.advance(10);
      const old = await mine.put(bytesOf("hello"));
      clock.advance(10);
      const [, again] = await Promise.all([mine.delete(old, { storedBeforeMs: clock.nowMs() }), others.put(bytesOf("hello"))]);
      expect(await mine.get(again)).toEqual(bytesOf("hello"));
    }
    expect(files()).toHaveLength(1);
  });

  it("removes what a crash left half-written an hour ago, and nothing that is being written", async () => {
    const ref = await openFiles().put(bytesOf("hello"));
    const [entry] = files();
    const old = join(entry!.parentPath, "old.part");
    writeFileSync(old, "x");
    writeFileSync(join(entry!.parentPath, "new.part"), "x");
    utimesSync(join(entry!.parentPath, "new.part"), new Date(clock.nowMs()), new Date(clock.nowMs()));
    utimesSync(old, new Date(0), new Date(0));
    const blobs = openFiles();
    expect(files().map(({ name }) => name)).not.toContain("old.part");
    expect(files().map(({ name }) => name)).toContain("new.part");
    expect(await blobs.get(ref)).toBeDefined();
  });

  it("makes its folder and what is missing above it", async () => {
    const nested = join(folder.path, "a", "b", "blobs");
    const ref = await openFileBlobStore({ folder: nested, clock }).put(bytesOf("hello"));
    expect(await openFileBlobStore({ folder: nested, clock }).get(ref)).toEqual(bytesOf("hello"));
    expect(statSync(nested).mode & 0o777).toBe(0o700);
  });

  it.each([
    ["is a file", () => join(folder.path, "file")],
    ["lies in a file", () => join(folder.path, "file", "blobs")],
    ["cannot be made, where Node's own way to make parents would not end", () => "/proc/none/blobs"],
  ])("says what is wrong, and no path, where the folder %s", (_what, path) => {
    writeFileSync(join(folder.path, "file"), "");
    const open = () => openFileBlobStore({ folder: path(), clock });
    expect(open).toThrow(expect.objectContaining({ code: "failed_precondition", message: expect.stringMatching(/^blob folder: [^/]+$/) }));
  });
});
