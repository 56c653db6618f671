import { get } from "node:https";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, fromBinary } from "@bufbuild/protobuf";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { describe, expect, it, onTestFinished } from "vitest";
import { HoldfastError, SILENT_LOG } from "../base/index.ts";
import {
  CreateSessionRequestSchema,
  DeleteSessionRequestSchema,
  DeletionState,
  ExecRequestSchema,
  ExecState,
  ExecUpdateSchema,
  GetSessionRequestSchema,
  SessionSchema,
  Sessions,
} from "../gen/agentsessions/v1/session_pb.ts";
import { Health, HealthCheckRequestSchema, HealthCheckResponse_ServingStatus } from "../gen/grpc/health/v1/health_pb.ts";
import { Journal, TailRequestSchema } from "../gen/holdfast/v1/journal_pb.ts";
import { textMessage, type Harness } from "../spi/index.ts";
import { storyOf, testHarness } from "../testing/index.ts";
import { TEST_CERT, TEST_KEY } from "../../e2e/support/certificate.ts";
import { ask, collect, stream } from "../../e2e/support/grpc-door.ts";
import type { ServerConfig } from "./config.ts";
import { startServer, type RunningServer, type ServerOptions } from "./start.ts";

const ANY_PORT = { host: "127.0.0.1", port: 0 };

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-server-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function start(config: Partial<ServerConfig> = {}, options: ServerOptions = {}): Promise<{ server: RunningServer; client: Client }> {
  const server = await startServer({ listen: ANY_PORT, store: { kind: "memory" }, ...config }, { log: SILENT_LOG, ...options });
  const client = new Client(`${server.host}:${server.port}`, credentials.createInsecure());
  onTestFinished(async () => {
    client.close();
    await server.shutdown({ graceMs: 0 });
  });
  return { server, client };
}

const hello = (session = "", harness = "") => create(ExecRequestSchema, { session, harness, inputs: [textMessage("user", "hello")] });

/** The updates of an Exec in short words. */
function wordsOf(updates: readonly Uint8Array[]): string[] {
  return updates.flatMap((bytes) => {
    const { update } = fromBinary(ExecUpdateSchema, bytes);
    if (update.case === "record") return update.value.event === undefined ? [] : [storyOf(update.value.event)];
    return update.case === "session" ? ["session"] : [];
  });
}

const newSession = create(CreateSessionRequestSchema, { session: create(SessionSchema) });
const echoTurn = ["EXECUTION_START", "INPUT hello", "MODEL_CALL", "OUTPUT echo:hello", "USAGE", "END COMPLETED"];

