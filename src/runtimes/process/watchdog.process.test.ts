import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { SILENT_LOG } from "../../base/index.ts";
import { isAlive, until } from "../../testing/harness-programs/driving.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { Watchdog } from "./watchdog.ts";

function group(): number {
  const { pid } = spawn("/bin/sleep", ["600"], { stdio: "ignore", detached: true });
  if (pid === undefined) throw new Error("sleep could not be started");
  return pid;
}

/** Whether the kernel has been told so; the shell does it first of all. */
function ignoresTerm(pid: number): boolean {
  const [, mask = "0"] = /^SigIgn:\s+(\w+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return (BigInt(`0x${mask}`) & (1n << 14n)) !== 0n;
}

describe("the watchdog", () => {
  it("kills at its end the groups that it was not told to forget", async () => {
    const watchdog = new Watchdog(SILENT_LOG);
    const groups = [group(), group(), group(), group()];
    for (const pid of groups) watchdog.watch(pid);
    const [first = 0, second = 0, third = 0, last = 0] = groups;
    watchdog.forget(second);
    watchdog.forget(third);
    const { pid } = watchdog;
    watchdog[Symbol.dispose]();
    await until(() => !isAlive(pid ?? 0));
    await until(() => ![first, last].some(isAlive));
    expect([second, third].map(isAlive)).toEqual([true, true]);
    for (const kept of [second, third]) process.kill(kept, "SIGKILL");
  });

  it("removes at its end the folders that it was not told to forget, whatever they are called", async () => {
    using place = new TemporaryFolder();
    const [first, second, third, last] = ["a b", "gone", " $(touch x) 'q' *", "-rf"].map((name) => join(place.path, name)) as [
      string,
      string,
      string,
      string,
    ];
    const watchdog = new Watchdog(SILENT_LOG);
    for (const folder of [first, second, third, last]) {
      mkdirSync(folder);
      writeFileSync(join(folder, "harness.sock"), "");
      watchdog.watchFolder(folder);
    }
    watchdog.forgetFolder(second);
    const { pid = 0 } = watchdog;
    process.kill(pid, "SIGKILL");
    await until(() => watchdog.pid === undefined);
    const child = group();
    watchdog.watch(child);
    watchdog.forgetFolder(last);
    const again = watchdog.pid ?? 0;
    watchdog[Symbol.dispose]();
    await until(() => !isAlive(again));
    expect(readdirSync(place.path).toSorted()).toEqual(["-rf", "gone"]);
    expect(existsSync(join(last, "harness.sock"))).toBe(true);
    await until(() => !isAlive(child));
  });

  it("is started again with all that it knew where it was killed itself", async () => {
    const lines: string[] = [];
    const watchdog = new Watchdog({ log: (_level, message) => void lines.push(message) });
    const first = group();
    watchdog.watch(first);
    process.kill(watchdog.pid ?? 0, "SIGKILL");
    await until(() => watchdog.pid === undefined);
    expect(lines).toHaveLength(1);
    const second = group();
    watchdog.watch(second);
    watchdog[Symbol.dispose]();
    await until(() => ![first, second].some(isAlive));
  });

  it("does not listen to the signals that end a host", async () => {
    const watchdog = new Watchdog(SILENT_LOG);
    const child = group();
    watchdog.watch(child);
    const { pid = 0 } = watchdog;
    await until(() => ignoresTerm(pid));
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.kill(pid, signal);
    watchdog[Symbol.dispose]();
    await until(() => !isAlive(child));
  });
});
