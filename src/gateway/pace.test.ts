import { connect as connectHttp2 } from "node:http2";
import { connect, createServer, type AddressInfo } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished } from "vitest";
import { ask, openDoor, record, session } from "../../e2e/support/grpc-door.ts";
import { SILENT_LOG } from "../base/index.ts";
import { Health, HealthCheckRequestSchema } from "../gen/grpc/health/v1/health_pb.ts";
import type { JournalService, SessionsService, StreamItem } from "../service/contract.ts";
import { createHttp1Server } from "./http1.ts";
import { Pace } from "./pace.ts";
import { createRestApp } from "./rest/index.ts";

const SHARE_BYTES = 64 * 1024;
/** How much may be made while a short call is answered: everybody's first share, and one in each of the turns that the call takes. */
const MADE_MEANWHILE_BYTES = 16 * 1024 * 1024;
const READERS = 40;
const RECORD_BYTES = 1_024;

/** A journal without end that never makes its reader wait, and counts what was taken from it. */
function endlessJournal() {
  const taken = { bytes: 0 };
  const tail = async function* (): AsyncGenerator<StreamItem, void, undefined> {
    yield { kind: "session", session };
    for (;;) {
      taken.bytes += RECORD_BYTES;
      // Field 4 of a LogRecord, a text.
      const bytes = record(0x61, RECORD_BYTES).bytes;
      bytes.set([0x22, 0xfd, 0x07]);
      yield { kind: "record", record: { ...record(1), bytes } };
    }
  };
  return { taken, tail };
}

describe("the pace of streams", () => {
  it("asks for a turn once a share was made, and not before", async () => {
    const pace = new Pace();
    expect(pace.made(SHARE_BYTES - 1)).toBeUndefined();
    await expect(pace.made(1)).resolves.toBeUndefined();
    expect(pace.made(SHARE_BYTES - 1)).toBeUndefined();
  });

  it("gives one stream a share in each turn of the event loop, one after the other", async () => {
    const shares: number[] = [];
    let isOver = false;
    const streams = Array.from({ length: 5 }, async (_, index) => {
      const pace = new Pace();
      while (!isOver) {
        await pace.made(SHARE_BYTES);
        shares.push(index);
      }
    });
    for (let turn = 0; turn < 20; turn++) {
      const before = shares.length;
      await nextTurn();
      expect(shares.length - before).toBeLessThanOrEqual(1);
    }
    expect(shares.length).toBeGreaterThanOrEqual(10);
    expect(shares.slice(0, 10)).toEqual([0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
    isOver = true;
    await Promise.all(streams);
  });
});

describe("readers of a huge journal that never read", () => {
  it("do not keep others waiting: server-sent events", async () => {
    const { taken, tail } = endlessJournal();
    const journal: Partial<JournalService> = { tail };
    const app = createRestApp({
      toolCalls: {} as never,
      turns: {} as never,
      sessions: {} as SessionsService,
      journal: { ...journal } as JournalService,
      health: { ready: () => Promise.resolve(), closing: new AbortController().signal },
      log: SILENT_LOG,
      authenticate: () => ({ identity: undefined }),
      loopbackOnly: true,
    });
    const door = createHttp1Server(app);
    const listener = createServer((socket) => door.accept(socket));
    await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
    const { port } = listener.address() as AddressInfo;
    const readers = Array.from({ length: READERS }, () => {
      const reader = connect(port, "127.0.0.1").pause();
      reader.write("GET /v1/sessions/u/records HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n");
      return reader;
    });
    onTestFinished(async () => {
      for (const reader of readers) reader.destroy();
      listener.close();
      await door.close(0);
    });
    await expect.poll(() => taken.bytes, { interval: 1 }).toBeGreaterThan(0);
    const before = taken.bytes;
    expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200);
    expect(taken.bytes - before).toBeLessThan(MADE_MEANWHILE_BYTES);
  });

  it("do not keep others waiting: gRPC", async () => {
    const { taken, tail } = endlessJournal();
    const { address, client } = await openDoor({ journal: { tail } });
    const window = 2 ** 30;
    for (let index = 0; index < READERS; index++) {
      const reader = connectHttp2(`http://${address}`, { settings: { initialWindowSize: window } });
      reader.on("error", () => undefined);
      reader.once("connect", () => reader.setLocalWindowSize(window));
      onTestFinished(() => reader.destroy());
      const call = reader.request({ ":method": "POST", ":path": "/holdfast.v1.Journal/Tail", "content-type": "application/grpc" });
      call.on("error", () => undefined);
      call.pause().end(Buffer.alloc(5));
    }
    await expect.poll(() => taken.bytes, { interval: 1 }).toBeGreaterThan(0);
    const before = taken.bytes;
    await ask(client, Health.method.check, create(HealthCheckRequestSchema));
    expect(taken.bytes - before).toBeLessThan(MADE_MEANWHILE_BYTES);
  });
});
