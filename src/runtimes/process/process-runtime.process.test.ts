import { spawn } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { fenceOf, sessionUidOf, type LogFields } from "../../base/index.ts";
import { ComputeState, type Incarnation, type Runtime } from "../../spi/index.ts";
import { cryptoRandom, systemClock } from "../../node/index.ts";
import { bundleProgram, type BundledProgram } from "../../testing/harness-programs/bundle.ts";
import { drive, isAlive, saidBy, stateOfProcess, until } from "../../testing/harness-programs/driving.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { createProcessRuntime, type ProcessRuntimeOptions } from "./index.ts";

let program = "";
let bundle: BundledProgram;

interface Line {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields | undefined;
}

const open: Runtime[] = [];

function world(options: Partial<ProcessRuntimeOptions> = {}, how: readonly string[] = []) {
  const lines: Line[] = [];
  const runtime = createProcessRuntime({
    command: process.execPath,
    args: [program, ...how],
    cwd: process.cwd(),
    ports: { clock: systemClock, random: cryptoRandom },
    log: { log: (level, message, fields) => void lines.push({ level, message, fields }) },
    ...options,
  });
  open.push(runtime);
  const start = async (uid = "session") => {
    const incarnation = await runtime.create({ sessionUid: sessionUidOf(uid), harness: "test", fence: fenceOf(1) });
    return { incarnation, harness: await runtime.attach(incarnation), pid: Number(incarnation.worker) };
  };
  const endLine = () => lines.find(({ message }) => message.startsWith("a harness's process"));
  return { runtime, lines, start, endLine };
}

beforeAll(async () => {
  bundle = await bundleProgram("program.ts");
  program = bundle.file;
});

afterAll(() => bundle[Symbol.dispose]());

afterEach(async () => {
  for (const runtime of open.splice(0)) await runtime[Symbol.asyncDispose]();
});

const errorOf = (promise: Promise<unknown>): Promise<{ code: string; message: string }> =>
  promise.then(
    () => ({ code: "none", message: "" }),
    (error: unknown) => error as { code: string; message: string },
  );

const socketFolders = (): string[] => readdirSync(tmpdir()).filter((name) => /^holdfast-[A-Za-z0-9]{6}$/.test(name));

const stateOf = (runtime: Runtime, incarnation: Incarnation) => runtime.status(incarnation);

