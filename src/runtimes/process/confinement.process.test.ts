import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { fenceOf, sessionUidOf } from "../../base/index.ts";
import { cryptoRandom, systemClock } from "../../node/index.ts";
import { ComputeState, type Harness, type Runtime } from "../../spi/index.ts";
import { bundleProgram, type BundledProgram } from "../../testing/harness-programs/bundle.ts";
import { drive, isAlive, saidBy, stateOfProcess, until } from "../../testing/harness-programs/driving.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { createProcessRuntime, type ProcessRuntimeOptions } from "./index.ts";
import { findPrograms } from "./programs.ts";
import { processSettings } from "./options.ts";

/** Whether this machine has bubblewrap and lets it work. */
const IS_CONFINABLE = spawnSync("bwrap", ["--unshare-all", "--ro-bind", "/", "/", "true"]).status === 0;

let bundle: BundledProgram;
const open: Runtime[] = [];

beforeAll(async () => {
  bundle = await bundleProgram("program.ts");
});

afterAll(() => bundle[Symbol.dispose]());

afterEach(async () => {
  for (const runtime of open.splice(0)) await runtime[Symbol.asyncDispose]();
});

function runtimeWith(options: Partial<ProcessRuntimeOptions> = {}): Runtime {
  const runtime = createProcessRuntime({
    command: process.execPath,
    args: [bundle.file],
    cwd: bundle.folder,
    confine: true,
    ports: { clock: systemClock, random: cryptoRandom },
    ...options,
  });
  open.push(runtime);
  return runtime;
}

async function started(runtime: Runtime) {
  const incarnation = await runtime.create({ sessionUid: sessionUidOf("session"), harness: "test", fence: fenceOf(1) });
  return { incarnation, harness: await runtime.attach(incarnation), pid: Number(incarnation.worker) };
}

interface Sight {
  readonly reached: boolean;
  readonly written: readonly string[];
  readonly readable: readonly string[];
  readonly processes: number;
}

