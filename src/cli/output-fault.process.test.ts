import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { TemporaryFolder } from "../testing/temporary-folder.ts";

/** Output that cannot be written, in real processes: a device that is always full, and a pipe that nobody reads. */

const MAIN = join(import.meta.dirname, "main.ts");
const FULL = "/dev/full";
const NO_SPACE = "standard output: it cannot be written: there is no space left where it goes";

interface Streams {
  readonly stdout?: "full" | "closed";
  readonly stderr?: "full" | "closed";
}

/** Starts a command of which the named streams cannot be written; the others are read. */
function start(args: readonly string[], streams: Streams, env: Readonly<Record<string, string>> = {}) {
  const full = openSync(FULL, "w");
  const kindOf = (stream: "full" | "closed" | undefined) => (stream === "full" ? full : "pipe");
  const child = spawn(process.execPath, [MAIN, ...args], {
    stdio: ["ignore", kindOf(streams.stdout), kindOf(streams.stderr)],
    env: { ...process.env, NO_COLOR: "1", HOLDFAST_STORE: "memory", HOLDFAST_REGISTRY_LISTEN: "off", ...env },
  });
  closeSync(full);
  onTestFinished(() => void child.kill("SIGKILL"));
  const written = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    if (streams[name] === "closed") child[name]?.destroy();
    else child[name]?.setEncoding("utf8").on("data", (text: string) => (written[name] += text));
  }
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  return { child, written, result: ended.then((exitCode) => ({ exitCode, ...written })) };
}

/** Resolves once a server answers on a port. */
async function answers(port: number, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    try {
      if ((await fetch(`http://127.0.0.1:${port}/healthz`)).ok) return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  throw new Error("the server ended");
}

/** A port that is free now. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

describe.skipIf(!existsSync(FULL))("output that cannot be written", () => {
  it.each<Streams>([{ stderr: "full" }, { stdout: "full" }, { stdout: "full", stderr: "full" }, { stdout: "closed", stderr: "closed" }])(
    "ends no server: %j",
    async (streams) => {
      const port = await freePort();
      const server = start(["serve", "--listen", `127.0.0.1:${port}`, "--log-level", "debug"], streams);
      const { child, result } = server;
      await answers(port, () => child.exitCode !== null);
      const env = { HOLDFAST_SERVER: `http://127.0.0.1:${port}` };
      // Its first line of the log is lost by now, and the line that says where it listens.
      expect(await start(["exec", "--input", "hello"], {}, env).result).toMatchObject({ exitCode: 0 });
      child.kill("SIGTERM");
      expect((await result).exitCode).toBe(0);
    },
  );

  it.each([[["version"]], [["--help"]], [["list"]], [["exec", "--input", "hello"]], [["get", "--help"]]])(
    "is one line on standard error and exit code 5: holdfast %j",
    async (args) => {
      const env = { HOLDFAST_SERVER: "embedded" };
      expect(await start(args, { stdout: "full" }, env).result).toEqual({ exitCode: 5, stdout: "", stderr: `holdfast: ${NO_SPACE}\n` });
    },
  );

  it("is one JSON object with --json", async () => {
    const { exitCode, stderr } = await start(["version", "--json"], { stdout: "full" }).result;
    expect([exitCode, JSON.parse(stderr)]).toEqual([5, { error: { code: "resource_exhausted", message: NO_SPACE, exit_code: 5 } }]);
  });

  it("does not change what a command is worth when only standard error is lost", async () => {
    const { exitCode, stdout } = await start(["version"], { stderr: "full" }).result;
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^holdfast \d/)]);
    for (const stderr of ["full", "closed"] as const) {
      expect((await start(["nonsense"], { stderr }).result).exitCode).toBe(2);
      expect((await start(["verify", "--file", "no-such-file"], { stderr }).result).exitCode).toBe(2);
      expect((await start(["list"], { stdout: "full", stderr }, { HOLDFAST_SERVER: "embedded" }).result).exitCode).toBe(5);
    }
  });

  it("is told by whichever command writes, and by none that does not", async () => {
    using folder = new TemporaryFolder();
    const env = { HOLDFAST_STORE: "sqlite", HOLDFAST_DATA: join(folder.path, "data"), HOLDFAST_SERVER: "embedded" };
    const { stdout } = await start(["create"], {}, env).result;
    const uid = stdout.trim().replace("session ", "");
    for (const name of ["get", "export", "verify"]) {
      expect([name, await start([name, uid], { stdout: "full" }, env).result]).toMatchObject([name, { exitCode: 5 }]);
    }
    // What says nothing loses nothing.
    expect(await start(["replay", uid], { stdout: "full" }, env).result).toMatchObject({ exitCode: 0, stderr: "" });
  });
});
