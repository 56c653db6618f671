import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { command, start } from "../../e2e/support/command.ts";
import { SILENT_LOG } from "../base/ports.ts";
import { createClient, type Client } from "../client/index.ts";
import { createNodeTransport } from "../client/node/index.ts";
import { startServer, type RunningServer } from "../server/index.ts";
import { TemporaryFolder } from "../testing/temporary-folder.ts";
import { createProgram } from "./program.ts";

/** Every other command through a real process against a real server. */

const MAIN = join(import.meta.dirname, "main.ts");
const TOKEN = "a-token-of-this-test";
let server: RunningServer;
let client: Client;
/** A session with one echo turn of `hello`: six records. */
let uid: string;

beforeAll(async () => {
  const config = { listen: { host: "127.0.0.1", port: 0 }, store: { kind: "memory" }, token: TOKEN } as const;
  server = await startServer(config, { log: SILENT_LOG });
  client = createClient({ transport: createNodeTransport({ address: server.url, token: TOKEN }) });
  const turn = client.sessions.exec({ inputs: "hello" });
  await turn.finish();
  uid = turn.sessionUid ?? "";
});
afterAll(async () => {
  await client[Symbol.asyncDispose]();
  await server.shutdown({ graceMs: 0 });
});

const env = (): Record<string, string> => ({ HOLDFAST_SERVER: server.url, HOLDFAST_TOKEN: TOKEN });
const ask = (...args: string[]) => command(args, { env: env() });
const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g;

describe("holdfast create, get, list, cancel, delete", () => {
  it("make, show, list, and delete a session", async () => {
    const flags = [
      "--name",
      "n",
      "--project",
      "p1",
      "--label",
      "a=b",
      "--annotation",
      "note=two words",
      "--harness",
      "chat",
      "--model",
      "m",
    ];
    const made = await ask("create", ...flags);
    const own = made.stdout.trim().replace("session ", "");
    expect([made.exitCode, own]).toEqual([0, expect.stringMatching(/^[0-9a-f-]{36}$/)]);

    const got = await ask("get", own);
    expect(got.stdout.replaceAll(TIME, "TIME")).toBe(`session     ${own}
name        n
project     p1
state       pending
last seq    0
harness     chat
model       m
created     TIME
updated     TIME
identity    token  by holdfast
label       a=b
annotation  note=two words
`);
    const listed = await ask("list", "--project", "p1");
    expect(listed.stdout.replaceAll(TIME, "2026-01-01T00:00:00Z"))
      .toBe(`SESSION                               STATE    SEQ  CREATED               HARNESS  NAME
${own}  pending  0    2026-01-01T00:00:00Z  chat     n
`);
    expect((await ask("cancel", own)).stdout).toBe(`session ${own}  pending  last seq 0\n`);
    const gone = `session ${own}  deleted  last seq 1\n`;
    expect([(await ask("delete", own)).stdout, (await ask("delete", own)).stdout]).toEqual([gone, gone]);
    expect((await ask("list", "--project", "p1")).stdout).toBe("SESSION  STATE  SEQ  CREATED  HARNESS  NAME\n");
    for (const name of ["create", "exec"]) expect((await ask(name, "--harness", "unknown")).exitCode).toBe(2);
  });

  it("give a new session an identity", async () => {
    const flags = ["--principal", "alice", "--principal-issuer", "https://idp.example", "--subject", "ticket-7", "--json"];
    const identity = { principal: "alice", issuer: "https://idp.example", subject: "ticket-7" };
    expect(JSON.parse((await ask("create", ...flags)).stdout)).toMatchObject({ identity });
    const ran = await ask("exec", "--input", "hello", ...flags);
    expect(JSON.parse(ran.stdout.split("\n")[0]!)).toMatchObject({ session: { identity } });
    for (const wrong of [
      ["--subject", "s"],
      ["--principal", ""],
    ]) {
      expect(await ask("create", ...wrong)).toMatchObject({
        exitCode: 2,
        stderr: expect.stringContaining("--principal: must name") as string,
      });
    }
    const refused = await ask("exec", "--session", uid, "--principal", "alice");
    expect([refused.exitCode, refused.stderr]).toEqual([2, "holdfast: --principal: is for a new session; leave it out with --session\n"]);
  });

  it("print the Session as proto3 JSON with --json, one on each line", async () => {
    const got = JSON.parse((await ask("get", uid, "--json")).stdout) as object;
    expect(got).toMatchObject({ metadata: { uid }, last_seq: "6", exec_state: "EXEC_COMPLETED" });
    await client.sessions.create({ project: "p2", name: "one" });
    await client.sessions.create({ project: "p2", name: "two" });
    const names = async (...flags: string[]): Promise<string[]> => {
      const lines = (await ask("list", "--project", "p2", "--json", ...flags)).stdout.trim().split("\n");
      return lines.map((line) => (JSON.parse(line) as { metadata: { name: string } }).metadata.name);
    };
    expect((await names()).toSorted()).toEqual(["one", "two"]);
    expect(await names("--limit", "0")).toHaveLength(2);
    expect(await names("--limit", "1")).toHaveLength(1);
  });
});

