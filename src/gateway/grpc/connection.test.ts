import { connect, type Socket } from "node:net";
import { connect as connectHttp2 } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { status as GrpcStatus } from "@grpc/grpc-js";
import { describe, expect, it, onTestFinished } from "vitest";
import { GetSessionRequestSchema, ListSessionsRequestSchema, Sessions } from "../../gen/agentsessions/v1/session_pb.ts";
import { Journal, TailRequestSchema, VerifyResponseSchema } from "../../gen/holdfast/v1/journal_pb.ts";
import { ask, collect, openDoor, session, stream, untilAborted } from "../../../e2e/support/grpc-door.ts";

const get = create(GetSessionRequestSchema, { uid: "u" });

describe("the limits of a connection", () => {
  it("are told to its client: open calls", async () => {
    const { address } = await openDoor({ limits: { streamsPerConnectionMax: 7 } });
    const client = connectHttp2(`http://${address}`);
    onTestFinished(() => client.destroy());
    const settings = await new Promise<{ maxConcurrentStreams?: number }>((resolve) => client.once("remoteSettings", resolve));
    expect(settings.maxConcurrentStreams).toBe(7);
  });

  it("are kept against a client that does not care: a call too many is refused, the others go on", async () => {
    const { address, server } = await openDoor({
      limits: { streamsPerConnectionMax: 2 },
      journal: {
        async *tail(_request, { signal }) {
          yield { kind: "session", session };
          await untilAborted(signal);
        },
      },
    });
    // Three calls in the first flight, before the server's settings have arrived.
    const client = connectHttp2(`http://${address}`, { peerMaxConcurrentStreams: 100 });
    client.on("error", () => undefined);
    onTestFinished(() => client.destroy());
    const outcomes = [1, 2, 3].map(() => {
      const call = client.request({
        ":method": "POST",
        ":path": "/holdfast.v1.Journal/Tail",
        "content-type": "application/grpc",
        te: "trailers",
      });
      call.end(Buffer.alloc(5));
      return new Promise<string>((resolve) => {
        call.once("data", () => resolve("served"));
        call.once("error", (error: NodeJS.ErrnoException) => resolve(error.message));
      });
    });
    const told = await Promise.all(outcomes);
    expect(told.filter((outcome) => outcome === "served").length).toBe(2);
    expect(told.find((outcome) => outcome !== "served")).toContain("NGHTTP2_REFUSED_STREAM");
    expect(server.openCalls).toBe(2);
  });

  it("drop a peer that is frozen: it answers no ping", async () => {
    const { address, listener } = await openDoor({ limits: { keepaliveIntervalMs: 50, keepaliveTimeoutMs: 50 } });
    const [host = "", port = ""] = address.split(":");
    const frozen: Socket = connect({ host, port: Number(port) });
    onTestFinished(() => void frozen.destroy());
    frozen.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    frozen.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]));
    frozen.resume();
    await new Promise((resolve) => frozen.once("close", resolve));
    await expect.poll(() => listener.connections).toBe(0);
  });
});

describe("closing", () => {
  it("ends open streams with the reason, and lets calls that are nearly done be done", async () => {
    const finish = Promise.withResolvers<void>();
    const { client, health, server } = await openDoor({
      sessions: {
        getSession: async () => {
          await finish.promise;
          return session;
        },
      },
      journal: {
        async *tail(_request, { signal }) {
          yield { kind: "session", session };
          await untilAborted(signal);
        },
      },
    });
    const tail = collect(stream(client, Journal.method.tail, create(TailRequestSchema)));
    const unary = ask(client, Sessions.method.getSession, get);
    await expect.poll(() => server.openCalls).toBe(2);
    health.close();
    const closed = server.close(5_000);
    await expect(tail).rejects.toMatchObject({ code: "unavailable", message: "host: it is shutting down" });
    finish.resolve();
    expect(await unary).toEqual(session);
    await closed;
    expect(server.openCalls).toBe(0);
  });

  it("cuts off what does not end in time", async () => {
    const { client, health, server } = await openDoor({ journal: { verify: () => new Promise(() => undefined) } });
    const stuck = ask(client, Journal.method.verify, toBinary(VerifyResponseSchema, create(VerifyResponseSchema)));
    await expect.poll(() => server.openCalls).toBe(1);
    health.close();
    const closed = server.close(50);
    await expect(stuck).rejects.toMatchObject({ facts: { grpc: expect.toSatisfy((code) => code !== GrpcStatus.OK) as number } });
    await closed;
  });

  it("refuses what arrives afterwards", async () => {
    const { client, health } = await openDoor({ sessions: { listSessions: async (_request, { signal }) => untilAborted(signal) } });
    health.close();
    const late = ask(client, Sessions.method.listSessions, create(ListSessionsRequestSchema));
    await expect(late).rejects.toMatchObject({ facts: { grpc: expect.toSatisfy((code) => code !== GrpcStatus.OK) as number } });
  });
});