describe("a harness in a process of its own", () => {
  it("describes itself, of a child that is gone afterwards", async () => {
    const { runtime, endLine } = world();
    expect(await runtime.describe()).toMatchObject({ id: "behaving", version: "1" });
    const pid = Number(endLine()?.fields?.["pid"]);
    expect(pid).toBeGreaterThan(0);
    expect(stateOfProcess(pid)).toBeUndefined();
  });

  it("runs turns one after the other in the same process, and is told of nothing but what is listed", async () => {
    const { start } = world({ env: { HARNESS_VERSION: "2" }, inheritEnv: ["HOME", "NO_SUCH_NAME"], cwd: "/" });
    const { harness } = await start();
    expect(await harness.describe()).toMatchObject({ version: "2" });
    expect(await saidBy(harness, "count")).toBe("count 1");
    expect(await saidBy(harness, "count")).toBe("count 2");
    expect(JSON.parse(await saidBy(harness, "environment"))).toMatchObject({
      env: ["HARNESS_VERSION", "HOLDFAST_HARNESS_LISTEN", ...(process.env["HOME"] === undefined ? [] : ["HOME"]), "PATH"],
      cwd: "/",
    });
  });

  it("is found in PATH by its name", async () => {
    const { runtime } = world({ command: "node", env: { PATH: process.execPath.replace(/\/node$/, "") } });
    expect(await runtime.describe()).toMatchObject({ id: "behaving" });
  });

  it("is live, and terminated once it was stopped; nothing of it is left", async () => {
    const { runtime, start, endLine } = world();
    const { incarnation, harness, pid } = await start();
    const offspring = Number(await saidBy(harness, "offspring"));
    expect(await stateOf(runtime, incarnation)).toBe(ComputeState.COMPUTE_LIVE);
    await runtime.stop(incarnation);
    await runtime.stop(incarnation);
    expect(await stateOf(runtime, incarnation)).toBe(ComputeState.COMPUTE_TERMINATED);
    expect(stateOfProcess(pid)).toBeUndefined();
    await until(() => !isAlive(offspring));
    expect((await errorOf(runtime.attach(incarnation))).code).toBe("unavailable");
    expect(endLine()?.level).toBe("debug");
  });

  it("is killed where it does not leave when it is told to", async () => {
    const { runtime, start, endLine } = world({ stopGraceMs: 100 }, ["deaf"]);
    const { incarnation, pid } = await start();
    await runtime.stop(incarnation);
    expect(stateOfProcess(pid)).toBeUndefined();
    expect(endLine()?.fields).toMatchObject({ signal: "SIGKILL" });
  });

  it("is paused by a local snapshot, and goes on where it was", async () => {
    const { runtime, start } = world();
    const { incarnation, harness, pid } = await start();
    expect(await saidBy(harness, "count")).toBe("count 1");
    const snapshot = await runtime.snapshot(incarnation, "local");
    expect(snapshot).toMatchObject({ local: "session", memory: false });
    expect(await stateOf(runtime, incarnation)).toBe(ComputeState.COMPUTE_WARM);
    await until(() => stateOfProcess(pid) === "T");
    expect(await saidBy(await runtime.attach(incarnation), "count")).toBe("count 2");
    expect(await stateOf(runtime, incarnation)).toBe(ComputeState.COMPUTE_LIVE);
  });

  it("is stopped while it is paused", async () => {
    const { runtime, start } = world();
    const { incarnation, pid } = await start();
    await runtime.snapshot(incarnation, "local");
    await runtime.stop(incarnation);
    expect(stateOfProcess(pid)).toBeUndefined();
  });

  it("is freed by an external snapshot; the session starts afresh, and so does a fork of it", async () => {
    const { runtime, start } = world();
    const { incarnation, harness, pid } = await start();
    expect(await saidBy(harness, "count")).toBe("count 1");
    const snapshot = await runtime.snapshot(incarnation, "external");
    expect(stateOfProcess(pid)).toBeUndefined();
    expect(runtime.capabilities()).toMatchObject({ memorySnapshot: false });
    for (const again of ["restore", "fork"] as const) {
      const restored = await runtime[again](snapshot, { sessionUid: sessionUidOf("other"), fence: fenceOf(7) });
      expect(restored).toMatchObject({ sessionUid: "other", fence: 7, runtime: "process" });
      expect(await saidBy(await runtime.attach(restored), "count")).toBe("count 1");
    }
  });

  it("is not captured during a turn", async () => {
    const { runtime, start } = world();
    const { incarnation, harness } = await start();
    const turn = drive(harness, "wait");
    await turn.speaks;
    for (const kind of ["local", "external"] as const) {
      expect((await errorOf(runtime.snapshot(incarnation, kind))).code).toBe("aborted");
    }
    turn.cancel();
    await expect(turn.said).rejects.toThrow("cancelled");
  });

  it("lives beside a hundred others, each with a memory of its own; none is left of them", { timeout: 110_000 }, async () => {
    const { runtime, start } = world({ startTimeoutMs: 100_000 });
    const started = await Promise.all(Array.from({ length: 100 }, (_, index) => start(`session-${index}`)));
    const turns = await Promise.all(
      started.map(async ({ harness }, index) => {
        for (let turn = 0; turn <= index % 3; turn++) await saidBy(harness, "count");
        return saidBy(harness, "count");
      }),
    );
    expect(turns).toEqual(started.map((_, index) => `count ${(index % 3) + 2}`));
    await runtime[Symbol.asyncDispose]();
    expect(started.filter(({ pid }) => stateOfProcess(pid) !== undefined)).toEqual([]);
  });
});

