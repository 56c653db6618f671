import { execFile, execFileSync, spawn } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { cryptoRandom, systemClock } from "../../node/index.ts";
import { ComputeState, type BlobStore, type Runtime } from "../../spi/index.ts";
import { createMemoryBlobStore, openFileBlobStore } from "../../stores/blobs/index.ts";
import { forwardingBlobs } from "../../testing/forwarding-blobs.ts";
import { bundleProgram, type BundledProgram } from "../../testing/harness-programs/bundle.ts";
import { drive, isAlive, saidBy, until } from "../../testing/harness-programs/driving.ts";
import { bound, count, spec } from "../../testing/runtime-conformance/fixtures.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { createGvisorRuntime, whyNoGvisor, type GvisorRuntimeOptions } from "./index.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const PYTHON = join(ROOT, "sdks/python/.venv/bin/python");
const ports = { clock: systemClock, random: cryptoRandom };
const run = promisify(execFile);

const why = await whyNoGvisor({ ports, blobs: createMemoryBlobStore(ports) });
if (why !== undefined) process.stderr.write(`skipped: the gvisor runtime's tests, since ${why}\n`);
const hasPython = existsSync(PYTHON);
if (!hasPython) process.stderr.write("skipped: the gvisor runtime's tests of Python, since the Python SDK is not installed\n");

let bundle: BundledProgram;
let folder: TemporaryFolder;
const open: Runtime[] = [];

beforeAll(async () => {
  bundle = await bundleProgram("program.ts");
  folder = new TemporaryFolder("disk");
});

afterAll(() => {
  bundle[Symbol.dispose]();
  folder[Symbol.dispose]();
});

afterEach(async () => {
  for (const runtime of open.splice(0)) await runtime[Symbol.asyncDispose]();
  if (readdirSync(folder.path).length > 0) throw new Error("a runtime that was closed left a folder");
});

async function world(options: Partial<GvisorRuntimeOptions> = {}, how: readonly string[] = []) {
  const lines: string[] = [];
  const runtime = await createGvisorRuntime({
    command: process.execPath,
    args: [bundle.file, ...how],
    cwd: bundle.folder,
    blobs: createMemoryBlobStore(ports),
    folder: folder.path,
    ports,
    log: { log: (level, message, fields) => void lines.push(`${level} ${message} ${JSON.stringify(fields)}`) },
    ...options,
  });
  open.push(runtime);
  const start = async (uid = "session") => {
    const incarnation = await runtime.create(spec(uid));
    return { incarnation, harness: await runtime.attach(incarnation) };
  };
  return { runtime, lines, start };
}

const errorOf = (promise: Promise<unknown>): Promise<{ code: string; message: string; cause?: unknown; details?: unknown }> =>
  promise.then(
    () => ({ code: "none", message: "" }),
    (error: unknown) => error as { code: string; message: string },
  );

/** What the only runtime in the folder has: its containers as runsc tells, and what is in its folders. */
function left() {
  const [name = ""] = readdirSync(folder.path);
  const path = join(folder.path, name);
  const containers = execFileSync("runsc", [`--root=${path}/state`, "list", "-quiet"], { encoding: "utf8" })
    .split("\n")
    .filter(Boolean);
  return { containers, bundles: readdirSync(join(path, "bundles")), images: readdirSync(join(path, "images")) };
}

/** What `look` says that it found. */
interface Seen {
  readonly reached: boolean;
  readonly written: readonly string[];
  readonly readable: readonly string[];
  readonly processes: number;
}

const NOTHING = { containers: [], bundles: [], images: [] };

/** The process that the only sandbox in the folder is. */
function sandboxPid(): number {
  const [name = ""] = readdirSync(folder.path);
  const bundles = join(folder.path, name, "bundles");
  return Number(readFileSync(join(bundles, readdirSync(bundles)[0] ?? "", "pid"), "utf8"));
}

/** A runsc that does something else for one command. */
function otherRunsc(command: string, shell: string): { readonly file: string } & Disposable {
  const place = new TemporaryFolder("disk");
  const file = join(place.path, "runsc");
  writeFileSync(
    file,
    `#!/bin/sh\ncase " $* " in *" ${command} "*) ${shell} ;; esac\nexec /usr/bin/env -S PATH=/usr/bin:/bin:/usr/local/bin runsc "$@"\n`,
  );
  chmodSync(file, 0o755);
  return { file, [Symbol.dispose]: () => place[Symbol.dispose]() };
}

