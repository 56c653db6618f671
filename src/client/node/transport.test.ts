import { create } from "@bufbuild/protobuf";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { HoldfastError } from "../../base/errors.ts";
import { SILENT_LOG } from "../../base/ports.ts";
import { IdentityRefSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { createGrpcServer, type GrpcServer } from "../../gateway/grpc/server.ts";
import type { Health } from "../../gateway/contract.ts";
import { decodeLogRecord } from "../../canon/index.ts";
import { cryptoRandom, nodeDigest, systemClock } from "../../node/index.ts";
import { ALLOW_ALL, createJournalService, createSessionsService, createToolCallsService, createTurnsService } from "../../service/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import { harnessCatalog, testHarness, TestHost, type HarnessRun } from "../../testing/index.ts";
import { createClient, ExecState, type Client, type StreamItem } from "../index.ts";
import { createNodeTransport, type NodeTransportOptions } from "./index.ts";

/** A certificate for localhost that signs itself, and its key: for these tests, and worth nothing elsewhere. */
const TEST_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQglBrZMzZN8+nFwGAC
XOZCMgQ0pa6H+oanJH7yN2j4I2OhRANCAARdQ96kP42SEyQQwLJvAJ1zQBz9Q4Kj
HNmcbdK0fcHvnco0OmnmOCKxw7JV6aorYqsqRzDCqXx+sU+dj0tQ34/O
-----END PRIVATE KEY-----
`;
const TEST_CERT = `-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUegXhFYDk9sHa8V2yF0TuwxRlqR4wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEzMDEyMjQwNFoYDzIxMjYxMTA2
MTIyNDA0WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAARdQ96kP42SEyQQwLJvAJ1zQBz9Q4KjHNmcbdK0fcHvnco0OmnmOCKx
w7JV6aorYqsqRzDCqXx+sU+dj0tQ34/Oo28wbTAdBgNVHQ4EFgQUgdFF5b2VmVkS
16hzM8iuOMe8JCowHwYDVR0jBBgwFoAUgdFF5b2VmVkS16hzM8iuOMe8JCowDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIhAKZsLrzUOSe3l0gDh4pHzkpbVYEZ4rQ97oWT6xaMMIYFAiBD
h9XfnQx7Rsp42FvgM8LmJMCDXMzR+MpZfNWy+miApQ==
-----END CERTIFICATE-----
`;

/** The SDK over real gRPC: real sockets, the real front door, services, controller and store. */

interface Bench {
  readonly address: string;
  readonly server: GrpcServer;
  readonly client: (options?: Partial<NodeTransportOptions>) => Client;
  /** Cuts every connection, as a network does. New ones are taken. */
  readonly cut: () => void;
}

const ports = { clock: systemClock, random: cryptoRandom, digest: nodeDigest };
const health: Health = {
  state: "serving",
  watch: () => () => undefined,
  ready: () => Promise.resolve(),
  closing: new AbortController().signal,
};

async function bench(run: HarnessRun = async (_, sink) => sink.output("hello")): Promise<Bench> {
  const journal = createMemoryStore(ports);
  const harnesses = { test: testHarness(run) };
  const host = new TestHost({ journal, ports, harnesses });
  const shared = { journal, controller: host.controller, harnesses: harnessCatalog(harnesses), authorizer: ALLOW_ALL, ports };
  const server = createGrpcServer({
    sessions: createSessionsService({ ...shared, defaults: { harness: "test", model: "m" } }),
    journal: createJournalService(shared),
    toolCalls: createToolCallsService(shared),
    turns: createTurnsService(shared),
    health,
    log: SILENT_LOG,
    authenticate: (authorization) => {
      if (authorization === "Bearer wrong") throw new HoldfastError("unauthenticated", "authorization: is not the server's token");
      const principal = authorization?.replace("Bearer ", "");
      return { identity: principal === undefined ? undefined : create(IdentityRefSchema, { principal }) };
    },
  });
  const sockets = new Set<Socket>();
  const listener = await listening(
    createServer((socket) => {
      sockets.add(socket.on("error", () => undefined));
      server.accept(socket);
    }),
  );
  const clients: Client[] = [];
  const address = `127.0.0.1:${(listener.address() as AddressInfo).port}`;
  onTestFinished(async () => {
    for (const client of clients) await client[Symbol.asyncDispose]();
    for (const socket of sockets) socket.destroy();
    listener.close();
    await host[Symbol.asyncDispose]();
  });
  return {
    address,
    server,
    client(options) {
      const client = createClient({ transport: createNodeTransport({ address, ...options }) });
      clients.push(client);
      return client;
    },
    cut() {
      for (const socket of sockets) socket.destroy();
      sockets.clear();
    },
  };
}

function listening(server: Server): Promise<Server> {
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

const shown = (item: StreamItem): string => {
  if (item.kind === "record") return `#${item.record.seq}`;
  return item.kind === "delta" ? item.delta.chunk : item.kind;
};

