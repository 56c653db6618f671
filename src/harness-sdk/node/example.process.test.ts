import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { command, start } from "../../../e2e/support/command.ts";
import { startModelServer } from "../../testing/model-server.ts";
import { openAiChunk, openAiEnd } from "../../testing/model-streams.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";

/** The example in `examples/typescript`, as it stands there, run by a server of its own with a model that does as it is told. */

const ROOT = join(import.meta.dirname, "..", "..", "..");

function projectIn(folder: TemporaryFolder): string {
  const project = join(folder.path, "graph");
  cpSync(join(ROOT, "examples", "typescript"), project, { recursive: true });
  // What npm would have installed.
  mkdirSync(join(project, "node_modules"));
  symlinkSync(ROOT, join(project, "node_modules", "holdfast"), "dir");
  return project;
}

/** A completion that calls the tool. */
function calling(args: string) {
  const call = { index: 0, id: "call-1", type: "function", function: { name: "add", arguments: args } };
  return {
    kind: "stream",
    steps: [openAiChunk({ role: "assistant", content: null, tool_calls: [call] }), ...openAiEnd("tool_calls")],
  } as const;
}

describe("the graph in TypeScript", () => {
  it("is typed", () => {
    using folder = new TemporaryFolder();
    const tsc = join(ROOT, "node_modules", ".bin", "tsc");
    expect(() => execFileSync(tsc, ["-p", projectIn(folder)], { stdio: "pipe", encoding: "utf8" })).not.toThrow();
  });

  it("asks the model, runs its tool, and asks again; killed between, it goes on where it was", async () => {
    using folder = new TemporaryFolder();
    const cwd = projectIn(folder);
    await using models = await startModelServer();
    const env = {
      HOLDFAST_SERVER: "embedded",
      HOLDFAST_CONFIG: "holdfast.json",
      OPENAI_BASE_URL: models.openAiBaseUrl,
      OPENAI_API_KEY: "sk-test",
    };
    models.script(calling('{"a":19,"b":23}'), { kind: "silence" });
    const running = start(["exec", "--harness", "graph", "--model", "gpt-x", "--input", "What is 19 and 23?"], { cwd, env });
    await models.request(1);
    running.child.kill("SIGKILL");
    const killed = await running.result;
    const uid = /session (\S+)/.exec(killed.stdout)?.[1] ?? "";
    const resumed = await command(["resume", uid], { cwd, env });
    expect([resumed.exitCode, resumed.stderr]).toEqual([0, ""]);
    const replayed = await command(["replay", uid], { cwd, env });
    const kinds = [...replayed.stdout.matchAll(/^ +\d+ {2}([A-Z_]+)/gm)].map(([, kind]) => kind);
    const effects = ["MODEL_CALL", "OUTPUT", "USAGE", "TOOL_RESULT", "MODEL_CALL", "OUTPUT", "USAGE"];
    expect(kinds).toEqual(["EXECUTION_START", "INPUT", ...effects, "END"]);
    // The first call was not made again; the second was given the tool's result.
    expect(models.requests.length).toBe(3);
    expect(JSON.stringify(models.requests.at(-1)?.json)).toContain('{\\"sum\\":42}');
    expect(await command(["replay", uid, "--check"], { cwd, env })).toMatchObject({ exitCode: 0 });
    expect(models.requests.length).toBe(3);
    // The next turn has the whole conversation.
    const next = await command(["exec", "--session", uid, "--input", "Thanks."], { cwd, env });
    expect(next.exitCode).toBe(0);
    expect(JSON.stringify(models.requests.at(-1)?.json)).toContain("19 and 23");
  });
});
