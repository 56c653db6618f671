import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { command, start, type CommandResult, type RunningCommand } from "../../e2e/support/command.ts";
import { TemporaryFolder } from "../testing/temporary-folder.ts";

/** The harness commands against a server process of their own. */

interface Serving extends RunningCommand {
  /** Host and port of the operator's port. */
  readonly operator: string;
  /** Host and port for sessions. */
  readonly address: string;
}

async function serve(folder: string, args: readonly string[] = [], env: Record<string, string> = {}): Promise<Serving> {
  const running = start(["serve", "--listen", "127.0.0.1:0", "--data", folder, ...args], { env });
  let log = "";
  running.child.stderr.on("data", (text: string) => (log += text));
  await running.said("holdfast is listening on");
  await running.said("serving the operator", "stderr");
  const portOf = (message: string): string => new RegExp(`"message":"${message}".*?"port":(\\d+)`).exec(log)?.[1] ?? "";
  return { ...running, operator: `127.0.0.1:${portOf("serving the operator")}`, address: `127.0.0.1:${portOf("serving")}` };
}

async function end({ child, result }: RunningCommand): Promise<CommandResult> {
  child.kill("SIGTERM");
  return result;
}

const ADDRESS = "unix:///run/coder.sock";

describe("the harness commands", () => {
  it("register, show, list and retire, and find everything again after a kill", async () => {
    using folder = new TemporaryFolder();
    const first = await serve(folder.path);
    const harness = (operator: string, ...args: string[]) => command(["harness", ...args], { env: { HOLDFAST_OPERATOR: operator } });
    const registered = await harness(first.operator, "register", "coder", "--address", ADDRESS, "--descriptor-id", "coder", "--fork-safe");
    expect(registered).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^harness coder {2}created {2}sha256:[0-9a-f]{64}\n$/) });
    const again = await harness(
      first.operator,
      "register",
      "coder",
      "--address",
      ADDRESS,
      "--descriptor-id",
      "coder",
      "--fork-safe",
      "--json",
    );
    expect(JSON.parse(again.stdout)).toMatchObject({
      outcome: "REGISTER_OUTCOME_UNCHANGED",
      harness: {
        metadata: { name: "coder" },
        spec: { remote: { address: ADDRESS }, descriptor_id: "coder", capabilities: { fork_safe: true } },
      },
    });
    const other = await harness(first.operator, "register", "coder", "--address", "127.0.0.1:7000");
    expect([other.exitCode, other.stdout]).toEqual([4, ""]);
    expect(other.stderr).toMatch(/^holdfast: name: another spec is registered/);
    const big = await harness(first.operator, "register", "big", "--address", "127.0.0.1:7000", "--requires-memory-snapshot");
    expect(big).toMatchObject({ exitCode: 0, stderr: expect.stringContaining("it cannot be served: it keeps state in memory") as string });
    const retired = await harness(first.operator, "retire", "big", "--reason", "too big");
    expect(retired).toMatchObject({ exitCode: 0, stdout: "harness big  retired  too big\n" });
    first.child.kill("SIGKILL");
    await first.result;

    const second = await serve(folder.path);
    const list = await harness(second.operator, "list");
    expect(list.stdout.split("\n").map((line) => line.split(/ {2,}/).slice(0, 3).join(" "))).toEqual([
      "NAME SOURCE STATE",
      "agent static active",
      "chat static active",
      "coder registered active",
      "echo static active",
      "history static active",
      "",
    ]);
    const all = await harness(second.operator, "list", "--include-retired", "--json");
    const names = all.stdout
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { metadata: { name: string } }).metadata.name);
    expect(names).toEqual(["agent", "big", "chat", "coder", "echo", "history"]);
    const shown = await harness(second.operator, "get", "big");
    expect(shown.stdout).toMatch(/^harness {5}big\n/);
    expect(shown.stdout).toMatch(/^needs {7}memory snapshots$/m);
    expect(shown.stdout).toMatch(/^because {5}too big$/m);
    expect((await harness(second.operator, "get", "echo", "--observe")).stdout).toMatch(/^observed {4}echo; version /m);
    expect((await harness(second.operator, "get", "nobody")).exitCode).toBe(3);
    await end(second);
  });

  it("speak to the operator's port alone, with the operator's token", async () => {
    using folder = new TemporaryFolder();
    const file = join(folder.path, "operator-token");
    writeFileSync(file, "operator\n");
    const config = join(folder.path, "holdfast.json");
    writeFileSync(config, JSON.stringify({ data: "data", registry: { tokenFile: "operator-token" } }));
    const server = await serve(join(folder.path, "data"), ["--config", config], { HOLDFAST_TOKEN: "session" });
    const list = (operator: string, env: Record<string, string> = {}) => command(["harness", "list", "--operator", operator], { env });
    expect(await list(server.operator, { HOLDFAST_OPERATOR_TOKEN_FILE: file })).toMatchObject({ exitCode: 0, stderr: "" });
    for (const env of [{}, { HOLDFAST_TOKEN: "session" }, { HOLDFAST_OPERATOR_TOKEN: "session" }]) {
      const refused = await list(server.operator, env);
      expect([refused.exitCode, refused.stderr]).toEqual([6, expect.stringContaining("HOLDFAST_OPERATOR_TOKEN")]);
    }
    const sessions = await list(server.address, { HOLDFAST_OPERATOR_TOKEN: "session" });
    expect([sessions.exitCode, sessions.stderr]).toEqual([1, expect.stringContaining("is a port for sessions")]);
    const nobody = await list("127.0.0.1:1");
    expect([nobody.exitCode, nobody.stderr]).toEqual([5, expect.stringContaining("is the operator's port at 127.0.0.1:1?")]);
    await end(server);
  });

  it("say how they are used, and serve says what is wrong in its config file", async () => {
    const wrong = await command(["harness", "register", "coder"]);
    expect([wrong.exitCode, wrong.stdout]).toEqual([2, ""]);
    expect(wrong.stderr).toContain("required option '--address <address>' not specified");
    expect(wrong.stderr).toContain("usage: holdfast harness register [options] <name>\nmore:  holdfast harness register --help\n");
    const help = await command(["harness", "retire", "--help"]);
    expect(help).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("--reason <text>") as string });
    using folder = new TemporaryFolder();
    const config = join(folder.path, "holdfast.json");
    writeFileSync(config, JSON.stringify({ store: "memory", listen: "127.0.0.1:0", harnesses: { coder: { runtime: "docker" } } }));
    const refused = await command(["serve", "--config", config, "--log-level", "error"]);
    expect(refused).toMatchObject({
      exitCode: 2,
      stdout: "",
      stderr: "holdfast: harnesses.coder.runtime: must be process, remote, quickjs or gvisor\n",
    });
  });
});
