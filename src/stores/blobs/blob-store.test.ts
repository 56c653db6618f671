import { readdirSync, readFileSync, statSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { BlobStore } from "../../spi/index.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { createMemoryBlobStore, openFileBlobStore } from "./index.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);
const HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

let folder: TemporaryFolder;
beforeEach(() => {
  folder = new TemporaryFolder();
});
afterEach(() => folder[Symbol.dispose]());

const openFiles = (nowMs = Date.now()) => openFileBlobStore({ folder: folder.path, nowMs });
const files = () => readdirSync(folder.path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());

describe.each([
  ["files", () => openFiles()],
  ["memory", () => createMemoryBlobStore()],
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
    const bytes = bytesOf("hello");
    const ref = await blobs.put(bytes);
    bytes[0] = 0;
    (await blobs.get(ref))!.fill(1);
    expect(await blobs.get(ref)).toEqual(bytesOf("hello"));
  });

  it.each(["../../etc/passwd", "sha256:ABC", `sha256:${HELLO}/..`, ""])("refuses %j as a digest", async (digest) => {
    await expect(open().get({ uri: `blob:${digest}`, digest })).rejects.toMatchObject({ code: "invalid_argument", field: "digest" });
  });

  it("refuses an address of somewhere else", async () => {
    const ref = { uri: "https://example.com/x", digest: `sha256:${HELLO}` };
    await expect(open().delete(ref)).rejects.toMatchObject({ code: "invalid_argument", field: "uri" });
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

  it("removes what a crash left half-written an hour ago, and nothing that is being written", async () => {
    const ref = await openFiles().put(bytesOf("hello"));
    const [entry] = files();
    const old = join(entry!.parentPath, "old.part");
    writeFileSync(old, "x");
    writeFileSync(join(entry!.parentPath, "new.part"), "x");
    utimesSync(old, new Date(0), new Date(0));
    const blobs = openFiles();
    expect(files().map(({ name }) => name)).not.toContain("old.part");
    expect(files().map(({ name }) => name)).toContain("new.part");
    expect(await blobs.get(ref)).toBeDefined();
  });

  it("makes its folder and what is missing above it", async () => {
    const nested = join(folder.path, "a", "b", "blobs");
    const ref = await openFileBlobStore({ folder: nested, nowMs: 0 }).put(bytesOf("hello"));
    expect(await openFileBlobStore({ folder: nested, nowMs: 0 }).get(ref)).toEqual(bytesOf("hello"));
    expect(statSync(nested).mode & 0o777).toBe(0o700);
  });

  it.each([
    ["is a file", () => join(folder.path, "file")],
    ["lies in a file", () => join(folder.path, "file", "blobs")],
    ["cannot be made, where Node's own way to make parents would not end", () => "/proc/none/blobs"],
  ])("says what is wrong, and no path, where the folder %s", (_what, path) => {
    writeFileSync(join(folder.path, "file"), "");
    const open = () => openFileBlobStore({ folder: path(), nowMs: 0 });
    expect(open).toThrow(expect.objectContaining({ code: "failed_precondition", message: expect.stringMatching(/^blob folder: [^/]+$/) }));
  });
});
