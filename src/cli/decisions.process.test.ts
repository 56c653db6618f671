import { describe, expect, it, onTestFinished } from "vitest";
import { command, start as startCommand } from "../../e2e/support/command.ts";
import { SILENT_LOG } from "../base/ports.ts";
import { createClient } from "../client/index.ts";
import { createNodeTransport } from "../client/node/index.ts";
import { createFunctionTools, startServer, type FunctionTool } from "../server/index.ts";
import { gatedCall, TemporaryFolder, testHarness, toolCall, type HarnessRun } from "../testing/index.ts";

/** Approvals and unknown outcomes through real processes of the command, and over REST, against a real server. */

const asking: HarnessRun = async (start, sink) => {
  const call = gatedCall("write", "w1", { idempotencyKey: `${start.executionId} w1`, args: { path: "notes.txt", lines: [1, 2] } });
  const result = await sink.toolCall(call);
  await sink.output(result.isError ? `not written: ${result.error}` : "written");
};

const inputSchema = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };

async function newServer(tools: Readonly<Record<string, FunctionTool>>, run: HarnessRun = asking, folder?: string) {
  const store = folder === undefined ? ({ kind: "memory" } as const) : ({ kind: "sqlite", folder } as const);
  const config = { listen: { host: "127.0.0.1", port: 0 }, store, recover: "leave", defaults: { harness: "h", model: "echo" } } as const;
  const options = { harnesses: { h: testHarness(run) }, tools: createFunctionTools(tools), log: SILENT_LOG };
  const server = await startServer(config, options);
  const client = createClient({ transport: createNodeTransport({ address: server.url }) });
  let isClosed = false;
  const close = async (): Promise<void> => {
    if (isClosed) return;
    isClosed = true;
    await client[Symbol.asyncDispose]();
    await server.shutdown({ graceMs: 0 });
  };
  onTestFinished(close);
  const ask = (...args: string[]) => command([...args, "--server", server.url]);
  return { server, client, ask, close };
}

const write = (ran: string[]): Record<string, FunctionTool> => ({
  write: { description: "writes a file", inputSchema, run: ({ path }) => void ran.push(JSON.stringify(path)) },
});

