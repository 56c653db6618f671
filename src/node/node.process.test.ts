import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";

/** What a process of its own writes when it runs `body` as a module. */
function run(body: string): { readonly stdout: string; readonly stderr: string } {
  return spawnSync(process.execPath, ["--input-type=module", "-e", body], { encoding: "utf8" });
}

const index = JSON.stringify(new URL("./index.ts", import.meta.url).href);

describe("systemClock in a process", () => {
  it("keeps it alive with `sleep` and not with `after`", () => {
    const clock = `import { systemClock } from ${index};`;
    expect(run(`${clock} systemClock.after(60_000, () => console.log("late"));`).stdout).toBe("");
    expect(run(`${clock} void systemClock.sleep(30).then(() => console.log("slept"));`).stdout).toBe("slept\n");
  });
});

describe("createJsonLog in a process", () => {
  it("writes to standard error by default", () => {
    const log = `import { createJsonLog, systemClock } from ${index};`;
    const { stdout, stderr } = run(`${log} createJsonLog({ clock: systemClock }).log("info", "hi");`);
    expect(stdout).toBe("");
    expect(JSON.parse(stderr)).toMatchObject({ level: "info", message: "hi" });
  });
});
