import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { command } from "../../e2e/support/command.ts";
import { SILENT_LOG } from "../base/ports.ts";
import { createClient, type Client } from "../client/index.ts";
import { createNodeTransport } from "../client/node/index.ts";
import { startServer, type RunningServer } from "../server/index.ts";
import { textMessage } from "../spi/index.ts";
import { answering, testHarness, TestModel, type HarnessRun } from "../testing/index.ts";
import { TemporaryFolder } from "../testing/temporary-folder.ts";

/** `holdfast replay --check` through real processes against a real server, whose harnesses come in two versions. */

const saying =
  (system: string): HarnessRun =>
  async (start, sink) => {
    await sink.model({ model: "scripted", messages: [textMessage("system", system), ...start.inputs], params: { temperature: "0" } });
  };

const model = new TestModel(answering("fine"));
let server: RunningServer;
let client: Client;

beforeAll(async () => {
  server = await startServer(
    { listen: { host: "127.0.0.1", port: 0 }, store: { kind: "memory" }, defaults: { harness: "old", model: "" } },
    {
      harnesses: { old: testHarness(saying("You are kind.\nBe brief.")), next: testHarness(saying("You are kind.\nBe thorough.")) },
      models: [{ match: "scripted", provider: model }],
      log: SILENT_LOG,
    },
  );
  client = createClient({ transport: createNodeTransport({ address: server.url }) });
});
afterAll(async () => {
  await client[Symbol.asyncDispose]();
  await server.shutdown({ graceMs: 0 });
});

const ask = (...args: string[]) => command(["replay", ...args, "--server", server.url]);

async function session(project: string, ...inputs: string[]): Promise<string> {
  const { metadata } = await client.sessions.create({ project });
  for (const input of inputs) await client.session(metadata!.uid).exec({ inputs: input }).finish();
  return metadata!.uid;
}

describe("holdfast replay --check of a session", () => {
  it("says of each turn that it is the same, and exits with 0; no model is asked", async () => {
    const uid = await session("one", "a", "b");
    const asked = model.requests.length;
    const checked = await ask(uid, "--check");
    expect(checked).toEqual({
      exitCode: 0,
      stdout: `session ${uid}
  turn 1–5  COMPLETED     same      1 effect
  turn 6–10  COMPLETED    same      1 effect
checked 1 session, 2 turns: 2 same, 0 diverged, 0 refused
`,
      stderr: "",
    });
    expect(model.requests).toHaveLength(asked);
  });

  it("shows the first divergence as a difference of the two requests, and exits with 1", async () => {
    const uid = await session("one", "a", "b");
    const checked = await ask(uid, "--check", "--harness", "next");
    expect(checked.exitCode).toBe(1);
    expect(checked.stdout).toBe(`session ${uid}
  turn 1–5  COMPLETED     diverged  at seq 3: the model request differs
  seq 3: the model request differs
  - recorded, + asked for
    model scripted
    param temperature = 0
    system:
      You are kind.
  -   Be brief.
  +   Be thorough.
    user:
      a
  turn 6–10  COMPLETED    diverged  at seq 8: the model request differs
checked 1 session, 2 turns: 0 same, 2 diverged, 0 refused
`);
  });

  it("gives the TurnChecks and the counts with --json", async () => {
    const uid = await session("one", "a");
    const lines = (await ask(uid, "--check", "--harness", "next", "--json")).stdout.trim().split("\n");
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      { session: uid, check: { start_seq: "1", outcome: "OUTCOME_DIVERGED", divergence: { seq: "3", recorded_call_whole: true } } },
      { summary: { sessions: 1, turns: 1, same: 0, diverged: 1, refused: 0 } },
    ]);
  });

  it("exits with 8 when there was nothing to check: that is no proof of anything", async () => {
    const uid = await session("one");
    expect(await ask(uid, "--check")).toMatchObject({
      exitCode: 8,
      stdout: `session ${uid}\nchecked 1 session, 0 turns: 0 same, 0 diverged, 0 refused\n`,
    });
    expect((await ask("--check", "--project", "no such project")).exitCode).toBe(8);
  });

  it("refuses what contradicts itself, an unknown harness and an unknown session", async () => {
    for (const args of [
      ["u", "--check", "--from", "1"],
      ["u", "--harness", "next"],
      ["u", "--check", "--project", "p"],
      ["--check", "--since", "yesterday"],
      [],
    ]) {
      expect([args, (await ask(...args)).exitCode]).toEqual([args, 2]);
    }
    const uid = await session("one", "a");
    expect(await ask(uid, "--check", "--harness", "nobody")).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("harness: must name"),
    });
    expect((await ask("nobody", "--check")).exitCode).toBe(3);
  });
});

describe("holdfast replay --check of a project", () => {
  it("checks every session, newest first, a line each, and shows the first divergence in full", async () => {
    const first = await session("many", "a");
    const empty = await session("many");
    const last = await session("many", "b", "c");
    await session("another project", "d");
    const same = await ask("--check", "--project", "many");
    expect(same).toMatchObject({
      exitCode: 0,
      stdout: `${last}  2 turns     same
${empty}  0 turns     same
${first}  1 turn      same
checked 3 sessions, 3 turns: 3 same, 0 diverged, 0 refused
`,
    });
    const diverged = await ask("--check", "--project", "many", "--harness", "next", "--since", "1h");
    expect(diverged.exitCode).toBe(1);
    expect(diverged.stdout.split("\n").filter((line) => line.includes(" turn"))).toEqual([
      `${last}  2 turns     diverged  at seq 3: the model request differs  (and 1 more)`,
      `${empty}  0 turns     same`,
      `${first}  1 turn      diverged  at seq 3: the model request differs`,
      "checked 3 sessions, 3 turns: 0 same, 3 diverged, 0 refused",
    ]);
    expect(diverged.stdout.match(/\+ {3}Be thorough\./g)).toHaveLength(1);
    expect((await ask("--check", "--project", "many", "--since", "2999-01-01")).stdout).toContain("checked 0 sessions");
  });

  it("exits with 8 when turns could not be run again there, and none diverged", async () => {
    using folder = new TemporaryFolder();
    const config = { listen: { host: "127.0.0.1", port: 0 }, store: { kind: "sqlite", folder: folder.path } } as const;
    const harnesses = { gone: testHarness(async (_, sink) => sink.output("x")) };
    await using before = await startServer(config, { harnesses, log: SILENT_LOG });
    await using writer = createClient({ transport: createNodeTransport({ address: before.url }) });
    const turn = writer.sessions.exec({ harness: "gone" });
    await turn.finish();
    await writer.sessions.exec({ inputs: "hello" }).finish();
    await before.shutdown();
    await using after = await startServer(config, { log: SILENT_LOG });
    const checked = await command(["replay", "--check", "--server", after.url]);
    expect(checked.exitCode).toBe(8);
    expect(checked.stdout).toContain(
      `${turn.sessionUid}  1 turn      refused   harness: the one that the turn was recorded with is not served`,
    );
    expect(checked.stdout).toContain("checked 2 sessions, 2 turns: 1 same, 0 diverged, 1 refused\n");
  });
});
