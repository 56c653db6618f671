import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it, onTestFinished } from "vitest";
import { SILENT_LOG, type SessionUid } from "../base/index.ts";
import { sweep } from "../controller/index.ts";
import { createChainVerifier, type JournalStore } from "../journal/index.ts";
import { nodeDigest, nodeSignatures, systemClock } from "../node/index.ts";
import { openSqliteStore } from "../stores/sqlite/index.ts";
import { exportedFile, importFile } from "../testing/archive-files.ts";
import { append, created, deletion, forked, forkRequest, output, recordsOf, uid } from "../testing/journal-conformance/fixtures.ts";
import { SeededRandom } from "../testing/ports.ts";
import { TemporaryFolder } from "../testing/temporary-folder.ts";

/** Imports and sweeps in a process that is killed with SIGKILL at any moment, on a real file. */

const KILLS = 6;
const module = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href);

/** `counted` is the journal; it says a dot at each write that it is asked for. */
const PROLOGUE = `
const [{ openSqliteStore }, { systemClock, nodeDigest, nodeSignatures }, archive, { createReadStream }] = await Promise.all([
  import(${module("../stores/sqlite/index.ts")}), import(${module("../node/index.ts")}), import(${module("./index.ts")}), import("node:fs"),
]);
const journal = await openSqliteStore({ folder: process.argv[1], clock: systemClock, digest: nodeDigest, writer: "worker" });
const counted = new Proxy(journal, { get(target, key) {
  const own = Reflect.get(target, key);
  if (typeof own !== "function") return own;
  return (...args) => {
    if (key === "adopt" || key === "complete" || key === "reclaim") process.stdout.write(".");
    return own.apply(target, args);
  };
} });`;

/** Runs a program and kills it when it has asked for its `atWrite`th write. */
async function killed(body: string, args: readonly string[], atWrite: number): Promise<void> {
  const child = spawn(process.execPath, ["--input-type=module", "-e", `${PROLOGUE}\n${body}`, ...args]);
  onTestFinished(() => void child.kill("SIGKILL"));
  let writes = 0;
  child.stdout.on("data", (dots: Buffer) => {
    writes += dots.length;
    if (writes >= atWrite) child.kill("SIGKILL");
  });
  child.stderr.pipe(process.stderr);
  const signal = await new Promise((resolve) => child.once("close", (_, by) => resolve(by)));
  expect(signal).toBe("SIGKILL");
}

function open(folder: string): Promise<JournalStore> {
  return openSqliteStore({ folder, clock: systemClock, digest: nodeDigest, log: SILENT_LOG });
}

/** `a` with many records, of which `b` shares 500. */
async function fill(journal: JournalStore): Promise<void> {
  await created(journal, "a");
  for (let batch = 0; batch < 20; batch++)
    await append(journal, "a", ...Array.from({ length: 1_000 }, (_, index) => output(`${batch} ${index}`)));
  forked(await journal.fork(await forkRequest(journal, "a", 500, "b")));
}

async function isSound(journal: JournalStore, session: SessionUid): Promise<boolean> {
  const verifier = createChainVerifier(nodeDigest);
  for await (const page of journal.read({ session })) verifier.pushPage(page);
  return verifier.finish().kind === "intact";
}

describe("kill -9", () => {
  it("in the middle of an import shows nothing, and the import can be repeated", { timeout: 240_000 }, async () => {
    using folder = new TemporaryFolder();
    const random = new SeededRandom(11);
    const source = await open(`${folder.path}/source`);
    await fill(source);
    const file = `${folder.path}/export`;
    writeFileSync(file, await exportedFile(source, uid("a"), { family: true, form: "binary" }));
    await source[Symbol.asyncDispose]();
    const body = `
      await archive.importSessions({ journal: counted, digest: nodeDigest, signatures: nodeSignatures }, createReadStream(process.argv[2]));
      setInterval(() => undefined, 1_000_000);`;
    let inTheMiddle = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      const target = `${folder.path}/target-${kill}`;
      await killed(body, [target, file], 2 + random.below(70));
      await using journal = await open(target);
      const { rows } = await journal.list({ limit: 9 });
      if (rows.length === 0) inTheMiddle += (await journal.get(uid("a"))) === undefined ? 0 : 1;
      // All sessions or none: there is nothing between.
      expect([0, 2]).toContain(rows.length);
      for (const session of ["a", "b"]) expect(await isSound(journal, uid(session))).toBe(true);
      await importFile(journal, readFileSync(file), nodeSignatures, 64 * 1024);
      expect((await exportedFile(journal, uid("a"), { family: true, form: "binary" })).equals(readFileSync(file))).toBe(true);
    }
    expect(inTheMiddle).toBeGreaterThan(0);
  });

  it("in the middle of a sweep leaves a prefix, and the next sweep ends it", { timeout: 240_000 }, async () => {
    using folder = new TemporaryFolder();
    const random = new SeededRandom(12);
    const body = `
      const { sweep } = await import(${module("../controller/index.ts")});
      await sweep({ journal: counted, clock: systemClock, retentionMs: 0 });
      setInterval(() => undefined, 1_000_000);`;
    let inTheMiddle = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      const target = `${folder.path}/target-${kill}`;
      const before = await open(target);
      await fill(before);
      const shared = await recordsOf(before, "b");
      await append(before, "a", deletion());
      await before[Symbol.asyncDispose]();
      await killed(body, [target], 2 + random.below(15));
      await using journal = await open(target);
      const left = await recordsOf(journal, "a");
      if (left.length > 500 && left.length < 20_001) inTheMiddle += 1;
      expect(left.length).toBeGreaterThanOrEqual(500);
      expect((await journal.get(uid("a")))?.keptSeq ?? 20_001).toBe(left.length);
      expect(await isSound(journal, uid("a"))).toBe(true);
      expect(await sweep({ journal, clock: systemClock, retentionMs: 0 })).toEqual({ reclaimed: 0, kept: 1 });
      expect((await recordsOf(journal, "a")).length).toBe(500);
      expect(await recordsOf(journal, "b")).toEqual(shared);
    }
    expect(inTheMiddle).toBeGreaterThan(0);
  });
});
