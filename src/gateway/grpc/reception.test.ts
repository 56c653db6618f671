import { setImmediate as nextTurn } from "node:timers/promises";
import { connect, type ClientHttp2Session, type ClientHttp2Stream } from "node:http2";
import { gzipSync } from "node:zlib";
import { create } from "@bufbuild/protobuf";
import { status as GrpcStatus } from "@grpc/grpc-js";
import { describe, expect, it, onTestFinished } from "vitest";
import { SEQ_NONE } from "../../base/index.ts";
import { GetSessionRequestSchema, Sessions } from "../../gen/agentsessions/v1/session_pb.ts";
import { Health, HealthCheckRequestSchema, HealthCheckResponse_ServingStatus } from "../../gen/grpc/health/v1/health_pb.ts";
import { SessionResponseSchema } from "../../gen/roz/v1/agent_pb.ts";
import type { AgentResponse, AgentService, JournalService } from "../../service/contract.ts";
import { ask, openDoor, session } from "../../../e2e/support/grpc-door.ts";

const GET = "/agentsessions.v1.Sessions/GetSession";
const TAIL = "/holdfast.v1.Journal/Tail";
const IMPORT = "/holdfast.v1.Journal/Import";
const CHECK = "/grpc.health.v1.Health/Check";
const WATCH = "/grpc.health.v1.Health/Watch";
const CONVERSE = "/roz.v1.AgentService/StreamSession";
const REFLECT = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

const get = create(GetSessionRequestSchema, { uid: "u" });
/** An upload that reads all and never answers. */
const importing: JournalService["import"] = async (requests) => {
  for await (const _ of requests);
  return new Promise<never>(() => undefined);
};
/** A conversation that hears everything and says nothing. */
const listening: AgentService["streamSession"] = async function* (requests) {
  for await (const _ of requests) yield* [];
};
const served = { sessions: { getSession: async () => session } };

/** A client that is no gRPC library and keeps no rule. */
function dial(address: string): ClientHttp2Session {
  const client = connect(`http://${address}`, { peerMaxConcurrentStreams: 1_000, maxSessionMemory: 1_000 });
  client.on("error", () => undefined);
  onTestFinished(() => client.destroy());
  return client;
}

interface RawCall {
  readonly stream: ClientHttp2Stream;
  /** The status that the call ends with. */
  readonly status: Promise<{ readonly code: number; readonly message: string; readonly field: string | undefined }>;
  /** Resolves when the stream is gone on both sides. */
  readonly closed: Promise<void>;
}