describe("holdfast replay and verify", () => {
  it("print a range of records, for a person or as the export format", async () => {
    expect((await ask("replay", uid, "--from", "2", "--to", "4")).stdout).toBe(`    2  INPUT             hello
    3  MODEL_CALL        echo  sha256 2611c24a…
    4  OUTPUT            echo:hello
`);
    const [first, ...others] = (await ask("replay", uid, "--json")).stdout.trim().split("\n");
    expect(JSON.parse(first!)).toMatchObject({ seq: "1", fence: "1", event: { kind: "EVENT_EXECUTION_START", schema_version: 1 } });
    expect(others).toHaveLength(5);
    expect((await ask("replay", uid, "--from", "7")).stdout).toBe("");
  });

  it("verify a session, and an export without a server, to the same head", async () => {
    using folder = new TemporaryFolder();
    const file = join(folder.path, "journal.jsonl");
    const exported = (await ask("replay", uid, "--json")).stdout;
    writeFileSync(file, exported);
    const byServer = await ask("verify", uid);
    const alone = { env: { HOLDFAST_SERVER: "127.0.0.1:1" } };
    expect(byServer.stdout).toMatch(/^intact {2}6 records {2}head 6 {2}sha256 [0-9a-f]{64}\n$/);
    expect(await command(["verify", file], alone)).toEqual({ exitCode: 0, stdout: byServer.stdout, stderr: "" });
    expect(await command(["verify", "-"], { ...alone, stdin: exported })).toEqual({ exitCode: 0, stdout: byServer.stdout, stderr: "" });
    const json = JSON.parse((await command(["verify", file, "--json"], alone)).stdout) as object;
    expect(json).toEqual(JSON.parse((await ask("verify", uid, "--json")).stdout));
  });

  it.each([
    [
      "an altered text",
      (lines: string[]) => lines.map((line) => line.replace("echo:hello", "echo:hullo")),
      "at seq 4  its content is not what was hashed",
    ],
    ["a removed record", (lines: string[]) => lines.toSpliced(2, 1), "at seq 3  the seq is not the next one"],
    ["a swapped pair", (lines: string[]) => [lines[1]!, lines[0]!, ...lines.slice(2)], "at seq 1  the seq is not the next one"],
    ["a line that is no record", (lines: string[]) => lines.with(1, "{}}"), "at seq 2  it cannot be read"],
    [
      "a field of nobody's",
      (lines: string[]) => lines.map((line) => line.replace('"seq":"2"', '"seq":"2","x":1')),
      "at seq 2  it cannot be read",
    ],
  ])("find %s in an export, and exit with 1", async (_, tamper, finding) => {
    const lines = (await ask("replay", uid, "--json")).stdout.trim().split("\n");
    const verified = await command(["verify", "-"], { stdin: tamper(lines).join("\n") });
    expect([verified.exitCode, verified.stdout.split("\n")[0]]).toEqual([1, `broken  ${finding}`]);
    const asJson = await command(["verify", "-", "--json"], { stdin: tamper(lines).join("\n") });
    expect([asJson.exitCode, JSON.parse(asJson.stdout)]).toMatchObject([
      1,
      { intact: false, fault: { kind: expect.any(String) as string } },
    ]);
  });

  it("say when there is nothing to verify", async () => {
    expect((await command(["verify", "-"], { stdin: "\n" })).exitCode).toBe(2);
    expect(await command(["verify", "--file", "no-such-file"])).toMatchObject({
      exitCode: 2,
      stderr: "holdfast: FILE: must be a file that can be read\n",
    });
    for (const target of ["nosuch.jsonl", "folder/nosuch"]) {
      expect(await ask("verify", target)).toEqual({
        exitCode: 3,
        stdout: "",
        stderr: "holdfast: uid-or-file: there is no such file, and no such session\n",
      });
    }
  });
});

