/**
 * Approvals, wherever the harness runs: in process, in a child over its standard streams, at a unix socket, in Python; one gated call and
 * three at once; approved, denied, an executor that fails, a host that restarts in between, a fork, an answer that is given twice, a
 * reference that is wrong.
 */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { create, type JsonObject } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished } from "vitest";
import { SILENT_LOG } from "../src/base/index.ts";
import { createClient, type Client, type SessionHandle } from "../src/client/index.ts";
import { createNodeTransport } from "../src/client/node/index.ts";
import { ApprovalRefSchema, type ApprovalRef, type LogRecord } from "../src/gen/agentsessions/v1/common_pb.ts";
import { ComputeState, ExecState } from "../src/gen/agentsessions/v1/session_pb.ts";
import type { HarnessConfig } from "../src/server/harness-config.ts";
import { startServer } from "../src/server/index.ts";
import { createFunctionTools } from "../src/tools/index.ts";
import type { ToolExecutor } from "../src/spi/index.ts";
import { storyOf } from "../src/testing/index.ts";
import { gated } from "./support/gated.ts";
import { listenAt } from "./support/served-program.ts";
import { newDataFolder } from "./support/server-process.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PYTHON = join(ROOT, "sdks/python/.venv/bin/python");
const SUPPORT = join(ROOT, "e2e/support");

type Place = "in process" | "standard streams" | "a unix socket" | "Python";
const PLACES: readonly Place[] = ["in process", "standard streams", "a unix socket", "Python"];

const child = (command: readonly [string, ...string[]]): HarnessConfig => ({
  runtime: "process",
  command,
  cwd: ROOT,
  env: { PYTHONPATH: join(ROOT, "sdks/python/src") },
  confine: false,
  line: "stdio",
});

/** The configuration of the gated harness in a place; undefined for this process. */
async function configOf(place: Place, folder: string): Promise<HarnessConfig | undefined> {
  switch (place) {
    case "in process":
      return undefined;
    case "standard streams":
      return child([process.execPath, join(SUPPORT, "gated.ts")]);
    case "a unix socket": {
      const program = await listenAt([process.execPath, join(SUPPORT, "gated.ts")], `unix://${folder}/gated.sock`);
      onTestFinished(() => program.end());
      return { runtime: "remote", address: program.address };
    }
    case "Python":
      if (!existsSync(PYTHON)) throw new Error("the Python SDK is not installed: run npm test -- --only python");
      return child([PYTHON, join(SUPPORT, "gated.py")]);
  }
}

/** The tool behind the gate. It keeps a ledger of its effects, and the host's executor fails where its arguments say so. */
function actingTool(): { readonly executor: ToolExecutor; readonly ledger: JsonObject[] } {
  const ledger: JsonObject[] = [];
  const tools = createFunctionTools({ act: { description: "Acts.", run: (args) => void ledger.push(args) } });
  const executor: ToolExecutor = {
    list: () => tools.list(),
    find: (name) => tools.find(name),
    check: (call) => tools.check(call),
    execute: async (call, run) => {
      if (call.args?.["fails"] === true) throw new Error("the executor fails");
      return tools.execute(call, run);
    },
  };
  return { executor, ledger };
}

class World {
  readonly folder = newDataFolder();
  readonly tool = actingTool();
  readonly #place: Place;
  #config: HarnessConfig | undefined;
  #end: () => Promise<void> = async () => undefined;
  client!: Client;

  constructor(place: Place) {
    this.#place = place;
  }

  async start(): Promise<this> {
    this.#config ??= await configOf(this.#place, this.folder);
    const here = this.#config === undefined;
    const server = await startServer(
      {
        listen: { host: "127.0.0.1", port: 0 },
        store: { kind: "sqlite", folder: join(this.folder, "data") },
        registry: { listen: "off", token: undefined },
        harnesses: this.#config === undefined ? {} : { gated: this.#config },
      },
      { log: SILENT_LOG, tools: this.tool.executor, harnesses: here ? { gated } : {} },
    );
    this.client = createClient({ transport: createNodeTransport({ address: server.url }) });
    this.#end = async () => {
      await this.client[Symbol.asyncDispose]();
      await server.shutdown({ graceMs: 0 });
    };
    return this;
  }

  async restart(): Promise<void> {
    await this.#end();
    await this.start();
  }

  end(): Promise<void> {
    return this.#end();
  }
}

/** A session whose turn waits for its decisions; its uid. */
async function parkedIn(client: Client, calls: number, fails = false): Promise<string> {
  const { metadata } = await client.sessions.create({ harness: "gated" });
  const uid = metadata?.uid ?? "";
  for await (const item of client.session(uid).exec({ config: JSON.stringify({ calls, fails }) })) void item;
  const session = await client.session(uid).get();
  expect(session).toMatchObject({ execState: ExecState.EXEC_AWAITING, computeState: ComputeState.COMPUTE_COLD });
  return uid;
}

async function world(place: Place): Promise<World> {
  const started = await new World(place).start();
  onTestFinished(() => started.end());
  return started;
}

async function recordsOf(session: SessionHandle): Promise<LogRecord[]> {
  const records: LogRecord[] = [];
  for await (const { record } of session.replay()) records.push(record);
  return records;
}

/** The references of every request of a session, in order. */
async function requestsOf(session: SessionHandle): Promise<ApprovalRef[]> {
  return (await recordsOf(session)).flatMap(({ seq, event }) =>
    event?.body.case === "approval"
      ? [create(ApprovalRefSchema, { executionId: event.executionId, toolCallId: event.body.value.toolCallId, requestSeq: seq })]
      : [],
  );
}

