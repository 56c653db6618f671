import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { command } from "../../e2e/support/command.ts";
import { builtInHarnesses } from "../server/parts.ts";
import { TemporaryFolder } from "../testing/temporary-folder.ts";
import { harnessNameOf } from "./harness-project.ts";

/** A project as `holdfast init` writes it, run as its README says. */

const ROOT = join(import.meta.dirname, "..", "..");

/** The project's folder, with what npm would have installed. */
function installed(project: string): string {
  mkdirSync(join(project, "node_modules"));
  symlinkSync(ROOT, join(project, "node_modules", "holdfast"), "dir");
  return project;
}

describe("holdfast init", () => {
  it("writes a harness that works: a turn of it runs, and replays", async () => {
    using folder = new TemporaryFolder();
    const made = await command(["init", "My Agent"], { cwd: folder.path });
    expect(made).toMatchObject({ exitCode: 0, stderr: "" });
    expect(made.stdout).toContain('npx holdfast exec --harness my-agent --model echo --input "hello"');
    const cwd = installed(join(folder.path, "My Agent"));
    const options = { cwd, env: { HOLDFAST_SERVER: "embedded", HOLDFAST_CONFIG: "holdfast.json" } };
    const turn = await command(["exec", "--harness", "my-agent", "--model", "echo", "--input", "hello"], options);
    expect(turn).toMatchObject({ exitCode: 0, stderr: "" });
    expect(turn.stdout).toMatch(/OUTPUT +echo:hello\n[^]*OUTPUT +The model said 10 characters\.\n[^]*END +COMPLETED/);
    const uid = /session (\S+)/.exec(turn.stdout)?.[1] ?? "";
    expect(await command(["replay", uid, "--check"], options)).toMatchObject({ exitCode: 0 });
  });

  it("tells in the server's log what the harness throws", async () => {
    using folder = new TemporaryFolder();
    await command(["init", "thrower"], { cwd: folder.path });
    const cwd = installed(join(folder.path, "thrower"));
    const file = join(cwd, "harness.ts");
    const code = readFileSync(file, "utf8");
    writeFileSync(file, code.replace("await sink.usage(usage);", 'throw new Error("boom", { cause: usage });'));
    const env = { HOLDFAST_SERVER: "embedded", HOLDFAST_CONFIG: "holdfast.json", HOLDFAST_LOG_LEVEL: "warn" };
    const turn = await command(["exec", "--harness", "thrower", "--model", "echo", "--input", "hello"], { cwd, env });
    expect(turn.exitCode).not.toBe(0);
    expect(turn.stdout).not.toContain("boom");
    const told = turn.stderr.split("\n").find((line) => line.includes("what a harness that threw wrote")) ?? "{}";
    expect(JSON.parse(told)).toMatchObject({ stderr: expect.stringMatching(/Error: boom\n +at .*harness\.ts:/) as string });
  });

  it("depends on the copy that wrote it, and says how to register it beside its config", async () => {
    using folder = new TemporaryFolder();
    await command(["init", "own"], { cwd: folder.path });
    const read = (file: string) => readFileSync(join(folder.path, "own", file), "utf8");
    expect(JSON.parse(read("package.json"))).toMatchObject({ dependencies: { holdfast: `file:${ROOT}` } });
    expect(read("README.md")).toContain("holdfast harness register own-live --address");
    expect(read("README.md")).toContain("npm pack");
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
    const requirement = `holdfast-harness @ ${pathToFileURL(join(ROOT, "sdks", "python")).href}\n`;
    expect(readFileSync(join(folder.path, "snake", "requirements.txt"), "utf8")).toBe(requirement);
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
      "my-agent",
      "my-agent",
      "my-agent",
      "x".repeat(63),
    ]);
  });

  it("never names it as a harness that every server has", () => {
    const builtIn = Object.keys(builtInHarnesses());
    expect(builtIn).toContain("agent");
    expect([...builtIn, "", "___"].map(harnessNameOf).filter((name) => builtIn.includes(name))).toEqual([]);
  });
});
