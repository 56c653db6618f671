import { describe, expect, it } from "vitest";
import { run } from "./run.ts";

function node(script: string): string[] {
  return ["node", "--input-type=module", "--eval", script];
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe("a command that is run", () => {
  it("brings its exit code and everything it said", async () => {
    expect(await run(node('console.log("one"); console.error("two"); process.exitCode = 3;'))).toEqual({
      exitCode: 3,
      output: "one\ntwo\n",
      timedOut: false,
    });
  });

  it("runs on the repository's Node and reads nothing", async () => {
    const script = 'process.stdin.resume().on("end", () => console.log(process.version));';
    expect((await run(node(script))).output.trim()).toBe(process.version);
  });

  it("sees variables that are added and not those that are taken away", async () => {
    process.env["HOLDFAST_TAKEN"] = "1";
    const script = "console.log(process.env.HOLDFAST_ADDED, process.env.HOLDFAST_TAKEN);";
    const { output } = await run(node(script), { env: { HOLDFAST_ADDED: "2", HOLDFAST_TAKEN: undefined } });
    delete process.env["HOLDFAST_TAKEN"];
    expect(output).toBe("2 undefined\n");
  });

  it("fails when it cannot be started", async () => {
    const { exitCode, output } = await run(["no-such-command-here"]);
    expect(exitCode).toBe(1);
    expect(output).toContain("no-such-command-here");
  });

  it("is ended at its time limit, with what it started", async () => {
    const script =
      'import { spawn } from "node:child_process";' +
      'const child = spawn(process.execPath, ["--eval", "setInterval(() => undefined, 1000)"], { stdio: "ignore" });' +
      "console.log(child.pid); setInterval(() => undefined, 1000);";
    const { exitCode, output, timedOut } = await run(node(script), { timeoutMs: 2_000 });
    expect({ exitCode, timedOut }).toEqual({ exitCode: 1, timedOut: true });
    const pid = Number(output.split("\n")[0]);
    expect(pid).toBeGreaterThan(0);
    await expect.poll(() => isAlive(pid)).toBe(false);
  });
});
