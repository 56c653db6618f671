import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cryptoRandom, systemClock } from "../../node/index.ts";
import { createMemoryBlobStore } from "../../stores/blobs/index.ts";
import { bundleProgram, type BundledProgram } from "../../testing/harness-programs/bundle.ts";
import { saidBy } from "../../testing/harness-programs/driving.ts";
import { bound, spec } from "../../testing/runtime-conformance/fixtures.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { createGvisorRuntime, whyNoGvisor, type GvisorRuntimeOptions } from "./index.ts";

const ports = { clock: systemClock, random: cryptoRandom };
const why = await whyNoGvisor({ ports, blobs: createMemoryBlobStore(ports) });

let bundle: BundledProgram;
let work: TemporaryFolder;
const at = (path: string): string => join(work.path, path);

beforeAll(async () => {
  bundle = await bundleProgram("program.ts");
  work = new TemporaryFolder("disk");
  for (const folder of ["data", "data/within"]) mkdirSync(at(folder));
  for (const file of ["data/journal", "token", "plain"]) writeFileSync(at(file), "secret");
});

afterAll(() => {
  bundle[Symbol.dispose]();
  work[Symbol.dispose]();
});

const runtimeWith = (options: Partial<GvisorRuntimeOptions>) =>
  createGvisorRuntime({
    command: process.execPath,
    args: [bundle.file],
    cwd: work.path,
    readOnly: [bundle.folder],
    blobs: createMemoryBlobStore(ports),
    ports,
    ...options,
  });

describe.runIf(why === undefined)("what is hidden from a sandbox", () => {
  it("is empty in it, before and after it was restored, and a memory is restored only where the same is hidden", async () => {
    const blobs = createMemoryBlobStore(ports);
    await using runtime = await runtimeWith({ blobs, hidden: [at("data"), at("token")] });
    const incarnation = await runtime.create(spec("session"));
    const say = `read ${JSON.stringify(["plain", "token", "data/journal"].map(at))}`;
    expect(JSON.parse(await saidBy(await runtime.attach(incarnation), say))).toEqual(["secret", "", "ENOENT"]);
    const snapshot = await runtime.snapshot(incarnation, "external");
    const restored = await runtime.attach(await runtime.restore(snapshot, bound("session")));
    expect(JSON.parse(await saidBy(restored, say))).toEqual(["secret", "", "ENOENT"]);
    await using seeing = await runtimeWith({ blobs });
    await expect(seeing.restore(snapshot, bound("session"))).rejects.toThrow("visible paths");
  });

  it("is no working directory", async () => {
    for (const cwd of [at("data"), at("data/within")]) {
      await expect(runtimeWith({ cwd, hidden: [at("data")] })).rejects.toThrow("cwd: must not lie in what is hidden");
    }
  });
});