describe.runIf(why === undefined)("a harness under gVisor", () => {
  it("runs turns in a sandbox that reaches and writes nothing of the host", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const secret = new TemporaryFolder("disk");
    writeFileSync(join(secret.path, "secret"), "secret");
    try {
      const { start } = await world({ env: { GIVEN: "1" } });
      const { harness } = await start();
      const own = `/tmp/${basename(secret.path)}-own`;
      const question = {
        port: (server.address() as AddressInfo).port,
        write: [own, "/x", "/usr/x", join(bundle.folder, "x"), join(secret.path, "x")],
        read: [bundle.file, join(secret.path, "secret"), "/etc/passwd", "/etc/shadow"],
      };
      const seen = JSON.parse(await saidBy(harness, `look ${JSON.stringify(question)}`)) as Seen;
      expect(seen).toMatchObject({ reached: false, written: [own], readable: [bundle.file] });
      expect(seen.processes).toBeLessThan(6);
      const { env, cwd } = JSON.parse(await saidBy(harness, "environment")) as { env: string[]; cwd: string };
      expect(cwd).toBe(bundle.folder);
      // The rest is the shell's and runsc's own.
      const given = env.filter((name) => !["PWD", "OLDPWD", "_", "HOME"].includes(name));
      expect(given).toEqual(["GIVEN", "HOLDFAST_HARNESS_LISTEN", "PATH"]);
      expect(existsSync(own)).toBe(false);
    } finally {
      server.close();
      secret[Symbol.dispose]();
    }
  });

  it("goes on after a rest in storage as it was: its memory, its files, its line with frames of every size", async () => {
    const { runtime, start } = await world();
    const { incarnation, harness } = await start();
    expect(await saidBy(harness, "count")).toBe("count 1");
    expect(await saidBy(harness, "fill /tmp/kept 1")).toBe("filled");
    const before = await runtime.checkpoint!(incarnation);
    // The same harness goes on, and the one that is restored.
    expect(await saidBy(harness, "count")).toBe("count 2");
    await runtime.stop(incarnation);
    expect(left()).toEqual(NOTHING);
    const again = await runtime.restore(before, bound("session"));
    const restored = await runtime.attach(again);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(await saidBy(restored, "count")).toBe("count 2");
    const large = "é".repeat(1_000_000);
    expect(await saidBy(restored, `echo ${large}`)).toBe(large);
    const question = JSON.stringify({ port: 1, write: [], read: ["/tmp/kept"] });
    expect((JSON.parse(await saidBy(restored, `look ${question}`)) as Seen).readable).toEqual(["/tmp/kept"]);
    expect(await saidBy(restored, "chat")).toBe("");
  });

  it("that crashes is told of by its turn, and leaves nothing", async () => {
    const { runtime, start, lines } = await world();
    const { incarnation, harness } = await start();
    expect((await errorOf(drive(harness, "exit-once /tmp/once 3").said)).message).toBe(
      "harness: its sandbox ended with exit code 3; an interrupted turn can be resumed",
    );
    await until(async () => (await runtime.status(incarnation)) === ComputeState.COMPUTE_TERMINATED);
    expect(await errorOf(runtime.attach(incarnation))).toMatchObject({ code: "unavailable" });
    expect(await errorOf(runtime.snapshot(incarnation, "external"))).toMatchObject({ code: "unavailable" });
    expect(left()).toEqual(NOTHING);
    expect(lines.some((line) => line.startsWith("warn a harness's sandbox ended"))).toBe(true);
  });

  it("whose sandbox is killed is told of by its turn, and leaves nothing", async () => {
    const { runtime, start } = await world();
    const { incarnation, harness } = await start();
    const turn = drive(harness, "ignore");
    await turn.speaks;
    const pid = sandboxPid();
    process.kill(pid, "SIGKILL");
    expect(await errorOf(turn.said)).toMatchObject({ code: "unavailable", message: expect.stringContaining("its sandbox") });
    await until(async () => (await runtime.status(incarnation)) === ComputeState.COMPUTE_TERMINATED);
    expect(left()).toEqual(NOTHING);
    expect(isAlive(pid)).toBe(false);
  });

  it("that ends itself, never answers or leaves at once fails its start and leaves nothing", async () => {
    const leaving = await world({}, ["leave", "4"]);
    expect(await errorOf(leaving.start())).toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("ended with exit code 4"),
    });
    expect(left()).toEqual(NOTHING);
    expect(leaving.lines.join()).toContain("it does not like it here");
    await leaving.runtime[Symbol.asyncDispose]();
    const silent = await world({ startTimeoutMs: 1_500 }, ["silent"]);
    expect(await errorOf(silent.start())).toMatchObject({ code: "unavailable", message: expect.stringContaining("within 1500 ms") });
    expect(left()).toEqual(NOTHING);
  });

  it("that ignores its end is killed", async () => {
    const { runtime, start } = await world({ stopGraceMs: 200 }, ["deaf"]);
    const { incarnation } = await start();
    const pid = sandboxPid();
    await runtime.stop(incarnation);
    expect(isAlive(pid)).toBe(false);
    expect(left()).toEqual(NOTHING);
  });

  it("has no more memory than it may: its turn has failed for good", async () => {
    const { start, runtime } = await world({ memoryBytesMax: 256 * 1024 * 1024 });
    const { incarnation, harness } = await start();
    const error = await errorOf(saidBy(harness, "eat 8000"));
    expect(error).toMatchObject({ name: "HarnessFailure", grpcCode: 8, message: expect.stringContaining("memory") });
    await until(async () => (await runtime.status(incarnation)) === ComputeState.COMPUTE_TERMINATED);
    expect(left()).toEqual(NOTHING);
  });

  it("has no more processor time than it may", async () => {
    const { start } = await world({ cpuSecondsMax: 2 });
    const { harness } = await start();
    expect(await errorOf(saidBy(harness, "spin"))).toMatchObject({ code: "unavailable", message: expect.stringContaining("SIGXCPU") });
  });
});