describe("a server", () => {
  it("runs a turn over gRPC and tells the same journal over HTTP", async () => {
    const { server, client } = await start();
    expect(server.url).toBe(`http://127.0.0.1:${server.port}`);
    const updates = await collect(stream(client, Sessions.method.exec, hello()));
    expect(wordsOf(updates)).toEqual(["session", ...echoTurn]);
    const first = fromBinary(ExecUpdateSchema, updates[0] ?? new Uint8Array()).update;
    const uid = first.case === "session" ? first.value.metadata?.uid : undefined;
    const listed = (await (await fetch(`${server.url}/v1/sessions/${uid}/records`)).json()) as { records: unknown[] };
    expect(listed.records.length).toBe(echoTurn.length);
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
  });

  it("reclaims what was deleted, as it is told to", async () => {
    for (const [retentionMs, isGone] of [
      [0, true],
      [undefined, false],
    ] as const) {
      const { client } = await start({ retentionMs });
      const { metadata } = await ask(client, Sessions.method.createSession, newSession);
      const uid = metadata?.uid ?? "";
      await ask(client, Sessions.method.deleteSession, create(DeleteSessionRequestSchema, { uid }));
      const read = () => ask(client, Sessions.method.getSession, create(GetSessionRequestSchema, { uid }));
      if (isGone)
        await expect.poll(() => read().catch((error: unknown) => error), { timeout: 10_000 }).toMatchObject({ code: "not_found" });
      else expect(await read()).toMatchObject({ deletionState: DeletionState.DELETION_PENDING });
    }
  });

  it("reads the same journal after it was started again", async () => {
    const folder = newFolder();
    const config = { store: { kind: "sqlite", folder } } as const;
    const first = await start(config);
    const { metadata } = await ask(first.client, Sessions.method.createSession, newSession);
    const uid = metadata?.uid ?? "";
    await collect(stream(first.client, Sessions.method.exec, hello(uid)));
    await first.server.shutdown();
    const second = await start(config);
    expect(await ask(second.client, Journal.method.verify, create(Journal.method.verify.input, { session: uid }))).toMatchObject({
      intact: true,
      records: BigInt(echoTurn.length),
    });
    expect(wordsOf(await collect(stream(second.client, Sessions.method.exec, hello(uid))))).toEqual(["session", ...echoTurn]);
  });

  it("asks for its token at both doors, and leaves health open", async () => {
    const { server, client } = await start({ token: "sesame" });
    const metadata = new Metadata();
    metadata.set("authorization", "Bearer sesame");
    await expect(ask(client, Sessions.method.createSession, newSession)).rejects.toMatchObject({ code: "unauthenticated" });
    const session = await ask(client, Sessions.method.createSession, newSession, { metadata });
    expect(session.identity?.principal).toBe("token");
    expect((await fetch(`${server.url}/v1/sessions`)).status).toBe(401);
    expect((await fetch(`${server.url}/v1/sessions`, { headers: { authorization: "Bearer sesame" } })).status).toBe(200);
    const health = await ask(client, Health.method.check, create(HealthCheckRequestSchema));
    expect(health.status).toBe(HealthCheckResponse_ServingStatus.SERVING);
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  });

  it("speaks TLS at both doors when it has a certificate", async () => {
    const { server } = await start({ tls: { key: TEST_KEY, cert: TEST_CERT } });
    expect(server.url).toBe(`https://127.0.0.1:${server.port}`);
    const client = new Client(`127.0.0.1:${server.port}`, credentials.createSsl(Buffer.from(TEST_CERT)));
    onTestFinished(() => client.close());
    expect(wordsOf(await collect(stream(client, Sessions.method.exec, hello()))).at(-1)).toBe("END COMPLETED");
    const status = await new Promise<number | undefined>((resolve, reject) => {
      get(`${server.url}/healthz`, { ca: TEST_CERT, agent: false }, (response) => resolve(response.resume().statusCode)).on(
        "error",
        reject,
      );
    });
    expect(status).toBe(200);
  });

  it("serves harnesses that a program gives it", async () => {
    const parrot: Harness = testHarness(async (_start, sink) => sink.output("pretty"));
    const { client } = await start({ defaults: { harness: "parrot", model: "" } }, { harnesses: { parrot } });
    expect(wordsOf(await collect(stream(client, Sessions.method.exec, hello())))).toContain("OUTPUT pretty");
  });
});

describe("a server that cannot start", () => {
  const refused = async (config: Partial<ServerConfig>): Promise<HoldfastError> => {
    const outcome: unknown = await startServer({ listen: ANY_PORT, store: { kind: "memory" }, ...config }, { log: SILENT_LOG }).catch(
      (error: unknown) => error,
    );
    if (!(outcome instanceof HoldfastError)) throw new Error("it started");
    return outcome;
  };

  it("says that it would be open to a network", async () => {
    expect(await refused({ listen: { host: "0.0.0.0", port: 0 } })).toMatchObject({ code: "invalid_argument", field: "listen" });
  });

  it("says that the port is taken, and lets go of the journal", async () => {
    const { server } = await start();
    const folder = newFolder();
    const store = { kind: "sqlite", folder } as const;
    const error = await refused({ listen: { host: "127.0.0.1", port: server.port }, store });
    expect(error).toMatchObject({
      code: "failed_precondition",
      message: expect.stringContaining("another process uses this port") as string,
    });
    await start({ store });
  });

  it("names the harnesses that it has when the default is none of them", async () => {
    const defaults = { harness: "nobody", model: "echo" };
    expect(await refused({ store: { kind: "memory" }, defaults })).toMatchObject({
      code: "invalid_argument",
      field: "harness",
      message: "harness: the default must be one that this server has: echo, chat, agent, history",
    });
  });

  it("says what is wrong with the journal", async () => {
    const folder = newFolder();
    await start({ store: { kind: "sqlite", folder } });
    expect(await refused({ store: { kind: "sqlite", folder } })).toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("another running process has it") as string,
    });
    const file = join(newFolder(), "file");
    writeFileSync(file, "");
    expect(await refused({ store: { kind: "sqlite", folder: file } })).toMatchObject({ code: "failed_precondition" });
    const damaged = newFolder();
    writeFileSync(join(damaged, "journal.sqlite"), "not a database, and long enough to be looked at".repeat(100));
    expect(await refused({ store: { kind: "sqlite", folder: damaged } })).toMatchObject({ code: "data_loss" });
  });

  it("says that its default harness is none", async () => {
    expect(await refused({ defaults: { harness: "nobody", model: "" } })).toMatchObject({ code: "invalid_argument", field: "harness" });
  });
});

