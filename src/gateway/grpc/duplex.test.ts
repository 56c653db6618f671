import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { credentials, Client, Metadata, status as GrpcStatus, type ClientDuplexStream, type StatusObject } from "@grpc/grpc-js";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Seq } from "../../base/index.ts";
import { StreamCursorSchema } from "../../gen/holdfast/v1/agent_stream_pb.ts";
import { SessionRequestSchema, SessionResponseSchema, type SessionRequest, type SessionResponse } from "../../gen/roz/v1/agent_pb.ts";
import type { AgentResponse, AgentService, Incoming, StreamContext } from "../../service/contract.ts";
import { openDoor } from "../../../e2e/support/grpc-door.ts";

type Handler = AgentService["streamSession"];

const asBytes = (bytes: Uint8Array): Buffer => Buffer.from(bytes);

interface Conversation {
  readonly call: ClientDuplexStream<Uint8Array, Uint8Array>;
  /** What came, decoded. */
  readonly responses: SessionResponse[];
  readonly headers: Promise<Metadata>;
  readonly status: Promise<StatusObject>;
}

/** A client of StreamSession that knows nothing but bytes. */
function converse(address: string, metadata: Readonly<Record<string, string>> = {}): Conversation {
  const client = new Client(address, credentials.createInsecure());
  onTestFinished(() => client.close());
  const sent = new Metadata();
  for (const [key, value] of Object.entries(metadata)) sent.set(key, value);
  const path = "/roz.v1.AgentService/StreamSession";
  const call = client.makeBidiStreamRequest<Uint8Array, Uint8Array>(path, asBytes, (bytes) => bytes, sent);
  const responses: SessionResponse[] = [];
  call.on("data", (bytes: Uint8Array) => responses.push(fromBinary(SessionResponseSchema, bytes)));
  call.on("error", () => undefined);
  const headers = new Promise<Metadata>((resolve) => call.once("metadata", resolve));
  const status = new Promise<StatusObject>((resolve) => call.once("status", resolve));
  return { call, responses, headers, status };
}

const ping = toBinary(SessionRequestSchema, create(SessionRequestSchema, { request: { case: "ping", value: {} } }));

function pong(seq: number): AgentResponse {
  return { response: create(SessionResponseSchema, { response: { case: "pong", value: {} } }), seq: seq as Seq };
}

/** Answers each request, and remembers what came. */
function answering(seen: Incoming<SessionRequest>[]): Handler {
  return async function* (requests) {
    for await (const request of requests) {
      seen.push(request);
      yield pong(seen.length);
    }
  };
}

describe("a call with streams both ways over gRPC", () => {
  it("answers each request while the client's side is open, and ends when that does", async () => {
    const seen: Incoming<SessionRequest>[] = [];
    const { address } = await openDoor({ agent: { streamSession: answering(seen) } });
    const { call, responses, status } = converse(address);
    for (let sent = 1; sent <= 3; sent++) {
      call.write(ping);
      await expect.poll(() => responses.length).toBe(sent);
    }
    call.end();
    expect((await status).code).toBe(GrpcStatus.OK);
    expect(seen.map(({ kind }) => kind)).toEqual(["message", "message", "message"]);
  });

  it("tells the handler what is no request, and goes on", async () => {
    const seen: Incoming<SessionRequest>[] = [];
    const { address } = await openDoor({ agent: { streamSession: answering(seen) } });
    const { call, responses } = converse(address);
    for (const bytes of [Uint8Array.of(0x0a, 0xff), ping]) call.write(bytes);
    await expect.poll(() => responses.length).toBe(2);
    expect(seen[0]).toMatchObject({ kind: "malformed", error: { code: "invalid_argument" } });
    expect(seen[1]?.kind).toBe("message");
  });

  it("gives the handler the call's metadata, and the client its headers before the first response", async () => {
    const seen: (string | undefined)[] = [];
    const streamSession: Handler = async function* (_, { metadata, announce }: StreamContext) {
      seen.push(metadata("holdfast-session"), metadata("nothing"));
      announce({ "holdfast-seq": "7" });
      yield pong(7);
    };
    const { address } = await openDoor({ agent: { streamSession } });
    const { headers, status } = converse(address, { "holdfast-session": "a" });
    expect((await headers).get("holdfast-seq")).toEqual(["7"]);
    await status;
    expect(seen).toEqual(["a", undefined]);
  });

  it("says with each response what its reader has seen, in a field that others pass over", async () => {
    const { address } = await openDoor({ agent: { streamSession: answering([]) } });
    const { call, responses } = converse(address);
    for (let sent = 0; sent < 2; sent++) call.write(ping);
    await expect.poll(() => responses.length).toBe(2);
    const cursors = responses.map(({ $unknown }) =>
      $unknown?.map(({ no, data }) => [no, fromBinary(StreamCursorSchema, data.subarray(1)).seq]),
    );
    expect(cursors).toEqual([[[15_000, 1n]], [[15_000, 2n]]]);
    expect(responses[0]?.response.case).toBe("pong");
  });

  it("holds a sender up that is faster than the handler", async () => {
    const go = Promise.withResolvers<void>();
    let taken = 0;
    const streamSession: Handler = async function* (requests) {
      await go.promise;
      for await (const _ of requests) taken += 1;
      yield pong(taken);
    };
    const { address } = await openDoor({ agent: { streamSession } });
    const { call, responses } = converse(address);
    const userMessage = { case: "userMessage", value: { content: "x".repeat(100_000) } } as const;
    const large = toBinary(SessionRequestSchema, create(SessionRequestSchema, { request: userMessage }));
    let held = false;
    for (let sent = 0; sent < 200; sent++) held = !call.write(large) || held;
    call.end();
    expect(held).toBe(true);
    go.resolve();
    await expect.poll(() => responses.length).toBe(1);
    expect(taken).toBe(200);
  });

  it("stops the handler when the client goes away", async () => {
    const stopped = Promise.withResolvers<string>();
    const streamSession: Handler = async function* (requests, { signal }) {
      signal.addEventListener("abort", () => stopped.resolve("aborted"));
      yield pong(1);
      for await (const _ of requests);
      // A client that goes away has ended its side as well; what tells the two apart comes right after.
      await stopped.promise;
    };
    const { address } = await openDoor({ agent: { streamSession } });
    const { call, responses } = converse(address);
    call.write(ping);
    await expect.poll(() => responses.length).toBe(1);
    call.cancel();
    expect(await stopped.promise).toBe("aborted");
  });

  it("tells a caller who is not let in so in the conversation, and then by its status", async () => {
    const { address } = await openDoor({ token: "secret", agent: { streamSession: answering([]) } });
    const { responses, status } = converse(address);
    expect((await status).code).toBe(GrpcStatus.UNAUTHENTICATED);
    expect(responses.map(({ response }) => response)).toMatchObject([
      { case: "error", value: { code: "unauthenticated", retryable: false } },
    ]);
  });
});
