import { connect } from "node:net";
import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { HoldfastError } from "../../base/index.ts";
import { ExecRequestSchema, ReplayRequestSchema, Sessions } from "../../gen/agentsessions/v1/session_pb.ts";
import { Journal, TailRequestSchema } from "../../gen/holdfast/v1/journal_pb.ts";
import { errorOfStatus, wrapRecord } from "../../grpc/index.ts";
import type { StreamItem } from "../../service/contract.ts";
import { collect, openDoor, rawStream, record, session, stream, untilAborted } from "../../../e2e/support/grpc-door.ts";

describe("a server-streaming call over gRPC", () => {
  it("sends stored records as they are, alone and inside updates", async () => {
    const items: StreamItem[] = [
      { kind: "session", session },
      { kind: "record", record: record(1) },
      { kind: "record", record: record(2, 0) },
    ];
    const { client } = await openDoor({
      sessions: {
        async *exec() {
          yield* items;
        },
        async *replay() {
          yield [record(1), record(2)];
          yield [];
          yield [record(3, 70_000)];
        },
      },
      journal: {
        async *tail() {
          yield* items;
        },
      },
    });
    const replayed = await collect(stream(client, Sessions.method.replay, create(ReplayRequestSchema)));
    expect(replayed.map((bytes) => [bytes[0], bytes.length])).toEqual([
      [1, 4],
      [2, 4],
      [3, 70_000],
    ]);
    const [first, second, third] = await collect(stream(client, Sessions.method.exec, create(ExecRequestSchema)));
    expect(first?.[0]).toBe(0x1a);
    expect(second).toEqual(wrapRecord(record(1).bytes));
    expect(third).toEqual(wrapRecord(new Uint8Array()));
    const tailed = await collect(stream(client, Journal.method.tail, create(TailRequestSchema)));
    expect(tailed[1]).toEqual(second);
  });

  it("sends many messages in order, whatever their sizes", async () => {
    const sizes = Array.from({ length: 5_000 }, (_, index) => (index % 100 === 0 ? 50_000 : index % 7));
    const { client } = await openDoor({
      sessions: {
        async *replay() {
          for (const [index, size] of sizes.entries()) yield [record(index % 256, size)];
        },
      },
    });
    const replayed = await collect(stream(client, Sessions.method.replay, create(ReplayRequestSchema)));
    expect(replayed.map((bytes) => bytes.length)).toEqual(sizes);
    expect(replayed.every((bytes, index) => bytes.every((byte) => byte === index % 256))).toBe(true);
  });

  it("tells an error after the messages that came before it", async () => {
    const { client } = await openDoor({
      sessions: {
        async *replay() {
          yield [record(1), record(2), record(3)];
          throw new HoldfastError("data_loss", "journal: record 4 cannot be read", { field: "session" });
        },
      },
    });
    const seen: number[] = [];
    const replay = stream(client, Sessions.method.replay, create(ReplayRequestSchema));
    replay.on("data", (bytes: Uint8Array) => seen.push(bytes[0] ?? 0));
    const error = await new Promise((resolve) => replay.on("error", resolve));
    expect(errorOfStatus(error)).toMatchObject({ code: "data_loss", field: "session" });
    expect(seen).toEqual([1, 2, 3]);
  });

  it("tells an error that comes before any message, thrown or of the request", async () => {
    const { client } = await openDoor({ token: "sesame" });
    await expect(collect(stream(client, Sessions.method.exec, create(ExecRequestSchema)))).rejects.toMatchObject({
      code: "unauthenticated",
    });
    const open = await openDoor();
    await expect(collect(stream(open.client, Sessions.method.exec, create(ExecRequestSchema)))).rejects.toMatchObject({
      code: "unimplemented",
    });
  });

  it("stops its handler when the client cancels, and cleans up after it", async () => {
    const ended = Promise.withResolvers<unknown>();
    const { client, server } = await openDoor({
      journal: {
        async *tail(_request, { signal }) {
          try {
            yield { kind: "session", session };
            await untilAborted(signal);
          } catch (error) {
            ended.resolve(error);
            throw error;
          }
        },
      },
    });
    const tail = stream(client, Journal.method.tail, create(TailRequestSchema));
    tail.on("error", () => undefined);
    await new Promise((resolve) => tail.once("data", resolve));
    tail.cancel();
    expect(await ended.promise).toMatchObject({ code: "cancelled" });
    await expect.poll(() => server.openCalls).toBe(0);
  });

  it("stops its handler when the connection is lost", async () => {
    const ended = Promise.withResolvers<unknown>();
    const { address, server } = await openDoor({
      journal: {
        async *tail(_request, { signal }) {
          yield { kind: "session", session };
          await untilAborted(signal).catch(ended.resolve);
        },
      },
    });
    const [host = "", port = ""] = address.split(":");
    const socket = connect({ host, port: Number(port) });
    const raw = rawStream(address, "/holdfast.v1.Journal/Tail", new Uint8Array(), socket);
    await new Promise((resolve) => raw.once("data", resolve));
    socket.destroy();
    expect(await ended.promise).toMatchObject({ code: "cancelled" });
    await expect.poll(() => server.openCalls).toBe(0);
  });

  it("ends at the call's deadline", async () => {
    const { client } = await openDoor({
      journal: {
        async *tail(_request, { signal }) {
          yield { kind: "session", session };
          await untilAborted(signal);
        },
      },
    });
    await expect(collect(stream(client, Journal.method.tail, create(TailRequestSchema), { deadlineMs: 60 }))).rejects.toMatchObject({
      code: "deadline_exceeded",
    });
  });
});

describe("a slow reader", () => {
  it("still gets the last records of a turn when the server closes", async () => {
    const { client, health, server } = await openDoor({
      sessions: {
        async *exec() {
          yield { kind: "session", session };
          health.close();
          yield { kind: "record", record: record(1) };
        },
      },
    });
    expect((await collect(stream(client, Sessions.method.exec, create(ExecRequestSchema)))).length).toBe(2);
    expect(server.openCalls).toBe(0);
  });

  it("cannot make the server's memory grow: its stream's source is paused", async () => {
    const size = 64 * 1024;
    let sent = 0;
    const { address } = await openDoor({
      limits: { streamBufferBytesMax: 4 * size },
      sessions: {
        async *replay() {
          for (; sent < 10_000; sent++) yield [record(1, size)];
        },
      },
    });
    const call = rawStream(address, "/agentsessions.v1.Sessions/Replay");
    call.pause();
    await new Promise((resolve) => call.once("response", resolve));
    // The source stands still once the buffers on the way are full: HTTP/2's window, the sockets', and ours.
    let before = -1;
    await expect.poll(() => sent === before || ((before = sent), false), { interval: 100 }).toBe(true);
    expect(sent).toBeLessThan(10 + 400);
    const stoodAt = sent;
    call.resume();
    await expect.poll(() => sent).toBeGreaterThan(stoodAt + 100);
  });
});