describe.runIf(why === undefined)("a captured memory", () => {
  const counters = [
    ["TypeScript", process.execPath, [join(ROOT, "e2e/support/harness-program.ts"), "counter"]],
    ["Python", PYTHON, [join(ROOT, "examples/python/counter.py")]],
  ] as const;

  it.each(counters.filter(([name]) => name !== "Python" || hasPython))(
    "of an unmodified %s harness goes on in another host process, and in forks, each by itself",
    async (_name, command, args) => {
      using blobs = new TemporaryFolder("disk");
      const program = { command, args, cwd: ROOT, env: { PYTHONPATH: join(ROOT, "sdks/python/src") } };
      const { runtime } = await world({ ...program, blobs: blobsIn(blobs.path) });
      const first = await runtime.create(spec("session"));
      expect([await count(runtime, first), await count(runtime, first)]).toEqual([1, 2]);
      const { externalUri } = await runtime.snapshot(first, "external");
      await runtime[Symbol.asyncDispose]();
      open.splice(0);
      const { stdout } = await run(
        process.execPath,
        ["--input-type=module", "-e", elsewhere({ program, blobs: blobs.path, externalUri })],
        { cwd: ROOT },
      );
      expect(JSON.parse(stdout)).toEqual({ restored: [3, 4], forks: [3, 3, 3], on: [4, 4, 4] });
    },
  );

  it("is refused where it was taken with another runsc, command or program, and that is said", async () => {
    const blobs = createMemoryBlobStore(ports);
    const { runtime, start } = await world({ blobs });
    const snapshot = await runtime.snapshot((await start()).incarnation, "external");
    using runsc = otherRunsc("--version", "echo 'runsc version 0.0~other'; exit 0");
    const cases = [
      [{ runsc: runsc.file }, /runsc .*, and this host has 0\.0~other/],
      [{ args: [bundle.file, "serve", "more"] }, /another command/],
      [{ command: "/usr/bin/env" }, /another command/],
      [{ platform: "kvm" }, /the gVisor platform default, and this host uses kvm/],
    ] as const;
    for (const [options, message] of cases) {
      const other = await world({ blobs, ...options });
      expect(await errorOf(other.runtime.restore(snapshot, bound("session")))).toMatchObject({
        code: "failed_precondition",
        message: expect.stringMatching(message),
      });
    }
  });

  it("that is damaged, or gone in part, is DATA_LOSS and leaves nothing", async () => {
    const blobs = createMemoryBlobStore(ports);
    const lost = forwardingBlobs(blobs, {
      get: async (ref) => (((await blobs.get(ref))?.length ?? 0) > 100_000 ? undefined : blobs.get(ref)),
    });
    const { runtime, start } = await world({ blobs: lost });
    const snapshot = await runtime.snapshot((await start()).incarnation, "external");
    expect(await errorOf(runtime.restore(snapshot, bound("session")))).toMatchObject({ code: "data_loss" });
    expect(await errorOf(runtime.fork(snapshot, bound("child")))).toMatchObject({ code: "data_loss" });
    expect(left()).toEqual(NOTHING);
  });

  it("that runsc does not bring back is refused and leaves nothing", async () => {
    const blobs = createMemoryBlobStore(ports);
    using runsc = otherRunsc("restore", "echo 'no such memory' >&2; exit 128");
    const { runtime, start } = await world({ blobs, runsc: runsc.file });
    const snapshot = await runtime.snapshot((await start()).incarnation, "external");
    const error = await errorOf(runtime.restore(snapshot, bound("session")));
    expect(error).toMatchObject({ code: "failed_precondition", message: expect.stringContaining("runsc did not bring it back") });
    expect(left()).toEqual(NOTHING);
  });

  it("that cannot be taken, or cannot be stored, costs the session nothing", async () => {
    using runsc = otherRunsc("checkpoint", `[ -e "$0.fails" ] && { echo 'no room' >&2; exit 128; }`);
    const blobs = createMemoryBlobStore(ports);
    let isFull = false;
    const full = forwardingBlobs(blobs, {
      put: async (bytes) => {
        if (isFull) throw new Error("full");
        return blobs.put(bytes);
      },
    });
    const { runtime, start } = await world({ blobs: full, runsc: runsc.file });
    const { incarnation } = await start();
    expect(await count(runtime, incarnation)).toBe(1);
    writeFileSync(`${runsc.file}.fails`, "");
    expect(await errorOf(runtime.checkpoint!(incarnation))).toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("checkpoint failed"),
    });
    expect(await count(runtime, incarnation)).toBe(2);
    execFileSync("rm", [`${runsc.file}.fails`]);
    isFull = true;
    expect(await errorOf(runtime.snapshot(incarnation, "external"))).toMatchObject({ message: "full" });
    expect(await count(runtime, incarnation)).toBe(3);
    isFull = false;
    const snapshot = await runtime.snapshot(incarnation, "external");
    expect(left()).toEqual(NOTHING);
    expect(await count(runtime, await runtime.restore(snapshot, bound("session")))).toBe(4);
  });

  it("that can neither be stored nor brought back leaves nothing", async () => {
    using runsc = otherRunsc("restore", "echo 'no such memory' >&2; exit 128");
    const full = forwardingBlobs(createMemoryBlobStore(ports), {
      put: async () => {
        throw new Error("full");
      },
    });
    const { runtime, start } = await world({ blobs: full, runsc: runsc.file });
    const { incarnation } = await start();
    expect(await errorOf(runtime.snapshot(incarnation, "external"))).toMatchObject({
      message: expect.stringContaining("runsc did not bring it back"),
    });
    expect(await runtime.status(incarnation)).toBe(ComputeState.COMPUTE_TERMINATED);
    expect(left()).toEqual(NOTHING);
  });
});