describe("a server that shuts down", () => {
  /** A server with one turn that goes on until it is told to end. */
  async function withTurn(config: Partial<ServerConfig> = {}) {
    const go = Promise.withResolvers<void>();
    const harness = testHarness(async (_start, sink) => {
      await sink.output("begun");
      await go.promise;
      await sink.output("done");
    });
    const { server, client } = await start(config, { harnesses: { slow: harness } });
    const { metadata } = await ask(
      client,
      Sessions.method.createSession,
      create(CreateSessionRequestSchema, { session: { harness: "slow" } }),
    );
    const uid = metadata?.uid ?? "";
    const exec = stream(client, Sessions.method.exec, hello(uid));
    const updates: Uint8Array[] = [];
    exec.on("data", (bytes: Uint8Array) => updates.push(bytes));
    const ended = new Promise<unknown>((resolve) => {
      exec.on("error", resolve);
      exec.on("end", () => resolve(undefined));
    });
    await expect.poll(() => wordsOf(updates)).toContain("OUTPUT begun");
    return { server, client, uid, go, updates, ended };
  }

  it("lets the running turn end, takes no other, and tells so", async () => {
    const { server, client, uid, go, updates, ended } = await withTurn();
    const over = server.shutdown({ graceMs: 20_000 });
    const check = () => ask(client, Health.method.check, create(HealthCheckRequestSchema));
    await expect.poll(async () => (await check()).status).toBe(HealthCheckResponse_ServingStatus.NOT_SERVING);
    expect((await fetch(`${server.url}/readyz`)).status).toBe(503);
    await expect(collect(stream(client, Sessions.method.exec, hello()))).rejects.toMatchObject({ code: "unavailable" });
    expect(await ask(client, Sessions.method.getSession, create(GetSessionRequestSchema, { uid }))).toMatchObject({
      execState: ExecState.EXEC_RUNNING,
    });
    go.resolve();
    expect(await ended).toBeUndefined();
    expect(wordsOf(updates).at(-1)).toBe("END COMPLETED");
    await over;
    await expect(fetch(server.url)).rejects.toThrow("fetch failed");
  });

  it("leaves a turn that outlasts the grace interrupted, and the next server finds it so", async () => {
    const store = { kind: "sqlite", folder: newFolder() } as const;
    const { server, uid, updates, ended } = await withTurn({ store });
    await server.shutdown({ graceMs: 10 });
    expect(await ended).toMatchObject({ code: 14 });
    expect(wordsOf(updates)).not.toContain("END COMPLETED");
    const next = await start({ store }, { harnesses: { slow: testHarness(async () => undefined) } });
    expect(await ask(next.client, Sessions.method.getSession, create(GetSessionRequestSchema, { uid }))).toMatchObject({
      execState: ExecState.EXEC_AWAITING,
    });
    expect(wordsOf(await collect(stream(next.client, Sessions.method.exec, hello(uid)))).at(-1)).toBe("END COMPLETED");
  });

  it("ends open tails with a reason, and both callers of shutdown see the same end", async () => {
    const { server, client } = await start();
    const { metadata } = await ask(client, Sessions.method.createSession, newSession);
    const tail = stream(client, Journal.method.tail, create(TailRequestSchema, { session: metadata?.uid ?? "" }));
    const ended = collect(tail).catch((error: unknown) => error);
    await new Promise((resolve) => tail.once("data", resolve));
    await Promise.all([server.shutdown(), server.shutdown()]);
    expect(await ended).toMatchObject({ code: "unavailable", message: expect.stringContaining("shutting down") as string });
  });
});
