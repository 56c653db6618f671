/**
 * A third-party client: `buf curl`, which knows nothing of Holdfast, learns the schema by reflection and calls every method that
 * can be called without a stream of requests.
 */

import { spawn } from "node:child_process";
import { describe, expect, it, onTestFinished, beforeAll, afterAll } from "vitest";
import { Sessions } from "../src/gen/agentsessions/v1/session_pb.ts";
import { Health } from "../src/gen/grpc/health/v1/health_pb.ts";
import { Environments } from "../src/gen/holdfast/v1/environments_pb.ts";
import { Journal } from "../src/gen/holdfast/v1/journal_pb.ts";
import { Tasks } from "../src/gen/holdfast/v1/tasks_pb.ts";
import { AgentService } from "../src/gen/roz/v1/agent_pb.ts";
import { startServer, type RunningServer } from "../src/server/index.ts";
import { SILENT_LOG } from "../src/base/index.ts";
import { BUF, call, ENVIRONMENT, GRPC, runBuf, type Json } from "./support/buf-curl.ts";

/** The one message of a call that succeeded. */
async function ask(server: RunningServer, method: string, request: object = {}): Promise<Json> {
  const { messages, error } = await call(server, method, request);
  expect(error).toBeUndefined();
  const [message = {}] = messages;
  return message;
}

async function startMemory(token?: string): Promise<RunningServer> {
  return startServer({ listen: { host: "127.0.0.1", port: 0 }, store: { kind: "memory" }, token }, { log: SILENT_LOG });
}

const kindsOf = (messages: readonly Json[]): unknown[] =>
  messages.flatMap((message) => {
    const record = (message["record"] ?? (message["event"] === undefined ? undefined : message)) as { event: { kind: string } } | undefined;
    return record === undefined ? [] : [record.event.kind];
  });

const TURN = ["EVENT_EXECUTION_START", "EVENT_INPUT", "EVENT_MODEL_CALL", "EVENT_OUTPUT", "EVENT_USAGE", "EVENT_END"];
const INPUTS = [{ role: "user", parts: [{ text: { text: "hello" } }] }];