/** Begins a call; nothing of its message is sent. */
function begin(client: ClientHttp2Session, path: string, headers: Record<string, string> = {}): RawCall {
  const stream = client.request({ ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers", ...headers });
  stream.on("error", () => undefined);
  stream.resume();
  const status = Promise.withResolvers<Awaited<RawCall["status"]>>();
  const told = (trailers: Record<string, unknown>): void => {
    const code = trailers["grpc-status"];
    if (code === undefined) return;
    const field = trailers["holdfast-field"];
    const message = decodeURI(String(trailers["grpc-message"]));
    status.resolve({ code: Number(code), message, field: typeof field === "string" ? field : undefined });
  };
  stream.on("response", told);
  stream.on("trailers", told);
  return { stream, status: status.promise, closed: new Promise((resolve) => stream.once("close", () => resolve())) };
}

/** A message's frame, of which only `sent` bytes follow the head. */
function frame(length: number, sent = length): Buffer {
  const bytes = Buffer.alloc(5 + sent);
  bytes.writeUInt32BE(length, 1);
  return bytes;
}

describe("a caller without the token", () => {
  it.each([GET, TAIL, IMPORT])("is refused by its metadata, before it sends anything, and its stream is closed: %s", async (path) => {
    const { address, server } = await openDoor({ ...served, token: "sesame" });
    const call = begin(dial(address), path);
    expect(await call.status).toMatchObject({ code: GrpcStatus.UNAUTHENTICATED });
    await call.closed;
    expect(server.openCalls).toBe(0);
  });

  it("cannot make the server keep messages that it never ends: each call is refused, and its stream is gone", async () => {
    const { address, client } = await openDoor({ token: "sesame" });
    const attacker = dial(address);
    const calls = Array.from({ length: 300 }, (_, index) => {
      const call = begin(attacker, index % 2 === 0 ? GET : CHECK);
      call.stream.write(frame(4 << 20, 256 * 1024));
      return call;
    });
    const codes = await Promise.all(calls.map(async ({ status }) => (await status).code));
    expect(new Set(codes)).toEqual(new Set([GrpcStatus.UNAUTHENTICATED, GrpcStatus.RESOURCE_EXHAUSTED]));
    await Promise.all(calls.map(({ closed }) => closed));
    const { status } = await ask(client, Health.method.check, create(HealthCheckRequestSchema));
    expect(status).toBe(HealthCheckResponse_ServingStatus.SERVING);
  });

  it.each([
    ["a method that is not there", "/agentsessions.v1.Sessions/Nothing", {}],
    ["no gRPC", GET, { "content-type": "text/plain" }],
    ["another token", GET, { authorization: "Bearer wrong" }],
    ["too much metadata", GET, { "x-large": "x".repeat(17_000) }],
  ])("is not kept open by %s, whatever it goes on sending", async (_, path, headers) => {
    const { address } = await openDoor({ token: "sesame" });
    const call = begin(dial(address), path, headers);
    call.stream.write(frame(1 << 20, 40_000));
    await call.closed;
    expect(call.stream.closed).toBe(true);
  });

  it("may send so much to the public services, and no byte more", async () => {
    const { address } = await openDoor({ limits: { publicRequestBytesMax: 100 } });
    const fits = begin(dial(address), REFLECT);
    // An unknown field of 98 bytes.
    const message = frame(100);
    message.set([0x7a, 98], 5);
    fits.stream.end(message);
    expect((await fits.status).code).toBe(GrpcStatus.OK);
    const large = begin(dial(address), REFLECT);
    large.stream.write(frame(101, 0));
    expect(await large.status).toEqual({
      code: GrpcStatus.RESOURCE_EXHAUSTED,
      message: "request: must have at most 100 bytes",
      field: "request",
    });
  });

  it("keeps so many calls open: the oldest ends for the newest", async () => {
    const { address, client, server } = await openDoor({ token: "sesame", limits: { publicCallsMax: 3 } });
    const attacker = dial(address);
    const watches = [1, 2, 3].map(() => begin(attacker, WATCH));
    for (const { stream } of watches) stream.end(frame(0));
    await expect.poll(() => server.openCalls).toBe(3);
    const { status } = await ask(client, Health.method.check, create(HealthCheckRequestSchema));
    expect(status).toBe(HealthCheckResponse_ServingStatus.SERVING);
    expect((await watches[0]?.status)?.code).toBe(GrpcStatus.RESOURCE_EXHAUSTED);
    await expect.poll(() => server.openCalls).toBe(2);
    const third = begin(attacker, WATCH);
    third.stream.end(frame(0));
    await expect.poll(() => server.openCalls).toBe(3);
  });
});

describe("a message that does not come", () => {
  it.each([
    ["nothing of a unary call", GET, Buffer.alloc(0)],
    ["half a unary call", GET, frame(100, 50)],
    ["a whole message, and no end of the call", GET, frame(0)],
    ["half a stream's request", TAIL, frame(100, 50)],
    ["half a head", GET, frame(100).subarray(0, 3)],
    ["half a question of many", REFLECT, frame(100, 50)],
    ["half a piece of an upload", IMPORT, frame(100, 50)],
  ])("ends with a status after a time: %s", async (_, path, sent) => {
    const { address, server } = await openDoor({ ...served, journal: { import: importing }, limits: { requestTimeoutMs: 80 } });
    const call = begin(dial(address), path);
    if (sent.length > 0) call.stream.write(sent);
    expect(await call.status).toEqual({
      code: GrpcStatus.DEADLINE_EXCEEDED,
      message: "request: must arrive within 80 ms",
      field: "request",
    });
    await call.closed;
    await expect.poll(() => server.openCalls).toBe(0);
  });

  it("is no fault of a stream of requests that is silent between two", async () => {
    const { address } = await openDoor({ limits: { requestTimeoutMs: 40 } });
    const client = dial(address);
    const call = begin(client, REFLECT);
    call.stream.write(frame(0));
    const other = begin(client, GET);
    expect((await other.status).code).toBe(GrpcStatus.DEADLINE_EXCEEDED);
    call.stream.end(frame(0));
    expect((await call.status).code).toBe(GrpcStatus.OK);
  });
});

describe("messages that are arriving", () => {
  it("are kept up to a sum; the oldest makes room, and who sends without a pause is served", async () => {
    const { address, client } = await openDoor({ ...served, limits: { arrivingBytesMax: 1 << 20 } });
    const attacker = dial(address);
    const stalled = Array.from({ length: 8 }, () => begin(attacker, GET));
    const refused: number[] = [];
    stalled.forEach((call, index) => void call.status.then(({ code }) => code === GrpcStatus.RESOURCE_EXHAUSTED && refused.push(index)));
    for (const { stream } of stalled) stream.write(frame(1 << 20, 300 * 1024));
    await expect.poll(() => refused.length).toBeGreaterThan(3);
    const large = create(GetSessionRequestSchema, { uid: "x".repeat(500 * 1024) });
    expect(await ask(client, Sessions.method.getSession, large)).toEqual(session);
  });

  it("of a thousand calls at once are all served", async () => {
    const { client } = await openDoor(served);
    const answers = await Promise.all(Array.from({ length: 1_000 }, () => ask(client, Sessions.method.getSession, get)));
    expect(answers.length).toBe(1_000);
  });

  it("are refused in our words where they are too large, by their announcement: uploads too", async () => {
    const { address } = await openDoor({ ...served, journal: { import: importing }, limits: { requestBytesMax: 1_000 } });
    for (const path of [GET, TAIL, IMPORT]) {
      const call = begin(dial(address), path);
      call.stream.write(frame(1_001, 0));
      expect(await call.status).toEqual({
        code: GrpcStatus.RESOURCE_EXHAUSTED,
        message: "request: must have at most 1000 bytes",
        field: "request",
      });
      await call.closed;
    }
  });

  it("count as what they become when they are compressed", async () => {
    const limits = { arrivingBytesMax: 512 * 1024, publicRequestBytesMax: 1_000 };
    const { address } = await openDoor({ ...served, limits });
    const client = dial(address);
    const compressed = (bytes: number): Buffer => {
      const message = gzipSync(Buffer.alloc(bytes));
      const sent = frame(message.length);
      sent.writeUInt8(1, 0);
      sent.set(message, 5);
      return sent;
    };
    const gzip = { "grpc-encoding": "gzip" };
    const small = begin(client, GET, gzip);
    // A tag of number 0 is no field: it was decompressed and read.
    small.stream.end(compressed(1_000));
    expect(await small.status).toMatchObject({ code: GrpcStatus.INVALID_ARGUMENT });
    const open = begin(client, CHECK, gzip);
    open.stream.write(compressed(1_001));
    expect(await open.status).toMatchObject({ code: GrpcStatus.RESOURCE_EXHAUSTED, message: "request: must have at most 1000 bytes" });
    const bomb = begin(client, GET, gzip);
    bomb.stream.write(compressed(600 * 1024));
    expect(await bomb.status).toMatchObject({
      code: GrpcStatus.RESOURCE_EXHAUSTED,
      message: expect.stringContaining("arriving") as string,
    });
  });
});

/** A message that is empty, and whose first byte is this. */
function flagged(flag: number): Buffer {
  const sent = frame(0);
  sent.writeUInt8(flag, 0);
  return sent;
}

const FLAG = "request: must begin with 0, or with 1 where it is compressed as the call's grpc-encoding says";

describe("frames that are no gRPC", () => {
  const BROKEN_OFF = "request: must be whole: it was broken off within a message";
  const INVALID = { code: GrpcStatus.INVALID_ARGUMENT, field: "request" };

  it.each([GET, TAIL, IMPORT, CONVERSE])("end the call in our words: %s", async (path) => {
    const { address, server } = await openDoor({ ...served, journal: { import: importing }, agent: { streamSession: listening } });
    const client = dial(address);
    for (const sent of [frame(100, 50), frame(100).subarray(0, 3)]) {
      const call = begin(client, path);
      call.stream.end(sent);
      expect(await call.status).toEqual({ ...INVALID, message: BROKEN_OFF });
    }
    for (const [flag, headers] of [
      [1, {}],
      [2, {}],
      [255, { "grpc-encoding": "gzip" }],
    ] as const) {
      const call = begin(client, path, headers);
      call.stream.write(flagged(flag));
      expect(await call.status).toEqual({ ...INVALID, message: FLAG });
      await call.closed;
    }
    await expect.poll(() => server.openCalls).toBe(0);
  });
});

describe("a status", () => {
  const gzip = { "grpc-encoding": "gzip" };
  it.each([
    ["of a refusal", {}, flagged(2), { code: GrpcStatus.INVALID_ARGUMENT, message: FLAG }],
    ["for what cannot be decompressed", gzip, flagged(1), { code: GrpcStatus.INTERNAL }],
    ["of a deadline", { "grpc-timeout": "300m" }, Buffer.alloc(0), { code: GrpcStatus.DEADLINE_EXCEEDED }],
  ])("%s comes behind what was said before, whatever the handler goes on saying to a slow reader", async (_, headers, sent, status) => {
    let said = 0;
    const talking: AgentService["streamSession"] = async function* (requests, { signal }) {
      void Array.fromAsync(requests).catch(() => undefined);
      for (; !signal.aborted; said++) {
        yield textOf(said < 8 ? 16_384 : 1);
        await nextTurn();
      }
    };
    const { address, server } = await openDoor({ agent: { streamSession: talking } });
    const call = begin(dial(address), CONVERSE, headers);
    call.stream.pause();
    await expect.poll(() => said).toBeGreaterThan(8);
    if (sent.length > 0) call.stream.write(sent);
    // It has no room left once as much waits as may, which takes more turns of the event loop than a frame needs to arrive, and a deadline to pass.
    await expect.poll(() => said).toBeGreaterThan(200);
    await expect.poll(() => server.openCalls, { timeout: 5_000 }).toBe(1);
    call.stream.resume();
    expect(await call.status).toMatchObject(status);
    // grpc-js leaves the client's side open.
    call.stream.close();
    await call.closed;
    await expect.poll(() => server.openCalls).toBe(0);
  });
});

describe("a call that was refused", () => {
  it("is gone after a while, and its handler is told, where its client reads nothing", async () => {
    let said = 0;
    const talking: AgentService["streamSession"] = async function* (requests, { signal }) {
      void Array.fromAsync(requests).catch(() => undefined);
      for (; !signal.aborted; said++) {
        yield textOf(16_384);
        await nextTurn();
      }
    };
    const { address, server } = await openDoor({ agent: { streamSession: talking }, limits: { requestTimeoutMs: 80 } });
    const call = begin(dial(address), CONVERSE);
    call.stream.pause();
    await expect.poll(() => said).toBeGreaterThan(8);
    expect(server.openCalls).toBe(1);
    call.stream.write(flagged(2));
    await expect.poll(() => server.openCalls).toBe(0);
  });
});

function textOf(chars: number): AgentResponse {
  const value = { messageId: "m", content: "x".repeat(chars) };
  return { response: create(SessionResponseSchema, { response: { case: "textDelta", value } }), seq: SEQ_NONE };
}