const outputsOf = async (session: SessionHandle): Promise<string[]> =>
  (await recordsOf(session))
    .flatMap(({ event }) => (event === undefined ? [] : [storyOf(event)]))
    .filter((line) => line.startsWith("OUTPUT"))
    .map((line) => line.slice("OUTPUT ".length));

/** Decides every request, the last one first, and lets the turn go on. */
async function decideAll(session: SessionHandle, approved: boolean): Promise<void> {
  const requests = await requestsOf(session);
  expect((await session.get()).pendingApproval).toEqual(requests[0]);
  for (const request of requests.toReversed()) await session.approve(request, { approved, reason: "because" });
  expect((await session.get()).pendingApproval).toBeUndefined();
  await session.resume();
}

const numbered = (calls: number, word: string): string[] => Array.from({ length: calls }, (_, index) => `${index + 1} ${word}`);

describe.each(PLACES)("a harness in %s", (place) => {
  describe.each([1, 3])("with %i gated calls", (calls) => {
    it("acts once for each call that is approved, and the receipt names request and decision", async () => {
      const { client, tool } = await world(place);
      const session = client.session(await parkedIn(client, calls));
      expect(tool.ledger).toEqual([]);
      await decideAll(session, true);
      expect(tool.ledger.map(({ number }) => Number(number)).toSorted((left, right) => left - right)).toEqual(
        Array.from({ length: calls }, (_, index) => index + 1),
      );
      expect(await outputsOf(session)).toEqual(numbered(calls, "done"));
      expect((await session.get()).execState).toBe(ExecState.EXEC_COMPLETED);
      const requests = new Set((await requestsOf(session)).map(({ requestSeq }) => requestSeq));
      const results = (await recordsOf(session)).flatMap(({ event }) => (event?.body.case === "result" ? [event.body.value] : []));
      expect(new Set(results.map(({ approvalRequestSeq }) => approvalRequestSeq))).toEqual(requests);
      expect(results.every(({ approvalDecisionSeq, approvalRequestSeq }) => approvalDecisionSeq > approvalRequestSeq)).toBe(true);
    });

    it("never acts for a call that is denied", async () => {
      const { client, tool } = await world(place);
      const session = client.session(await parkedIn(client, calls));
      await decideAll(session, false);
      expect(tool.ledger).toEqual([]);
      expect(await outputsOf(session)).toEqual(numbered(calls, "failed 1"));
    });

    it("goes on with a result that says so when the executor fails", async () => {
      const { client, tool } = await world(place);
      const session = client.session(await parkedIn(client, calls, true));
      await decideAll(session, true);
      expect(tool.ledger).toEqual([]);
      expect(await outputsOf(session)).toEqual(numbered(calls, "failed 2"));
    });

    it("waits through a restart of the host", async () => {
      const here = await world(place);
      const uid = await parkedIn(here.client, calls);
      await here.restart();
      await decideAll(here.client.session(uid), true);
      expect(here.tool.ledger).toHaveLength(calls);
      expect(await outputsOf(here.client.session(uid))).toEqual(numbered(calls, "done"));
      expect(await here.client.session(uid).verify()).toMatchObject({ intact: true });
    });

    it("gives no fork the right to act", async () => {
      const { client, tool } = await world(place);
      const session = client.session(await parkedIn(client, calls));
      const [forked] = await session.fork();
      const fork = client.session(forked?.metadata?.uid ?? "");
      await expect(fork.resume()).rejects.toMatchObject({ code: "failed_precondition" });
      const [request] = await requestsOf(session);
      await expect(fork.approve(request!, { approved: true })).rejects.toMatchObject({ code: "failed_precondition" });
      await decideAll(session, true);
      expect(tool.ledger).toHaveLength(calls);
    });

    it("takes an answer that is given again for the one it is, and no other", async () => {
      const { client, tool } = await world(place);
      const session = client.session(await parkedIn(client, calls));
      const [request] = await requestsOf(session);
      const first = await session.approve(request!, { approved: true, reason: "because" });
      const again = await session.approve(request!, { approved: true, reason: "because" });
      expect(again.decision).toEqual(first.decision);
      await expect(session.approve(request!, { approved: false, reason: "because" })).rejects.toMatchObject({
        code: "failed_precondition",
      });
      for (const other of (await requestsOf(session)).slice(1)) await session.approve(other, { approved: true });
      await session.resume();
      expect(tool.ledger).toHaveLength(calls);
      expect((await session.approve(request!, { approved: true, reason: "because" })).decision).toEqual(first.decision);
    });

    it("refuses a reference that is wrong", async () => {
      const { client } = await world(place);
      const session = client.session(await parkedIn(client, calls));
      const [request] = await requestsOf(session);
      for (const wrong of [{ executionId: "other" }, { toolCallId: "other" }, { requestSeq: 1n }]) {
        const ref = create(ApprovalRefSchema, { ...request!, ...wrong });
        await expect(session.approve(ref, { approved: true })).rejects.toMatchObject({ code: "failed_precondition" });
      }
      for (const missing of [{ executionId: "" }, { toolCallId: "" }, { requestSeq: 0n }]) {
        const ref = create(ApprovalRefSchema, { ...request!, ...missing });
        await expect(session.approve(ref, { approved: true })).rejects.toMatchObject({ code: "invalid_argument" });
      }
      expect((await session.get()).pendingApproval).toEqual(request);
    });
  });
});
