import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { command, start, type CommandOptions, type RunningCommand } from "../../e2e/support/command.ts";
import { startModelServer } from "../testing/model-server.ts";
import { openAiEnd, openAiText } from "../testing/model-streams.ts";
import { TemporaryFolder } from "../testing/temporary-folder.ts";

/** Whole servers as processes: embedded ones, ones that are killed, ones that shut down. */

const uidIn = (text: string): string => /session (\S+)/.exec(text)?.[1] ?? "";

interface Serving extends RunningCommand {
  readonly url: string;
}

/** `holdfast serve` on a port of its own, or on `port`. */
async function serve(folder: string, port = 0): Promise<Serving> {
  const running = start(["serve", "--listen", `127.0.0.1:${port}`, "--data", folder, "--log-level", "error"]);
  let said = "";
  running.child.stdout.on("data", (text: string) => (said += text));
  await running.said("listening on");
  return { ...running, url: /listening on (\S+)/.exec(said)?.[1] ?? "" };
}

function embedded(folder: TemporaryFolder): CommandOptions {
  return { env: { HOLDFAST_SERVER: "embedded", HOLDFAST_DATA: folder.path } };
}

describe("an embedded server", () => {
  it("serves one command after the other over the same data", async () => {
    using folder = new TemporaryFolder();
    const first = await command(["exec", "--input", "hello"], embedded(folder));
    expect(first).toMatchObject({ exitCode: 0, stderr: "" });
    const uid = uidIn(first.stdout);
    const second = await command(["exec", "--session", uid, "--input", "again"], embedded(folder));
    expect(second.stdout).toMatch(/ {4}7 {2}EXECUTION_START .*\n {4}8 {2}INPUT {13}again\n/);
    expect((await command(["list"], embedded(folder))).stdout).toContain(`${uid}  completed  12 `);
    expect((await command(["verify", uid], embedded(folder))).stdout).toMatch(/^intact {2}12 records {2}head 12 /);
    expect((await command(["tail", uid, "--until", "idle", "--from", "12"], embedded(folder))).stdout).toBe(
      "   12  END               COMPLETED\n",
    );
  });

  it("keeps its data in ./.holdfast when nobody says otherwise", async () => {
    using folder = new TemporaryFolder();
    const options = { cwd: folder.path, env: { HOLDFAST_SERVER: "embedded" } };
    const uid = uidIn((await command(["create"], options)).stdout);
    expect(
      (
        await command(["get", uid], {
          ...embedded(folder),
          env: { HOLDFAST_SERVER: "embedded", HOLDFAST_DATA: `${folder.path}/.holdfast` },
        })
      ).exitCode,
    ).toBe(0);
  });

  it("is not there for a command that only reads, where there is nothing to read: no folder is made", async () => {
    using folder = new TemporaryFolder();
    const options = { cwd: folder.path, env: { HOLDFAST_SERVER: "embedded" } };
    const readers = [["list"], ...["get", "replay", "verify", "tail", "tree", "export"].map((name) => [name, "nobody"])];
    for (const args of readers) {
      const refused = await command(args, options);
      expect([args[0], refused.exitCode, refused.stdout]).toEqual([args[0], 3, ""]);
      expect(refused.stderr).toMatch(/^holdfast: there is no journal at \.\/\.holdfast; .+\n.*HOLDFAST_DATA\n$/);
    }
    expect(existsSync(join(folder.path, ".holdfast"))).toBe(false);
  });

  it("asks the model that the environment names", async () => {
    using folder = new TemporaryFolder();
    await using models = await startModelServer();
    const env = { ...embedded(folder).env, OPENAI_BASE_URL: models.openAiBaseUrl, OPENAI_API_KEY: "sk-test" };
    const ran = await command(["exec", "--harness", "chat", "--model", "gpt-x", "--input", "hello"], { env });
    expect(ran.stdout).toContain("OUTPUT            re: hello\n");
    expect([ran.exitCode, models.requests[0]?.json]).toMatchObject([0, { model: "gpt-x" }]);
  });

  it("leaves its turn interrupted at Ctrl-C and says how it goes on; it does", async () => {
    using folder = new TemporaryFolder();
    await using models = await startModelServer();
    models.script({ kind: "silence" });
    const env = { ...embedded(folder).env, OPENAI_BASE_URL: models.openAiBaseUrl, OPENAI_API_KEY: "sk-test" };
    const running = start(["exec", "--harness", "chat", "--model", "gpt-x", "--input", "hello"], { env });
    await running.said("MODEL_CALL");
    running.child.kill("SIGINT");
    const left = await running.result;
    const uid = uidIn(left.stdout);
    expect([left.exitCode, left.stderr]).toEqual([
      130,
      `the turn is interrupted, since its server was in this process; let it go on with: holdfast resume ${uid}\n`,
    ]);
    expect((await command(["list"], { env })).stdout).toContain(`${uid}  awaiting `);
    models.script({ kind: "silence" });
    const again = start(["resume", uid, "--json"], { env });
    await models.request(1);
    again.child.kill("SIGINT");
    const leftAgain = await again.result;
    expect([leftAgain.exitCode, JSON.parse(leftAgain.stderr)]).toEqual([130, { hint: expect.stringContaining(`holdfast resume ${uid}`) }]);
    const resumed = await command(["resume", uid], { env });
    expect([resumed.exitCode, resumed.stdout]).toEqual([0, expect.stringContaining("OUTPUT            re: hello\n")]);
  });

  it("says at Ctrl-C how its turn goes on with --json, too", async () => {
    using folder = new TemporaryFolder();
    await using models = await startModelServer();
    models.script({ kind: "silence" });
    const env = { ...embedded(folder).env, OPENAI_BASE_URL: models.openAiBaseUrl, OPENAI_API_KEY: "sk-test" };
    const running = start(["exec", "--json", "--harness", "chat", "--model", "gpt-x", "--input", "hello"], { env });
    await running.said("EVENT_MODEL_CALL");
    running.child.kill("SIGINT");
    const { exitCode, stderr } = await running.result;
    expect([exitCode, JSON.parse(stderr)]).toEqual([130, { hint: expect.stringMatching(/holdfast resume [0-9a-f-]{36}$/) }]);
  });

  it("finishes the turn whose output nobody reads any more", async () => {
    using folder = new TemporaryFolder();
    await using models = await startModelServer();
    const answered = Promise.withResolvers<void>();
    models.script({ kind: "stream", steps: [{ kind: "wait", until: answered.promise }, ...openAiText("late"), ...openAiEnd()] });
    const env = { ...embedded(folder).env, OPENAI_BASE_URL: models.openAiBaseUrl, OPENAI_API_KEY: "sk-test" };
    const running = start(["exec", "--harness", "chat", "--model", "gpt-x", "--input", "hello"], { env });
    await running.said("INPUT");
    running.child.stdout.destroy();
    await models.request(0);
    answered.resolve();
    expect(await running.result).toMatchObject({ exitCode: 141, stderr: "" });
    expect((await command(["list"], { env })).stdout).toContain("  completed  ");
  });

  it("says which flag to use when a server has the data folder", async () => {
    using folder = new TemporaryFolder();
    const server = await serve(folder.path);
    const refused = await command(["list"], embedded(folder));
    expect([refused.exitCode, refused.stdout]).toEqual([5, ""]);
    expect(refused.stderr).toMatch(
      /^holdfast: data folder: another running process has it.*\nthe folder is \S+; .*--server ADDRESS.*HOLDFAST_DATA.*\n$/,
    );
    expect((await command(["list", "--server", server.url], embedded(folder))).exitCode).toBe(0);
  });
});