describe("a process that does not do as it should", () => {
  it("interrupts the turn with its exit code, and is terminated", async () => {
    using folder = new TemporaryFolder();
    const { runtime, start } = world();
    const { incarnation, harness, pid } = await start();
    const error = await errorOf(saidBy(harness, `exit-once ${folder.path}/left 3`));
    expect(error).toMatchObject({ code: "unavailable", message: expect.stringContaining("its process ended with exit code 3") as string });
    expect(await stateOf(runtime, incarnation)).toBe(ComputeState.COMPUTE_TERMINATED);
    expect(stateOfProcess(pid)).toBeUndefined();
    expect((await errorOf(runtime.snapshot(incarnation, "local"))).code).toBe("unavailable");
  });

  it.each(["SIGKILL", "SIGSEGV", "SIGTERM"])("interrupts the turn with the signal that ended it: %s", async (signal) => {
    const { start } = world();
    const { harness } = await start();
    expect((await errorOf(saidBy(harness, `kill ${signal}`))).message).toContain(`was ended by the signal ${signal}`);
  });

  it("is seen to be gone while nothing runs", async () => {
    const { runtime, start } = world();
    const { incarnation, pid } = await start();
    process.kill(pid, "SIGKILL");
    await until(async () => (await stateOf(runtime, incarnation)) === ComputeState.COMPUTE_TERMINATED);
    expect((await errorOf(runtime.attach(incarnation))).code).toBe("unavailable");
  });

  it.each(["spin", "ignore"])("is killed where it does not leave a turn that was cancelled: %s", async (word) => {
    const { runtime, start } = world({ limits: { cancelGraceMs: 200 }, stopGraceMs: 200 });
    const { incarnation, harness, pid } = await start();
    const turn = drive(harness, word);
    await turn.speaks;
    turn.cancel();
    await expect(turn.said).rejects.toThrow("cancelled");
    expect(await stateOf(runtime, incarnation)).toBe(ComputeState.COMPUTE_TERMINATED);
    await until(() => stateOfProcess(pid) === undefined);
  });

  it("keeps living where it leaves a cancelled turn in time", async () => {
    const { runtime, start } = world();
    const { incarnation, harness } = await start();
    const turn = drive(harness, "wait");
    await turn.speaks;
    turn.cancel();
    await expect(turn.said).rejects.toThrow("cancelled");
    expect(await stateOf(runtime, incarnation)).toBe(ComputeState.COMPUTE_LIVE);
    expect(await saidBy(harness, "echo still here")).toBe("still here");
  });

  it("fails its turn for good where it says so", async () => {
    const { start } = world();
    const { harness } = await start();
    await expect(saidBy(harness, "fail")).rejects.toMatchObject({ name: "HarnessFailure", message: "it cannot be done" });
  });

  it("has what it wrote to standard error in the log where its turn threw: once, with the turn", async () => {
    const { start, runtime, lines } = world();
    const { incarnation, harness } = await start();
    const thrown = () => lines.filter(({ message }) => message.startsWith("what a harness that threw"));
    await expect(saidBy(harness, "throw the first")).rejects.toThrow("boom");
    await until(() => thrown().length === 1);
    expect(thrown()[0]).toMatchObject({ level: "warn", fields: { stderr: "the first\n", execution: expect.any(String) as string } });
    // Stopped before it was told of, which waits for the end then.
    await expect(saidBy(harness, "throw the second")).rejects.toThrow("boom");
    await runtime.stop(incarnation);
    expect(thrown().map(({ fields }) => fields?.["stderr"])).toEqual(["the first\n", "the second\n"]);
  });

  it("has its standard error read, bounded, in the log and nowhere else", async () => {
    const { start, runtime, endLine } = world({ stderrBytesMax: 4_096 });
    const { incarnation, harness } = await start();
    expect(await saidBy(harness, "flood 8")).toBe("flooded");
    const turn = drive(harness, "kill SIGKILL");
    const error = await errorOf(turn.said);
    await runtime.stop(incarnation);
    await until(() => endLine() !== undefined);
    const { level, fields } = endLine() ?? {};
    const stderr = String(fields?.["stderr"]);
    expect(level).toBe("warn");
    expect(stderr.endsWith("the last line\n")).toBe(true);
    expect(stderr.length).toBeLessThanOrEqual(4_096);
    expect(error.message).not.toContain("line\n");
  });

  it("is stopped where it closes its end of the line", async () => {
    const { runtime } = world({}, ["mute"]);
    expect((await errorOf(runtime.describe())).code).toBe("unavailable");
  });

  it("is refused where it says something else than the harness wire, to a session and to who asks what it is", async () => {
    const { runtime, start, endLine } = world({}, ["http"]);
    const refused = { name: "HoldfastError", code: "failed_precondition", message: expect.stringContaining("harness wire: ") as string };
    expect(await errorOf(start())).toMatchObject(refused);
    expect(await errorOf(runtime.describe())).toMatchObject(refused);
    expect(stateOfProcess(Number(endLine()?.fields?.["pid"]))).toBeUndefined();
  });

  it("is stopped where it does not answer in time", async () => {
    const { runtime, endLine } = world({ startTimeoutMs: 300 }, ["silent"]);
    const error = await errorOf(runtime.describe());
    expect(error).toMatchObject({ code: "unavailable", message: expect.stringContaining("did not answer") as string });
    expect(stateOfProcess(Number(endLine()?.fields?.["pid"]))).toBeUndefined();
  });

  it("is not started for a caller that gives up", async () => {
    const { runtime, endLine } = world({}, ["silent"]);
    const abort = new AbortController();
    const started = runtime.create({ sessionUid: sessionUidOf("session"), harness: "test", fence: fenceOf(1) }, { signal: abort.signal });
    setTimeout(() => abort.abort(new Error("enough")), 100);
    await expect(started).rejects.toThrow("enough");
    expect(stateOfProcess(Number(endLine()?.fields?.["pid"]))).toBeUndefined();
  });

  it("tells its exit code where it leaves at once, and the log its words", async () => {
    const { runtime, endLine } = world({}, ["leave", "42"]);
    expect((await errorOf(runtime.describe())).message).toContain("ended with exit code 42");
    expect(endLine()?.fields).toMatchObject({ code: 42, stderr: "it does not like it here\n" });
  });

  it("is refused where it cannot be started", async () => {
    const absent = await errorOf(world({ command: "no-such-program-here" }).runtime.describe());
    expect(absent).toMatchObject({ code: "failed_precondition", message: expect.stringContaining("no program on this host") as string });
    const nowhere = await errorOf(world({ cwd: "/no/such/folder" }).runtime.describe());
    expect(nowhere).toMatchObject({ code: "failed_precondition", message: expect.stringContaining("working directory") as string });
    expect(() => world({ command: "" })).toThrow("command:");
    expect(() => world({ env: { "A=B": "c" } })).toThrow("env:");
    expect(() => world({ cpuSecondsMax: 0.5 })).toThrow("cpu_seconds_max:");
  });
});

