import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { TemporaryFolder } from "../testing/temporary-folder.ts";

/**
 * A session of 100,000 records (a third of a gigabyte) out of one journal, verified, and into another, in a process of its own that
 * watches its memory: what it holds beside the mapped pages of its journals.
 */

const RECORDS = 100_000;
const TEXT_BYTES = 3_000;
/** Far below the size of the file, so that nobody can have held it. Two journals have page caches of 64 MB each. */
const GROWTH_MB_MAX = 200;

const module = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href);

const PROGRAM = `
import { createReadStream, createWriteStream, readFileSync, statSync } from "node:fs";
import { create } from "@bufbuild/protobuf";
const [{ EventSchema, EventKind }, { openSqliteStore }, archive, { systemClock, nodeDigest, nodeSignatures }] = await Promise.all([
  import(${module("../gen/agentsessions/v1/common_pb.ts")}), import(${module("../stores/sqlite/index.ts")}),
  import(${module("./index.ts")}), import(${module("../node/index.ts")}),
]);
const folder = process.argv[1], records = Number(process.argv[2]), text = "x".repeat(Number(process.argv[3]));
const ports = { clock: systemClock, digest: nodeDigest };
const open = (name) => openSqliteStore({ folder: folder + "/" + name, ...ports, writer: "worker" });
// Anonymous memory: without the pages of files that are mapped, which the system takes back as it likes.
const usedMb = () => {
  try { return Number(/RssAnon:\\s+(\\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1]) / 1024; }
  catch { const { heapUsed, external } = process.memoryUsage(); return (heapUsed + external) / 1e6; }
};
const from = await open("from");
const seed = { uid: "s", project: "", name: "", harness: "h", model: "m", identity: undefined, origin: undefined, labels: {}, annotations: {}, createTimeMs: 1 };
await from.create(seed);
for (let at = 0; at < records; at += 500) {
  const events = Array.from({ length: 500 }, (_, index) => ({ event: create(EventSchema, { executionId: "e", schemaVersion: 1, kind: EventKind.EVENT_OUTPUT,
    body: { case: "message", value: { role: "assistant", parts: [{ part: { case: "text", value: { text: (at + index) + text } } }] } } }) }));
  await from.append({ session: "s", writer: { kind: "hold", fence: 0 }, events });
}
globalThis.gc();
const answer = {};
for (const form of ["binary", "lines"]) {
  globalThis.gc();
  const before = usedMb();
  let peak = before;
  const timer = setInterval(() => { peak = Math.max(peak, usedMb()); }, 10);
  const file = folder + "/" + form;
  const row = await from.get("s");
  const encoder = archive.createArchiveEncoder(form);
  const out = createWriteStream(file);
  for await (const items of archive.exportSessions({ journal: from, ...ports }, { row, family: false })) {
    if (!out.write(encoder.encode(items))) await new Promise((resolve) => out.once("drain", resolve));
  }
  await new Promise((resolve) => out.end(resolve));
  const decoder = new archive.ArchiveDecoder(), verifier = new archive.ArchiveVerifier({ digest: nodeDigest, signatures: nodeSignatures });
  for await (const chunk of createReadStream(file)) for (const item of decoder.push(chunk)) verifier.push(item);
  for (const item of decoder.finish()) verifier.push(item);
  const verdict = verifier.finish();
  const to = await open("to-" + form);
  const report = await archive.importSessions({ journal: to, digest: nodeDigest, signatures: nodeSignatures }, createReadStream(file));
  const { projection } = await to.get("s");
  clearInterval(timer);
  answer[form] = { isIntact: verdict.isIntact, records: verdict.records, added: report.recordsAdded, same: projection.headHash === row.projection.headHash,
    fileMb: statSync(file).size / 1e6, grownMb: peak - before };
  await to[Symbol.asyncDispose]();
}
await from[Symbol.asyncDispose]();
console.log(JSON.stringify(answer));
`;

interface Measured {
  readonly isIntact: boolean;
  readonly records: number;
  readonly added: number;
  readonly same: boolean;
  readonly fileMb: number;
  readonly grownMb: number;
}

describe("a session of 100,000 records", () => {
  it("is exported, verified and imported in a memory that does not know its length", { timeout: 240_000 }, () => {
    using folder = new TemporaryFolder();
    const args = ["--expose-gc", "--input-type=module", "-e", PROGRAM, folder.path, `${RECORDS}`, `${TEXT_BYTES}`];
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
    expect(stderr).toBe("");
    const measured = JSON.parse(stdout) as Readonly<Record<"binary" | "lines", Measured>>;
    for (const form of ["binary", "lines"] as const) {
      const { fileMb, grownMb, ...found } = measured[form];
      expect(found).toEqual({ isIntact: true, records: RECORDS, added: RECORDS, same: true });
      expect(fileMb).toBeGreaterThan(300);
      expect(grownMb, form).toBeLessThan(GROWTH_MB_MAX);
    }
  });
});