describe.runIf(IS_CONFINABLE)("a confined process", () => {
  const look = async (
    harness: Harness,
    places: { readonly write: readonly string[]; readonly read: readonly string[] },
  ): Promise<Sight> => {
    const server = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    try {
      return JSON.parse(await saidBy(harness, `look ${JSON.stringify({ port, ...places })}`)) as Sight;
    } finally {
      server.close();
    }
  };

  it("has no network, writes nowhere but into its own /tmp, and sees neither other processes nor other files", async () => {
    using outside = new TemporaryFolder("disk");
    const secret = join(outside.path, "secret");
    writeFileSync(secret, "secret");
    const write = [`${outside.path}/new`, `${bundle.folder}/new`, "/usr/new", "/etc/new", "/new", "/tmp/new"];
    const read = [secret, "/etc/passwd", `/proc/${process.pid}/environ`, bundle.file];
    const { harness } = await started(runtimeWith());
    expect(await look(harness, { write, read })).toEqual({
      reached: false,
      written: ["/tmp/new"],
      readable: [bundle.file],
      processes: expect.toSatisfy((count: number) => count <= 4) as number,
    });
    expect(() => readFileSync("/tmp/new")).toThrow("ENOENT");
  });

  it("would have all of that without confinement", async () => {
    using outside = new TemporaryFolder("disk");
    const secret = join(outside.path, "secret");
    writeFileSync(secret, "secret");
    const { harness } = await started(runtimeWith({ confine: false }));
    const sight = await look(harness, { write: [`${outside.path}/new`], read: [secret] });
    expect(sight).toMatchObject({ reached: true, written: [`${outside.path}/new`], readable: [secret] });
  });

  it("has what it is given beside that", async () => {
    using shared = new TemporaryFolder("disk");
    const [seen, kept] = [join(shared.path, "seen"), join(shared.path, "kept")];
    for (const folder of [seen, kept]) mkdirSync(folder);
    writeFileSync(join(seen, "file"), "seen");
    const { harness } = await started(runtimeWith({ confine: { readOnly: [seen], writable: [kept] } }));
    const sight = await look(harness, { write: [join(seen, "new"), join(kept, "new")], read: [join(seen, "file")] });
    expect(sight).toMatchObject({ written: [join(kept, "new")], readable: [join(seen, "file")] });
    expect(readFileSync(join(kept, "new"), "utf8")).toBe("written");
  });

  it.each(["/tmp", "/dev/shm"])("has a private %s of a bounded size", async (folder) => {
    const { harness } = await started(runtimeWith({ confine: { tmpBytesMax: 2 * 1024 * 1024 } }));
    expect(await saidBy(harness, `fill ${folder}/small 1`)).toBe("filled");
    expect(await saidBy(harness, `fill ${folder}/large 8`)).toBe("ENOSPC");
  });

  it("can write to devices, and to no file among them; nor to the kernel's settings, as root's child neither", async () => {
    const { harness } = await started(runtimeWith());
    // The setting is its own namespace's: where it could be written, nobody would notice.
    const write = ["/dev/null", "/dev/new", "/dev/pts/new", "/dev/shm/new", "/proc/sys/kernel/domainname", "/proc/self/comm"];
    expect(await look(harness, { write, read: [] })).toMatchObject({ written: ["/dev/null", "/dev/shm/new"] });
  });

  it("sees what is hidden as empty, under whatever name it would see it", async () => {
    using world = new TemporaryFolder("disk");
    const work = join(world.path, "work");
    for (const folder of ["work", "work/data", "work/data/blobs", "elsewhere"]) mkdirSync(join(world.path, folder));
    for (const file of ["work/data/journal", "work/data/blobs/ab", "work/token", "work/plain", "elsewhere/key"]) {
      writeFileSync(join(world.path, file), "secret");
    }
    // The folder is known by another name, and a name in it leads to a secret that is seen elsewhere.
    symlinkSync(work, join(world.path, "linked"));
    symlinkSync(join(world.path, "elsewhere/key"), join(work, "key"));
    const hidden = ["linked/data", "work/token", "work/key", "work/missing"].map((path) => join(world.path, path));
    for (const cwd of [work, join(world.path, "linked")]) {
      const confine = { readOnly: [bundle.folder, join(world.path, "elsewhere")] };
      const { harness } = await started(runtimeWith({ cwd, confine, hidden }));
      const at = ["plain", "token", "key", "data/journal", "data/blobs/ab"].map((path) => join(cwd, path));
      const say = JSON.stringify([...at, join(world.path, "elsewhere/key")]);
      expect(JSON.parse(await saidBy(harness, `read ${say}`))).toEqual(["secret", "", "", "ENOENT", "ENOENT", ""]);
      expect(await look(harness, { write: [join(cwd, "data/new")], read: [] })).toMatchObject({ written: [] });
    }
    expect(readFileSync(join(work, "data/blobs/ab"), "utf8")).toBe("secret");
  });

  it("is paused, goes on, and is stopped; nothing of it is left", async () => {
    const runtime = runtimeWith();
    const { incarnation, harness, pid } = await started(runtime);
    expect(await saidBy(harness, "count")).toBe("count 1");
    await runtime.snapshot(incarnation, "local");
    await until(() => stateOfProcess(pid) === "T");
    expect(await runtime.status(incarnation)).toBe(ComputeState.COMPUTE_WARM);
    expect(await saidBy(await runtime.attach(incarnation), "count")).toBe("count 2");
    await runtime.stop(incarnation);
    expect(stateOfProcess(pid)).toBeUndefined();
  });

  it("is killed where it does not leave, and all that it started with it", async () => {
    const runtime = runtimeWith({ stopGraceMs: 200, limits: { cancelGraceMs: 200 } });
    const { harness, pid } = await started(runtime);
    await saidBy(harness, "offspring");
    const inside = await until(() => childrenOf(pid).length > 0).then(() => childrenOf(pid));
    const turn = drive(harness, "spin");
    await turn.speaks;
    turn.cancel();
    await expect(turn.said).rejects.toThrow("cancelled");
    await until(() => stateOfProcess(pid) === undefined);
    expect(inside.length).toBeGreaterThanOrEqual(3);
    await until(() => !inside.some(isAlive));
  });

  it("tells its signal, and keeps its limits", async () => {
    const { harness } = await started(runtimeWith({ cpuSecondsMax: 1 }));
    await expect(saidBy(harness, "spin")).rejects.toThrow("used all the processor time");
    const { harness: another } = await started(runtimeWith());
    await expect(saidBy(another, "kill SIGABRT")).rejects.toThrow("was ended by the signal SIGABRT");
  });

  it("speaks over a unix socket too", async () => {
    const { harness, incarnation } = await started(runtimeWith({ line: "unix" }));
    expect(incarnation.attributes).toEqual({ line: "unix", confined: "true" });
    expect(await saidBy(harness, "echo hello")).toBe("hello");
  });

  it("is refused where a path is given that does not exist", async () => {
    const error = await runtimeWith({ confine: { readOnly: ["/no/such/path"] } })
      .describe()
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "failed_precondition", message: expect.stringContaining("could not confine") as string });
  });
});

describe("confinement", () => {
  const settings = (options: Partial<ProcessRuntimeOptions>) =>
    processSettings(
      { command: process.execPath, cwd: "/tmp", confine: true, ports: { clock: systemClock, random: cryptoRandom }, ...options },
      {},
    );

  it("is refused without bubblewrap, with what to install", () => {
    using nothing = new TemporaryFolder();
    expect(() => findPrograms(settings({}), nothing.path)).toThrow("install the package bubblewrap");
    expect(findPrograms(settings({ confine: false }), nothing.path)).toMatchObject({ bubblewrap: undefined });
  });

  it("is refused for a folder within what is hidden", () => {
    using data = new TemporaryFolder("disk");
    mkdirSync(join(data.path, "within"));
    for (const cwd of [data.path, join(data.path, "within")]) {
      expect(() => settings({ cwd, hidden: [data.path] })).toThrow("cwd: must not lie in what is hidden");
      expect(settings({ cwd, hidden: [data.path], confine: false })).toMatchObject({ cwd });
    }
  });

  it("is refused for the folder that holds everything", () => {
    expect(() => settings({ cwd: "/" })).toThrow("cwd:");
  });
});

/** All processes under one, as the kernel tells them. */
function childrenOf(pid: number): number[] {
  const listed = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
  const children = listed.split(" ").filter(Boolean).map(Number);
  return children.flatMap((child) => [child, ...childrenOf(child)]);
}