describe("buf curl", () => {
  let server: RunningServer;
  let uid = "";

  beforeAll(async () => {
    server = await startMemory();
  });
  afterAll(async () => {
    await server.shutdown({ graceMs: 0 });
  });

  it("lists the services and the methods, over both versions of reflection", async () => {
    for (const version of ["grpc-v1", "grpc-v1alpha"]) {
      const reflect = ["--reflect-protocol", version];
      const services = await runBuf([...GRPC, ...reflect, "--list-services", server.url]);
      expect(services.stdout.trim().split("\n")).toEqual([
        "agentsessions.v1.Sessions",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
        "holdfast.v1.Environments",
        "holdfast.v1.Feedback",
        "holdfast.v1.HarnessHost",
        "holdfast.v1.Journal",
        "holdfast.v1.Tasks",
        "holdfast.v1.ToolCalls",
        "holdfast.v1.Turns",
        "roz.v1.AgentService",
      ]);
      const methods = await runBuf([...GRPC, ...reflect, "--list-methods", server.url]);
      for (const service of [Sessions, Journal, Environments, Tasks, AgentService, Health]) {
        for (const { name } of service.methods) expect(methods.stdout).toContain(`${service.typeName}/${name}\n`);
      }
    }
  });

  it("creates a session, runs a turn of it and watches the turn's records come", async () => {
    const session = await ask(server, "agentsessions.v1.Sessions/CreateSession", {
      session: { metadata: { name: "buf" }, labels: { by: "buf" } },
    });
    uid = (session["metadata"] as { uid: string }).uid;
    const { messages, error } = await call(server, "agentsessions.v1.Sessions/Exec", { session: uid, inputs: INPUTS });
    expect(error).toBeUndefined();
    expect(messages[0]).toHaveProperty("session.metadata.uid", uid);
    expect(kindsOf(messages)).toEqual(TURN);
    expect(messages.some((message) => message["delta"] !== undefined)).toBe(true);
  });

  it("reads it in every way", async () => {
    expect(await ask(server, "agentsessions.v1.Sessions/GetSession", { uid })).toMatchObject({ execState: "EXEC_COMPLETED", lastSeq: "6" });
    expect(await ask(server, "agentsessions.v1.Sessions/ListSessions", { pageSize: 1 })).toMatchObject({
      sessions: [{ labels: { by: "buf" } }],
    });
    expect(kindsOf((await call(server, "agentsessions.v1.Sessions/Replay", { session: uid })).messages)).toEqual(TURN);
    const tail = await call(server, "holdfast.v1.Journal/Tail", { session: uid, fromSeq: 5, until: "UNTIL_IDLE" });
    expect(kindsOf(tail.messages)).toEqual(TURN.slice(4));
    expect(await ask(server, "holdfast.v1.Journal/Verify", { session: uid })).toMatchObject({ intact: true, records: "6" });
  });

  it("makes, lists, replaces and removes an environment", async () => {
    const environment = { id: "lab", agent: { max_steps: 3 }, permissions: [{ tool: "rm", policy: "block" }] };
    const made = await ask(server, "holdfast.v1.Environments/CreateEnvironment", { environment });
    expect(made).toMatchObject({ ...environment, version: "1", harness: "agent" });
    expect(await ask(server, "holdfast.v1.Environments/ListEnvironments", {})).toMatchObject({
      environments: [{ id: "default" }, { id: "lab" }],
    });
    const change = { environment: { id: "lab", maxContextTokens: 5_000 }, expectedVersion: 1 };
    const changed = await ask(server, "holdfast.v1.Environments/UpdateEnvironment", change);
    expect(changed).toMatchObject({ version: "2", maxContextTokens: 5_000 });
    expect((await call(server, "holdfast.v1.Environments/UpdateEnvironment", change)).error?.code).toBe("aborted");
    expect(await ask(server, "holdfast.v1.Environments/DeleteEnvironment", { id: "lab" })).toEqual(changed);
    expect((await call(server, "holdfast.v1.Environments/GetEnvironment", { id: "lab" })).error?.code).toBe("not_found");
  });

  it("checks, suspends, resumes and forks it", async () => {
    const checks = await call(server, "holdfast.v1.Journal/CheckReplay", { session: uid });
    expect(checks.messages).toMatchObject([{ outcome: "OUTCOME_SAME", end: "COMPLETED" }]);
    expect(await ask(server, "agentsessions.v1.Sessions/Suspend", { session: uid })).toMatchObject({ computeState: "COMPUTE_COLD" });
    expect(await ask(server, "agentsessions.v1.Sessions/Resume", { session: uid })).toMatchObject({ computeState: "COMPUTE_LIVE" });
    expect(await ask(server, "agentsessions.v1.Sessions/Fork", { session: uid, atSeq: 6, count: 2 })).toMatchObject({
      children: [
        { parentUid: uid, forkSeq: "6" },
        { parentUid: uid, forkSeq: "6" },
      ],
    });
  });

  it("cancels and deletes it", async () => {
    expect(await ask(server, "agentsessions.v1.Sessions/Cancel", { session: uid })).toMatchObject({ execState: "EXEC_COMPLETED" });
    expect(await ask(server, "agentsessions.v1.Sessions/DeleteSession", { uid })).toMatchObject({ deletionState: "DELETION_PENDING" });
  });

  it("is told what is wrong, by the contract's codes", async () => {
    const nobody = await call(server, "agentsessions.v1.Sessions/GetSession", { uid: "nobody" });
    expect(nobody.error).toMatchObject({ code: "not_found", message: "uid: no session has this uid" });
    const deleted = await call(server, "agentsessions.v1.Sessions/Exec", { session: uid, inputs: INPUTS });
    expect(deleted.error).toMatchObject({ code: "failed_precondition" });
    const negative = await call(server, "agentsessions.v1.Sessions/ListSessions", { pageSize: -1 });
    expect(negative.error).toMatchObject({ code: "invalid_argument", message: expect.stringContaining("page_size") as string });
  });

  it("gets an answer from every method, if only that its request is empty or that it is not served yet", async () => {
    for (const { name, parent } of [...Sessions.methods, ...Journal.methods]) {
      const { error } = await call(server, `${parent.typeName}/${name}`);
      expect(["invalid_argument", "unimplemented", undefined]).toContain(error?.code);
    }
  });

  it("asks for health, once and for as long as it wants", async () => {
    expect(await ask(server, "grpc.health.v1.Health/Check", { service: "agentsessions.v1.Sessions" })).toEqual({ status: "SERVING" });
    const watching = spawn(BUF, [...GRPC, "-d", "{}", `${server.url}/grpc.health.v1.Health/Watch`], { env: ENVIRONMENT });
    onTestFinished(() => void watching.kill("SIGKILL"));
    const [first] = (await new Promise<Buffer[]>((resolve) => watching.stdout.once("data", (chunk: Buffer) => resolve([chunk])))) as [
      Buffer,
    ];
    expect(first.toString()).toContain("SERVING");
  });
});

describe("buf curl and a token", () => {
  it("learns the schema without it, and calls nothing", async () => {
    const server = await startMemory("sesame");
    onTestFinished(() => server.shutdown({ graceMs: 0 }));
    expect((await call(server, "agentsessions.v1.Sessions/ListSessions")).error).toMatchObject({ code: "unauthenticated" });
    const { error } = await call(server, "agentsessions.v1.Sessions/ListSessions", {}, ["-H", "authorization: Bearer sesame"]);
    expect(error).toBeUndefined();
  });
});