describe.each(["serve", "contract"])("a process that listens on a unix socket: %s", (how) => {
  const overUnix = () => world({ line: "unix", stopGraceMs: 500 }, [how]);

  it("runs turns, is paused and goes on, and leaves no socket behind", async () => {
    const before = socketFolders();
    const { runtime, start } = overUnix();
    const { incarnation, harness, pid } = await start();
    expect(await harness.describe()).toMatchObject({ id: "behaving" });
    expect(await saidBy(harness, "count")).toBe("count 1");
    expect(await saidBy(harness, "chat")).toBe("");
    const [folder = ""] = socketFolders().filter((name) => !before.includes(name));
    expect(statSync(join(tmpdir(), folder)).mode & 0o777).toBe(0o700);
    await runtime.snapshot(incarnation, "local");
    await until(() => stateOfProcess(pid) === "T");
    expect(await saidBy(await runtime.attach(incarnation), "count")).toBe("count 2");
    await runtime.stop(incarnation);
    expect(stateOfProcess(pid)).toBeUndefined();
    expect(socketFolders()).not.toContain(folder);
  });

  it("interrupts the turn when it ends, and has its output in the log", async () => {
    const { runtime, start, endLine } = overUnix();
    const { incarnation, harness } = await start();
    expect((await errorOf(saidBy(harness, "kill SIGKILL"))).code).toBe("unavailable");
    await until(() => endLine() !== undefined);
    expect(endLine()?.fields).toMatchObject({ signal: "SIGKILL", stderr: expect.stringContaining("unix://") as string });
    expect(await stateOf(runtime, incarnation)).toBe(ComputeState.COMPUTE_TERMINATED);
  });

  it("is killed where it does not leave a turn that was cancelled", async () => {
    const { start } = world({ line: "unix", limits: { cancelGraceMs: 200 }, stopGraceMs: 200 }, [how]);
    const { harness, pid } = await start();
    const turn = drive(harness, "spin");
    await turn.speaks;
    turn.cancel();
    await expect(turn.said).rejects.toThrow("cancelled");
    await until(() => stateOfProcess(pid) === undefined);
  });

  it("is stopped where it never listens", async () => {
    const { runtime } = world({ line: "unix", startTimeoutMs: 300 }, ["silent"]);
    expect(await errorOf(runtime.describe())).toMatchObject({ message: expect.stringContaining("did not answer") as string });
    const { runtime: leaving } = world({ line: "unix" }, ["leave", "5"]);
    expect((await errorOf(leaving.describe())).message).toContain("exit code 5");
  });
});