describe("an error", () => {
  it("is one line on standard error, with its own exit code and nothing on standard output", async () => {
    for (const name of ["get", "replay", "verify", "tail", "cancel", "delete"]) {
      const failed = await ask(name, "nobody");
      expect([name, failed.exitCode, failed.stdout]).toEqual([name, 3, ""]);
      expect(failed.stderr).toMatch(/^holdfast: [a-z]+: .+\n$/);
    }
  });

  it("is one JSON object with --json, also for wrong usage", async () => {
    const failed = await ask("get", "nobody", "--json");
    expect(JSON.parse(failed.stderr)).toMatchObject({ error: { code: "not_found", field: "uid", exit_code: 3 } });
    const wrong = await ask("list", "--limit", "many", "--json");
    expect([wrong.exitCode, JSON.parse(wrong.stderr)]).toMatchObject([2, { error: { code: "invalid_argument", exit_code: 2 } }]);
  });

  it("says what to do about a server that does not answer, or wants a token", async () => {
    const unreachable = await command(["list", "--server", "127.0.0.1:1"]);
    expect(unreachable).toEqual({
      exitCode: 5,
      stdout: "",
      stderr:
        "holdfast: the server cannot be reached, or it closed the connection\n" +
        "is a server running at 127.0.0.1:1? start one with: holdfast serve\n",
    });
    const stranger = await command(["list"], { env: { HOLDFAST_SERVER: server.url } });
    expect([stranger.exitCode, stranger.stderr]).toEqual([6, expect.stringContaining("HOLDFAST_TOKEN_FILE")]);
  });

  it("of the address names it", async () => {
    expect(await command(["list", "--server", "ftp://x"])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(/^holdfast: address: must be/),
    });
  });

  it.each([
    [["exec", "--colour"], "unknown option '--colour'", "usage: holdfast exec [options]"],
    [["get"], "missing required argument 'uid'", "usage: holdfast get [options] <uid>"],
    [["tail", "u", "--until", "dawn"], "Allowed choices are head, idle", "usage: holdfast tail [options] <uid>"],
    [["exec", "--deadline", "30"], "It must be a number and a unit", "usage: holdfast exec [options]"],
    [["exec", "--deadline", "99999999999999d"], "It must be at most 36500d", "usage: holdfast exec [options]"],
    [["exec", "--config", "a", "--config-file", "b"], "cannot be used with", "usage: holdfast exec [options]"],
    [["get", "a", "b"], "too many arguments", "usage: holdfast get [options] <uid>"],
    [["exec", "hello"], 'an input goes with --input: holdfast exec --input "hello"', "usage: holdfast exec [options]"],
    [["sessions"], "unknown command 'sessions'\ndid you mean: holdfast list\n", "usage: holdfast [options] [command]"],
    [["lst"], "Did you mean list?", "usage: holdfast [options] [command]"],
  ])("of usage: %j says what is wrong and how it is used, with exit code 2", async (args, wrong, usage) => {
    const failed = await command(args);
    expect([failed.exitCode, failed.stdout]).toEqual([2, ""]);
    expect(failed.stderr).toContain(wrong);
    expect(failed.stderr).toContain(usage);
  });

  it("of a current folder that was removed is one line, where that folder is needed", async () => {
    using folder = new TemporaryFolder();
    const script = `mkdir "$0/gone" && cd "$0/gone" && rmdir "$0/gone" && exec "$@"`;
    const run = (...args: string[]) => {
      const { status, stderr } = spawnSync("sh", ["-c", script, folder.path, process.execPath, MAIN, ...args], { encoding: "utf8" });
      return [status, stderr];
    };
    const told = [2, "holdfast: current folder: must be there, and was removed; change to another one\n"];
    expect(run("create", "--server", "embedded")).toEqual(told);
    expect(run("serve", "--listen", "127.0.0.1:0")).toEqual(told);
    expect(run("version")).toEqual([0, ""]);
  });

  it("is none when the reader of the output has enough", async () => {
    const endless = start(["tail", uid], { env: env() });
    await endless.said("END");
    endless.child.stdout.destroy();
    await client.session(uid).exec({ inputs: "more" }).finish();
    expect(await endless.result).toMatchObject({ exitCode: 141, stderr: expect.not.stringContaining("EPIPE") });
  });
});

