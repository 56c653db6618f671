import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { command } from "../../e2e/support/command.ts";
import { TemporaryFolder } from "../testing/temporary-folder.ts";
import { harnessNameOf } from "./harness-project.ts";

/** A project as `holdfast init` writes it, run as its README says. */

const ROOT = join(import.meta.dirname, "..", "..");

describe("holdfast init", () => {
  it("writes a harness that works: a turn of it runs, and replays", async () => {
    using folder = new TemporaryFolder();
    const made = await command(["init", "My Agent"], { cwd: folder.path });
    expect(made).toMatchObject({ exitCode: 0, stderr: "" });
    expect(made.stdout).toContain('npx holdfast exec --harness my-agent --model echo --input "hello"');
    const cwd = join(folder.path, "My Agent");
    // What npm would have installed.
    mkdirSync(join(cwd, "node_modules"));
    symlinkSync(ROOT, join(cwd, "node_modules", "holdfast"), "dir");
    const options = { cwd, env: { HOLDFAST_SERVER: "embedded", HOLDFAST_CONFIG: "holdfast.json" } };
    const turn = await command(["exec", "--harness", "my-agent", "--model", "echo", "--input", "hello"], options);
    expect(turn).toMatchObject({ exitCode: 0, stderr: "" });
    expect(turn.stdout).toMatch(/OUTPUT +echo:hello\n[^]*OUTPUT +The model said 10 characters\.\n[^]*END +COMPLETED/);
    const uid = /session (\S+)/.exec(turn.stdout)?.[1] ?? "";
    expect(await command(["replay", uid, "--check"], options)).toMatchObject({ exitCode: 0 });
  });

  it("writes one in Python that says how it is run", async () => {
    using folder = new TemporaryFolder();
    const made = await command(["init", "snake", "--python", "--json"], { cwd: folder.path });
    expect(JSON.parse(made.stdout)).toMatchObject({
      harness: "snake",
      files: expect.arrayContaining(["agent.py", "README.md"]) as string[],
    });
    expect(readFileSync(join(folder.path, "snake", "agent.py"), "utf8")).toContain('Harness(id="snake", version="1")');
    expect(readFileSync(join(folder.path, "snake", "README.md"), "utf8")).toContain("npx holdfast serve --config holdfast.json");
  });

  it("replaces nothing", async () => {
    using folder = new TemporaryFolder();
    writeFileSync(join(folder.path, "harness.ts"), "mine");
    const refused = await command(["init", "."], { cwd: folder.path });
    expect(refused).toMatchObject({ exitCode: 4, stderr: expect.stringContaining("DIR: has harness.ts already") as string });
    expect(readFileSync(join(folder.path, "harness.ts"), "utf8")).toBe("mine");
    expect(await command(["init", "harness.ts"], { cwd: folder.path })).toMatchObject({ exitCode: 2 });
  });

  it("names the harness as the folder is called, as far as a name can be", () => {
    expect(["My Agent", "agent_7", "--", "echo", "é", "x".repeat(80)].map(harnessNameOf)).toEqual([
      "my-agent",
      "agent-7",
      "agent",
      "agent",
      "agent",
      "x".repeat(63),
    ]);
  });
});