async function collect(items: AsyncIterable<StreamItem>): Promise<string[]> {
  const seen: string[] = [];
  for await (const item of items) seen.push(shown(item));
  return seen;
}

describe("the SDK over gRPC", () => {
  it("creates, runs, reads, replays, verifies, lists, deletes", async () => {
    const client = (await bench()).client();
    const { metadata } = await client.sessions.create({ name: "n", labels: { a: "b" } });
    const session = client.session(metadata!.uid);
    const turn = session.exec({ inputs: ["hi", "there"] });
    expect(await collect(turn)).toEqual(["session", "#1", "#2", "#3", "#4", "#5"]);
    expect([turn.end, turn.lastSeq]).toEqual([{ kind: "ended", state: "COMPLETED" }, 5n]);
    expect(await session.get()).toMatchObject({ lastSeq: 5n, execState: ExecState.EXEC_COMPLETED, labels: { a: "b" } });
    expect(await collect(session.replay({ fromSeq: 2, toSeq: 3 }))).toEqual(["#2", "#3"]);
    const seqs: bigint[] = [];
    for await (const bytes of client.sessions.replayBytes(session.uid)) seqs.push(decodeLogRecord(bytes).seq);
    expect(seqs).toEqual([1n, 2n, 3n, 4n, 5n]);
    expect(await session.verify()).toMatchObject({ intact: true, records: 5n });
    expect(await collect(session.tail({ fromSeq: 4, until: "head" }))).toEqual(["session", "#4", "#5"]);
    await session.delete();
    for await (const listed of client.sessions.list()) expect(listed).toBeUndefined();
  });

  it("lists across pages, each session once", async () => {
    const client = (await bench()).client();
    const made = new Set<string>();
    for (let index = 0; index < 7; index++) made.add((await client.sessions.create()).metadata!.uid);
    const listed: string[] = [];
    for await (const session of client.sessions.list({ pageSize: 3 })) listed.push(session.metadata!.uid);
    expect(listed).toHaveLength(7);
    expect(new Set(listed)).toEqual(made);
  });

  it("rebuilds the server's errors: code, message and field", async () => {
    const client = (await bench()).client();
    const error = await client.sessions.get("nobody").catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(HoldfastError);
    expect(error).toMatchObject({ code: "not_found", field: "uid", message: expect.stringContaining("uid") as string });
    await expect(client.sessions.create({ harness: "unknown" })).rejects.toMatchObject({
      code: "invalid_argument",
      field: "session.harness",
    });
    await expect(collect(client.sessions.exec({ expectedLastSeq: 7 }))).rejects.toMatchObject({
      code: "aborted",
      field: "expected_last_seq",
    });
    await expect(collect(client.sessions.replay("nobody"))).rejects.toMatchObject({ code: "not_found", field: "session" });
  });

  it("sends the token with every call, as it is at that moment", async () => {
    let token = "ada";
    const client = (await bench()).client({ token: () => token });
    const turn = client.sessions.exec({ inputs: "hi" });
    const actors: (string | undefined)[] = [];
    for await (const item of turn) if (item.kind === "record") actors.push(item.record.event?.actor?.principal);
    expect(actors).toContain("ada");
    token = "wrong";
    await expect(client.sessions.get(turn.sessionUid!)).rejects.toMatchObject({ code: "unauthenticated" });
  });

  it("says that nobody answers, without naming addresses", async () => {
    const gone = await listening(createServer());
    const { port } = gone.address() as AddressInfo;
    await new Promise((resolve) => gone.close(resolve));
    const client = createClient({ transport: createNodeTransport({ address: `127.0.0.1:${port}` }) });
    onTestFinished(() => client[Symbol.asyncDispose]());
    const error = (await client.sessions.get("u").catch((thrown: unknown) => thrown)) as HoldfastError;
    expect([error.code, error.message.includes("127.0.0.1")]).toEqual(["unavailable", false]);
  });

  it("says that it was closed, whatever it is asked for then", async () => {
    const client = createClient({ transport: createNodeTransport({ address: "127.0.0.1:1" }) });
    await client[Symbol.asyncDispose]();
    const closed = { code: "failed_precondition", message: "client: it was closed; make another one" };
    const chunks = (async function* () {
      yield new Uint8Array();
    })();
    await expect(client.sessions.get("u")).rejects.toMatchObject(closed);
    await expect(collect(client.sessions.exec({ session: "u" }))).rejects.toMatchObject(closed);
    await expect(collect(client.journal.tail("u"))).rejects.toMatchObject(closed);
    await expect(client.journal.import(chunks)).rejects.toMatchObject(closed);
  });

  it("ends a call at its time limit", async () => {
    const silent = await listening(createServer((socket) => void socket.on("error", () => undefined).resume()));
    onTestFinished(() => void silent.close());
    const { port } = silent.address() as AddressInfo;
    const client = createClient({ transport: createNodeTransport({ address: `127.0.0.1:${port}`, unaryTimeoutMs: 50 }) });
    onTestFinished(() => client[Symbol.asyncDispose]());
    await expect(client.sessions.get("u")).rejects.toMatchObject({ code: "deadline_exceeded" });
    await expect(collect(client.journal.tail("u", { timeoutMs: 50 }))).rejects.toMatchObject({ code: "deadline_exceeded" });
  });

  it("rejects with the reason of the caller's signal, and tells the server", async () => {
    const { client, server } = await bench(waitForCancel);
    const left = new AbortController();
    const reason = new Error("left");
    const turn = client().sessions.exec({}, { signal: left.signal });
    const reading = (async () => {
      for await (const item of turn) if (item.kind === "record") left.abort(reason);
    })();
    await expect(reading).rejects.toBe(reason);
    await client().sessions.cancel(turn.sessionUid!);
    await expect(client().sessions.get("u", { signal: left.signal })).rejects.toBe(reason);
    await idle(server);
  });

  it("cancels the call of a stream that its reader leaves; the turn goes on", async () => {
    const goOn = Promise.withResolvers<void>();
    const { client, server } = await bench(async (_, sink) => {
      await goOn.promise;
      await sink.output("done");
    });
    const turn = client().sessions.exec({});
    for await (const item of turn) if (item.kind === "record") break;
    await idle(server);
    goOn.resolve();
    const rest = client().journal.tail(turn.sessionUid!, { fromSeq: turn.lastSeq + 1n, until: "idle" });
    expect(await collect(rest)).toEqual(["session", "#2", "#3"]);
  });

  it("picks a turn up after its connection was cut: every record once, and its end", async () => {
    const steps = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
    const { client, cut } = await bench(async (_, sink) => {
      await sink.output("one");
      await steps[0].promise;
      await sink.output("two");
      await steps[1].promise;
      await sink.output("three");
    });
    const turn = client().sessions.exec({}, { reconnect: { delayMinMs: 1, attemptsMax: 50 } });
    const seqs: bigint[] = [];
    for await (const item of turn) {
      if (item.kind !== "record") continue;
      seqs.push(item.record.seq);
      if (item.record.seq === 2n || item.record.seq === 3n) {
        cut();
        steps[item.record.seq === 2n ? 0 : 1].resolve();
      }
    }
    expect(seqs).toEqual([1n, 2n, 3n, 4n, 5n]);
    expect(turn.end).toEqual({ kind: "ended", state: "COMPLETED" });
  });

  it("tails through many cuts without loss or repetition", async () => {
    const { client, cut } = await bench(async (_, sink) => {
      for (let index = 0; index < 300; index++) await sink.output(`line ${index}`);
    });
    // grpc-js has a wait of its own when a connection is cut before it stands; the attempts must outlast it.
    const often = { delayMinMs: 1, delayMaxMs: 20, attemptsMax: 500 };
    const uid = (await client().sessions.create()).metadata!.uid;
    const tail = client().journal.tail(uid, { reconnect: often });
    const turn = client().session(uid).exec({}, { reconnect: often });
    // A turn can be picked up from its first record on.
    for (let item = await turn[Symbol.asyncIterator]().next(); item.value?.kind !== "record";)
      item = await turn[Symbol.asyncIterator]().next();
    const end = turn.finish();
    const seqs: number[] = [];
    for await (const item of tail) {
      if (item.kind !== "record") continue;
      seqs.push(Number(item.record.seq));
      if (seqs.length % 40 === 0) cut();
      if (item.record.event?.body.case === "end") break;
    }
    expect(seqs).toEqual(Array.from({ length: 302 }, (_, index) => index + 1));
    expect(await end).toEqual({ kind: "ended", state: "COMPLETED" });
  });

  it("speaks TLS to a server whose certificate it can check, and to no other", async () => {
    const { server } = await bench();
    const listener = createTlsServer({ key: TEST_KEY, cert: TEST_CERT, ALPNProtocols: ["h2"] }, (socket) => {
      server.accept(socket.on("error", () => undefined));
    });
    await listening(listener);
    onTestFinished(() => void listener.close());
    const address = `https://127.0.0.1:${(listener.address() as AddressInfo).port}`;
    const trusting = createClient({ transport: createNodeTransport({ address, tls: { ca: TEST_CERT } }) });
    expect((await trusting.sessions.create()).harness).toBe("test");
    const strict = createClient({ transport: createNodeTransport({ address }) });
    await expect(strict.sessions.create()).rejects.toMatchObject({ code: "unavailable" });
    for (const client of [trusting, strict]) await client[Symbol.asyncDispose]();
  });

  it("speaks over a unix socket", async () => {
    const { server } = await bench();
    const folder = mkdtempSync(join(tmpdir(), "holdfast-"));
    const path = join(folder, "server.sock");
    const listener = createServer((socket) => server.accept(socket.on("error", () => undefined)));
    await new Promise<void>((resolve) => listener.listen(path, resolve));
    const client = createClient({ transport: createNodeTransport({ address: `unix://${path}` }) });
    onTestFinished(async () => {
      await client[Symbol.asyncDispose]();
      listener.close();
      rmSync(folder, { recursive: true });
    });
    expect((await client.sessions.create()).harness).toBe("test");
  });

  it("is read no faster than its consumer takes it", async () => {
    const { client } = await bench(async (_, sink) => {
      for (let index = 0; index < 400; index++) await sink.output("x".repeat(64 * 1024));
    });
    const turn = client().sessions.exec({});
    await turn.finish();
    const before = process.memoryUsage().arrayBuffers;
    let seen = 0;
    for await (const { record } of client().sessions.replay(turn.sessionUid!)) {
      seen++;
      expect(record.seq).toBe(BigInt(seen));
      if (seen === 5) {
        // Long enough for all 25 MB to come, were they asked for.
        await new Promise((resolve) => setTimeout(resolve, 200));
        expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * 1024 * 1024);
      }
    }
    expect(seen).toBe(402);
  });
});

const waitForCancel: HarnessRun = (_start, _sink, { signal }) =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }));

/** Resolves when the server has no open call. */
async function idle(server: GrpcServer): Promise<void> {
  await expect.poll(() => server.openCalls).toBe(0);
}