describe("the token", () => {
  it("comes from a file that the environment names, too", async () => {
    using folder = new TemporaryFolder();
    const file = join(folder.path, "token");
    writeFileSync(file, `${TOKEN}\n`, { mode: 0o600 });
    expect((await command(["get", uid], { env: { HOLDFAST_SERVER: server.url, HOLDFAST_TOKEN_FILE: file } })).exitCode).toBe(0);
  });

  it("is no argument of any command", () => {
    const options = createProgram().commands.flatMap((each) => each.options.map((option) => option.long));
    expect(options).not.toContain("--token");
    expect(options).toContain("--server");
  });
});

describe("help", () => {
  it("explains exit codes, environment and commands, with examples, on standard output", async () => {
    const help = await command(["--help"]);
    expect([help.exitCode, help.stderr]).toEqual([0, ""]);
    expect(help.stdout).toContain("Exit codes:\n    0  done; for exec and resume, the turn completed");
    expect(help.stdout).toContain("HOLDFAST_TOKEN_FILE");
    const exec = await command(["exec", "--help"]);
    expect([exec.exitCode, exec.stdout]).toEqual([0, expect.stringContaining("Examples:\n  # a turn in a new session\n")]);
  });

  it("comes without arguments too, on standard error, as wrong usage", async () => {
    const nothing = await command([]);
    expect([nothing.exitCode, nothing.stdout]).toEqual([2, ""]);
    expect(nothing.stderr).toContain("Commands:");
  });

  it("says the version", async () => {
    expect((await command(["version"])).stdout).toMatch(/^holdfast \d+\.\d+\.\d+ \(node \d+\.\d+\.\d+\)\n$/);
    expect(JSON.parse((await command(["version", "--json"])).stdout)).toHaveProperty("version");
    expect((await command(["--version"])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it("and the version come by their short names too, of every command", async () => {
    const help = await command(["get", "--help"]);
    expect(await command(["get", "-h"])).toEqual(help);
    expect(help.stdout).toContain("-h, --help");
    expect(help.stdout).not.toContain("--version");
    const version = await command(["--version"]);
    for (const args of [["-v"], ["-V"], ["get", "-v"], ["get", "-V"], ["get", "--version"]])
      expect([args, await command(args)]).toEqual([args, version]);
    expect((await command(["-h"])).stdout).toBe((await command(["--help"])).stdout);
  });
});