describe.runIf(why === undefined)("a host that was killed", () => {
  it("takes its sandboxes with it, deaf ones too; the next one clears up", async () => {
    const options = { command: process.execPath, args: [bundle.file, "deaf"], cwd: bundle.folder, folder: folder.path };
    const host = spawn(process.execPath, ["--input-type=module", "-e", holding(options)], {
      cwd: ROOT,
      stdio: ["ignore", "pipe", "inherit"],
    });
    await new Promise((resolve) => host.stdout.once("data", resolve));
    const pid = sandboxPid();
    expect(isAlive(pid)).toBe(true);
    const reaped = new Promise((resolve) => host.once("exit", resolve));
    host.kill("SIGKILL");
    await reaped;
    await until(() => !isAlive(pid));
    const before = readdirSync(folder.path);
    expect(before).toHaveLength(1);
    await world();
    expect(readdirSync(folder.path)).not.toContain(before[0]);
  });
});

function blobsIn(path: string): BlobStore {
  return openFileBlobStore({ folder: path, ...ports });
}

const IMPORTS = `
  import { createGvisorRuntime } from "./src/runtimes/gvisor/index.ts";
  import { cryptoRandom, systemClock } from "./src/node/index.ts";
  import { createMemoryBlobStore, openFileBlobStore } from "./src/stores/blobs/index.ts";
  import { bound, count, spec } from "./src/testing/runtime-conformance/fixtures.ts";
  const ports = { clock: systemClock, random: cryptoRandom };
`;

/** Another host: restores the session, and forks three children of the same snapshot. */
function elsewhere(given: object): string {
  return `${IMPORTS}
    const { program, blobs, externalUri } = ${JSON.stringify(given)};
    const runtime = await createGvisorRuntime({ ...program, ports, blobs: openFileBlobStore({ folder: blobs, ...ports }) });
    const snapshot = { $typeName: "agentsessions.v1.SnapshotRef", local: "", externalUri, memory: true, sealed: false };
    const session = await runtime.restore(snapshot, bound("session"));
    const restored = [await count(runtime, session), await count(runtime, session)];
    const children = await Promise.all(["a", "b", "c"].map((name) => runtime.fork(snapshot, bound(name))));
    const forks = await Promise.all(children.map((child) => count(runtime, child)));
    const on = await Promise.all(children.map((child) => count(runtime, child)));
    await runtime[Symbol.asyncDispose]();
    console.log(JSON.stringify({ restored, forks, on }));`;
}

/** A host that has a sandbox, and waits to be killed. */
function holding(options: object): string {
  return `${IMPORTS}
    const runtime = await createGvisorRuntime({ ...${JSON.stringify(options)}, ports, blobs: createMemoryBlobStore(ports) });
    await runtime.create(spec("session"));
    console.log("it lives");
    setInterval(() => undefined, 60_000);`;
}