describe("holdfast approvals, approve and deny", () => {
  it("show what waits with its arguments, decide it, and let the session go on", async () => {
    const ran: string[] = [];
    const { client, ask, server } = await newServer(write(ran));
    expect((await ask("approvals")).stdout).toBe("");
    const turn = client.sessions.exec({ inputs: "write it" });
    await turn.finish();
    const uid = turn.sessionUid!;
    const { stdout } = await ask("approvals");
    expect(stdout).toMatch(new RegExp(`^session +${uid}$`, "m"));
    expect(stdout).toMatch(/^arguments +\{"path":"notes.txt","lines":\[1,2\]\}$/m);
    const approved = await ask("approve", uid, "--reason", "go on");
    expect([approved.exitCode, approved.stdout]).toEqual([0, `session ${uid}  approved w1  seq 6\n`]);
    expect(ran).toEqual([]);
    expect((await ask("approvals", "--json")).stdout).toBe("");
    const again = { exitCode: 0, stdout: `session ${uid}  approved w1 already  seq 6\n` };
    expect(await ask("approve", uid)).toMatchObject({
      ...again,
      stderr: `let it go on with: holdfast resume ${uid} --server ${server.url}\n`,
    });
    expect(await ask("approve", uid, "--call", "w1")).toMatchObject(again);
    expect(await ask("approve", uid, "--call", "w1", "--reason", "go on")).toMatchObject(again);
    expect(JSON.parse((await ask("approve", uid, "--json")).stdout)).toMatchObject({ session: {}, decision: { seq: "6" } });
    expect(await ask("deny", uid)).toMatchObject({ exitCode: 4, stderr: expect.stringContaining("w1, is approved already") as string });
    expect(await ask("deny", uid, "--call", "w1")).toMatchObject({
      exitCode: 4,
      stderr: expect.stringContaining("approved: the request has been decided already") as string,
    });
    expect((await ask("resume", uid)).stdout).toContain("written");
    expect(ran).toEqual([JSON.stringify("notes.txt")]);
    expect(await ask("approve", uid)).toMatchObject({ ...again, stderr: "" });
  });

  it("are what a turn that waits names, whether it was begun or resumed", async () => {
    const { ask, server } = await newServer(write([]));
    const begun = await ask("exec", "--input", "write it");
    const uid = /^session (\S+)$/m.exec(begun.stdout)?.[1] ?? "";
    const advice = `the turn waits for the approval of w1\ndecide with: holdfast approve ${uid} --server ${server.url} (or deny)\n`;
    expect([begun.exitCode, begun.stderr]).toEqual([7, advice]);
    const resumed = await ask("resume", uid);
    expect([resumed.exitCode, resumed.stderr]).toEqual([7, `there was nothing to resume\n${advice}`]);
  });

  it("say apart that nothing waits, and that there is no such call", async () => {
    const { client, ask } = await newServer(write([]));
    const { metadata } = await client.sessions.create();
    expect(await ask("approve", metadata!.uid)).toMatchObject({
      exitCode: 4,
      stderr: "holdfast: session: nothing in it waits for a decision\n",
    });
    const turn = client.sessions.exec({ inputs: "write it" });
    await turn.finish();
    expect(await ask("approve", turn.sessionUid!, "--call", "nope")).toMatchObject({
      exitCode: 4,
      stderr: "holdfast: --call: the session has asked for no decision on a call with this id; holdfast approvals lists what waits\n",
    });
  });

  it("deny with --resume: the tool is never run, and the agent is told why", async () => {
    const ran: string[] = [];
    const { client, ask } = await newServer(write(ran));
    const turn = client.sessions.exec({ inputs: "write it" });
    await turn.finish();
    const { stdout, exitCode } = await ask("deny", turn.sessionUid!, "--call", "w1", "--reason", "not today", "--resume");
    expect(stdout).toContain("not written: the call was denied; the tool was not run: not today");
    expect([exitCode, ran]).toEqual([0, []]);
  });

  it("follow: what waits, what comes and what is decided, until it is stopped", async () => {
    const { client, server, ask } = await newServer(write([]));
    const following = startCommand(["approvals", "--follow", "--json", "--server", server.url]);
    await following.said(`"listed"`);
    const turn = client.sessions.exec({ inputs: "write it" });
    await turn.finish();
    await following.said(`"requested"`);
    await ask("deny", turn.sessionUid!, "--reason", "no");
    await following.said(`"decided"`);
    following.child.kill("SIGINT");
    const { exitCode, stdout } = await following.result;
    const updates = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(updates).toMatchObject([{ listed: {} }, { requested: { session: turn.sessionUid } }, { decided: { reason: "no" } }]);
    expect(exitCode).toBe(130);
  });

  it("are the same over REST", async () => {
    const { client, server } = await newServer(write([]));
    const turn = client.sessions.exec({ inputs: "write it" });
    await turn.finish();
    const listed = (await (await fetch(`${server.url}/v1/approvals`)).json()) as {
      approvals: { session: string; ref: Record<string, unknown> }[];
    };
    expect(listed.approvals).toMatchObject([{ session: turn.sessionUid, call: { tool: "write", args: { path: "notes.txt" } } }]);
    const approve = (more: object) =>
      fetch(`${server.url}/v1/sessions/${turn.sessionUid}/approve`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ ...listed.approvals[0]!.ref, ...more }),
      });
    expect(await (await approve({})).json()).toMatchObject({ field: "approved", status: 400 });
    expect(await (await approve({ approved: true })).json()).toMatchObject({ decision: { seq: "6" } });
    expect((await approve({ approved: false })).status).toBe(412);
    expect((await (await fetch(`${server.url}/v1/sessions/${turn.sessionUid}/unsettled`)).json()) as object).toEqual({});
  });
});

describe("holdfast resolve", () => {
  it("lists calls whose outcome is not known, and takes a person's word for what became of one", async () => {
    using folder = new TemporaryFolder();
    const begun = Promise.withResolvers<void>();
    const pay: HarnessRun = async (_, sink) => {
      const result = await sink.toolCall(toolCall("pay", "p1", { args: { amount: 7 } }));
      await sink.output(result.isError ? "not paid" : "paid");
    };
    const hangs: FunctionTool = { description: "", run: () => new Promise(() => begun.resolve()) };
    const first = await newServer({ pay: hangs }, pay, folder.path);
    const turn = first.client.sessions.exec({ inputs: "pay" });
    const finished = turn.finish().catch(() => undefined);
    await begun.promise;
    await first.close();
    await finished;
    const uid = turn.sessionUid!;
    let runs = 0;
    const { ask, server } = await newServer({ pay: { description: "", run: () => void (runs += 1) } }, pay, folder.path);
    expect(await ask("resolve", uid)).toMatchObject({
      stdout: 'seq 3  p1  pay {"amount":7}\n',
      stderr: `say what became of one with: holdfast resolve ${uid} CALL --as done --server ${server.url} (or failed, retry)\n`,
    });
    expect((await ask("resolve", uid, "p1")).stderr).toContain("--as");
    expect((await ask("resolve", uid, "p1", "--as", "done")).stdout).toContain("settled: done");
    expect((await ask("resolve", uid)).stdout).toBe("");
    expect((await ask("resume", uid)).stdout).toContain("paid");
    expect(runs).toBe(0);
  });
});