describe("holdfast serve", () => {
  it("says where it listens, shuts down at SIGTERM, and exits with 0", async () => {
    using folder = new TemporaryFolder();
    const server = await serve(folder.path);
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(await (await fetch(`${server.url}/healthz`)).json()).toMatchObject({ server: "holdfast" });
    server.child.kill("SIGTERM");
    expect((await server.result).exitCode).toBe(0);
  });

  it("does not start when it would be open to a network, or its flags are wrong", async () => {
    using folder = new TemporaryFolder();
    const open = await command(["serve", "--listen", "0.0.0.0:0", "--data", folder.path]);
    expect([open.exitCode, open.stderr]).toEqual([2, expect.stringContaining("HOLDFAST_TOKEN")]);
    const wrong = await command(["serve", "--listen", "here"]);
    expect([wrong.exitCode, wrong.stderr]).toEqual([2, expect.stringMatching(/^holdfast: --listen: must be host:port/)]);
  });

  it("has the same journal after kill -9, and its next turn works", async () => {
    using folder = new TemporaryFolder();
    const before = await serve(folder.path);
    const uid = uidIn((await command(["exec", "--input", "hello", "--server", before.url])).stdout);
    const journal = (await command(["replay", uid, "--json", "--server", before.url])).stdout;
    before.child.kill("SIGKILL");
    await before.result;
    const after = await serve(folder.path);
    expect((await command(["replay", uid, "--json", "--server", after.url])).stdout).toBe(journal);
    expect((await command(["verify", uid, "--server", after.url])).exitCode).toBe(0);
    const next = await command(["exec", "--session", uid, "--input", "again", "--server", after.url]);
    expect([next.exitCode, next.stdout.split("\n").at(-2)]).toEqual([0, "   12  END               COMPLETED"]);
  });
});

describe("holdfast tail", () => {
  it("outlives its server: it goes on where it was, without loss or repetition", async () => {
    using folder = new TemporaryFolder();
    const before = await serve(folder.path);
    const { port } = new URL(before.url);
    const exec = (text: string, url: string, ...more: string[]) => command(["exec", "--input", text, "--server", url, ...more]);
    const uid = uidIn((await exec("one", before.url)).stdout);
    const tail = start(["tail", uid, "--server", before.url]);
    await tail.said("    6  END               COMPLETED\n");
    before.child.kill("SIGKILL");
    await before.result;
    const after = await serve(folder.path, Number(port));
    await exec("two", after.url, "--session", uid);
    await tail.said("   12  END               COMPLETED\n");
    tail.child.kill("SIGINT");
    const { stdout, stderr } = await tail.result;
    expect(stdout.match(/^ +\d+/gm)?.map(Number)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    expect(stderr).toBe(`go on with: holdfast tail ${uid} --from 13 --server ${before.url}\n`);
  });
});