describe("the limits of a process", () => {
  const MIB = 1024 * 1024;

  it("refuse it more memory than it may take", async () => {
    const { start } = world({ memoryBytesMax: 900 * MIB });
    const { harness } = await start();
    expect(await saidBy(harness, "eat 10")).toBe("ate 10");
    expect((await errorOf(saidBy(harness, "eat 500"))).message).toMatch(/allocate memory|exit code|signal/);
    const { harness: unlimited } = await world().start();
    expect(await saidBy(unlimited, "eat 500")).toBe("ate 500");
  });

  it("end one that uses more processor time than it may", async () => {
    const { start } = world({ cpuSecondsMax: 2 });
    const { harness } = await start();
    expect((await errorOf(saidBy(harness, "spin"))).message).toContain("used all the processor time");
  });
});

describe("the end of the host", () => {
  it.each([
    ["serve", "stdio"],
    ["deaf", "stdio"],
    ["deaf", "unix"],
  ])("is the end of its children and their sockets, also of one that does not care: %s over %s", async (how, line) => {
    const before = socketFolders();
    const hostProgram = `
      import { createProcessRuntime } from ${JSON.stringify(new URL("./index.ts", import.meta.url).href)};
      import { cryptoRandom, systemClock } from ${JSON.stringify(new URL("../../node/index.ts", import.meta.url).href)};
      const runtime = createProcessRuntime({
        command: process.execPath, args: ${JSON.stringify([program, how])}, cwd: "/", line: ${JSON.stringify(line)},
        ports: { clock: systemClock, random: cryptoRandom },
      });
      const children = [];
      for (const sessionUid of ["a", "b"]) children.push(await runtime.create({ sessionUid, harness: "test", fence: 1 }));
      await runtime.snapshot(children[1], "local");
      console.log(children.map(({ worker }) => worker).join(" "));
      setInterval(() => undefined, 60_000);
    `;
    const host = spawn(process.execPath, ["--input-type=module", "-e", hostProgram], { stdio: ["ignore", "pipe", "inherit"] });
    const pids = await new Promise<number[]>((resolve) => {
      host.stdout.once("data", (chunk: Buffer) => resolve(chunk.toString().trim().split(" ").map(Number)));
    });
    expect(pids.map(isAlive)).toEqual([true, true]);
    const made = socketFolders().filter((name) => !before.includes(name));
    if (line === "unix") expect(made.length).toBeGreaterThanOrEqual(2);
    host.kill("SIGKILL");
    await until(() => !pids.some(isAlive));
    await until(() => !socketFolders().some((name) => made.includes(name)));
  });
});
