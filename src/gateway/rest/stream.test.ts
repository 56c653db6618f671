import { serve, type ServerType } from "@hono/node-server";
import { create, toBinary } from "@bufbuild/protobuf";
import { request as httpRequest, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { HoldfastError, invalidArgument } from "../../base/errors.ts";
import { fenceOf, seqOf } from "../../base/ids.ts";
import { SILENT_LOG } from "../../base/ports.ts";
import { EventKind, LogRecordSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { DeltaSchema, SessionSchema, type ReplayRequest } from "../../gen/agentsessions/v1/session_pb.ts";
import type { TailRequest } from "../../gen/holdfast/v1/journal_pb.ts";
import type { StoredRecord } from "../../journal/index.ts";
import type { CallContext, JournalService, SessionsService, StreamItem } from "../../service/contract.ts";
import { createRestApp, type RestOptions } from "./index.ts";

/** Pages and event streams over real HTTP. What is behind the door is scripted, so that every fault can be made to happen. */

interface Door {
  readonly url: string;
  readonly port: number;
}

interface Script {
  readonly sessions?: Partial<SessionsService>;
  readonly journal?: Partial<JournalService>;
  readonly options?: Partial<RestOptions>;
}

const listening: ServerType[] = [];
afterEach(async () => {
  for (const server of listening.splice(0)) {
    const closed = new Promise((resolve) => server.close(resolve));
    if ("closeAllConnections" in server) server.closeAllConnections();
    await closed;
  }
});

async function openDoor(script: Script): Promise<Door> {
  const app = createRestApp({
    toolCalls: {} as never,
    turns: {} as never,
    sessions: { ...script.sessions } as SessionsService,
    journal: { ...script.journal } as JournalService,
    health: { ready: () => Promise.resolve(), closing: new AbortController().signal },
    log: SILENT_LOG,
    authenticate: () => ({ identity: undefined }),
    loopbackOnly: true,
    ...script.options,
  });
  const server = await new Promise<ServerType>((resolve) => {
    const started = serve({ fetch: app.fetch, hostname: "127.0.0.1", port: 0, overrideGlobalObjects: false }, () => resolve(started));
  });
  listening.push(server);
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, port };
}

function record(seq: number, text = "hello"): StoredRecord {
  const message = create(LogRecordSchema, {
    seq: BigInt(seq),
    contentHash: "ab",
    fence: 1n,
    event: {
      executionId: "turn",
      kind: EventKind.EVENT_OUTPUT,
      body: { case: "message", value: { role: "assistant", parts: [{ part: { case: "text", value: { text } } }] } },
    },
  });
  return {
    seq: seqOf(seq),
    kind: EventKind.EVENT_OUTPUT,
    contentHash: "ab",
    fence: fenceOf(1),
    bytes: toBinary(LogRecordSchema, message),
  };
}

/** Ten records in pages of two. */
async function* replay(request: ReplayRequest): AsyncGenerator<readonly StoredRecord[]> {
  const to = request.toSeq === 0n ? 10 : Number(request.toSeq);
  for (let seq = Math.max(1, Number(request.fromSeq)); seq <= to; seq += 2) {
    yield seq < to ? [record(seq), record(seq + 1)] : [record(seq)];
  }
}

interface SseEvent {
  readonly event: string;
  readonly id: string | undefined;
  readonly data: Record<string, unknown>;
}

/** The events of a response as they arrive; comments are passed over. */
async function* eventsOf(response: Response): AsyncGenerator<SseEvent> {
  let buffered = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body!) {
    buffered += decoder.decode(chunk as Uint8Array, { stream: true });
    for (let end = buffered.indexOf("\n\n"); end >= 0; end = buffered.indexOf("\n\n")) {
      const block = buffered.slice(0, end);
      buffered = buffered.slice(end + 2);
      const field = (name: string): string | undefined =>
        block
          .split("\n")
          .find((line) => line.startsWith(`${name}: `))
          ?.slice(name.length + 2);
      const event = field("event");
      if (event !== undefined) yield { event, id: field("id"), data: JSON.parse(field("data")!) as Record<string, unknown> };
    }
  }
}

async function collect(events: AsyncIterable<SseEvent>): Promise<readonly SseEvent[]> {
  const seen: SseEvent[] = [];
  for await (const event of events) seen.push(event);
  return seen;
}

const post = (body: string, type = "application/json"): RequestInit => ({ method: "POST", body, headers: { "content-type": type } });

async function problem(response: Response): Promise<Record<string, unknown>> {
  expect(response.headers.get("content-type")).toBe("application/problem+json");
  return (await response.json()) as Record<string, unknown>;
}

describe("a page of records", () => {
  it("names where the next one begins, until the range is read", async () => {
    const door = await openDoor({ sessions: { replay } });
    const seqs: string[] = [];
    let next: string | undefined = "0";
    while (next !== undefined) {
      const page = (await (await fetch(`${door.url}/v1/sessions/u/records?limit=3&from_seq=${next}`)).json()) as {
        records: { seq: string }[];
        next_seq?: string;
      };
      seqs.push(...page.records.map((each) => each.seq));
      next = page.next_seq;
    }
    expect(seqs).toEqual(["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]);
  });

  it("ends at its limit of bytes and still has a record", async () => {
    const door = await openDoor({ sessions: { replay }, options: { limits: { pageBytesSoftMax: 1 } } });
    const page = (await (await fetch(`${door.url}/v1/sessions/u/records`)).json()) as Record<string, unknown>;
    expect(page).toMatchObject({ records: [{ seq: "1", event: { kind: "EVENT_OUTPUT" } }], next_seq: "2" });
  });
});

describe("an event stream", () => {
  const first: StreamItem = { kind: "session", session: create(SessionSchema, { metadata: { uid: "u-1" } }) };
  const items: readonly StreamItem[] = [
    first,
    { kind: "delta", delta: create(DeltaSchema, { executionId: "turn", chunk: "hel\nlo" }) },
    { kind: "record", record: record(4, "a\r\n\u2028b") },
  ];
  const all = async function* (): AsyncGenerator<StreamItem, void> {
    yield* items;
  };

  it("carries session, deltas and records, the seq as id on records only, and says its end", async () => {
    const door = await openDoor({ sessions: { exec: all } });
    const response = await fetch(`${door.url}/v1/sessions/u-1/exec`, post("{}"));
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
    const events = await collect(eventsOf(response));
    expect(events.map(({ event, id }) => [event, id])).toEqual([
      ["session", undefined],
      ["delta", undefined],
      ["record", "4"],
      ["end", undefined],
    ]);
    expect(events[1]!.data).toEqual({ execution_id: "turn", chunk: "hel\nlo" });
    expect(events[2]!.data).toMatchObject({ seq: "4", event: { message: { parts: [{ text: { text: "a\r\n\u2028b" } }] } } });
    expect(events[3]!.data).toEqual({ last_seq: "4" });
  });

  it("answers what is wrong before its first event as an HTTP status", async () => {
    const door = await openDoor({
      sessions: {
        async *exec() {
          throw invalidArgument("harness", "is not served here");
        },
      },
    });
    const response = await fetch(`${door.url}/v1/exec`, post("{}"));
    expect([response.status, await problem(response)]).toMatchObject([400, { field: "harness" }]);
  });

  it("answers what goes wrong later as its last event", async () => {
    const door = await openDoor({
      sessions: {
        exec: async function* () {
          yield first;
          throw new HoldfastError("aborted", "session: another turn runs");
        },
      },
    });
    const events = await collect(eventsOf(await fetch(`${door.url}/v1/exec`, post("{}"))));
    expect(events.map(({ event }) => event)).toEqual(["session", "error"]);
    expect(events[1]!.data).toMatchObject({ code: "aborted", status: 409, detail: "session: another turn runs" });
  });

  it("refuses a turn to a client that takes no events", async () => {
    const door = await openDoor({ sessions: { exec: all } });
    const response = await fetch(`${door.url}/v1/exec`, {
      ...post("{}"),
      headers: { "content-type": "application/json", accept: "application/json" },
    });
    expect([response.status, await problem(response)]).toMatchObject([406, { field: "Accept" }]);
  });

  it("resumes after Last-Event-ID, whatever from_seq says", async () => {
    const asked: TailRequest[] = [];
    const door = await openDoor({
      journal: {
        tail: async function* (request) {
          asked.push(request);
          yield first;
        },
      },
    });
    const headers = { accept: "text/event-stream", "last-event-id": "41" };
    await (await fetch(`${door.url}/v1/sessions/u/records?from_seq=7&until=idle&omit_deltas=true`, { headers })).text();
    expect(asked[0]).toMatchObject({ session: "u", fromSeq: 42n, until: 2, omitDeltas: true });
  });

  it("sends comments while nothing happens", async () => {
    const door = await openDoor({
      options: { limits: { heartbeatMs: 5 } },
      journal: { tail: (_, context) => quiet(context) },
    });
    const response = await fetch(`${door.url}/v1/sessions/u/records`, { headers: { accept: "text/event-stream" } });
    const decoder = new TextDecoder();
    let text = "";
    for await (const chunk of response.body!) {
      text += decoder.decode(chunk as Uint8Array);
      if (text.split(": keep-alive\n\n").length > 3) break;
    }
    expect(text).toContain("event: session");
  });

  it("tells the service when its client goes away", async () => {
    const gone = Promise.withResolvers<void>();
    const door = await openDoor({
      journal: {
        tail: async function* (_, context) {
          try {
            yield* quiet(context);
          } finally {
            gone.resolve();
          }
        },
      },
    });
    const client = new AbortController();
    const response = await fetch(`${door.url}/v1/sessions/u/records`, { headers: { accept: "text/event-stream" }, signal: client.signal });
    for await (const { event } of eventsOf(response)) if (event === "session") break;
    client.abort();
    await expect(gone.promise).resolves.toBeUndefined();
  });

  it("ends with UNAVAILABLE when the server gives it up", async () => {
    const closing = new AbortController();
    const health = { ready: () => Promise.resolve(), closing: closing.signal };
    const door = await openDoor({ options: { health }, journal: { tail: (_, context) => quiet(context) } });
    const response = await fetch(`${door.url}/v1/sessions/u/records`, { headers: { accept: "text/event-stream" } });
    const seen: SseEvent[] = [];
    for await (const event of eventsOf(response)) {
      seen.push(event);
      if (event.event === "session") closing.abort(new HoldfastError("unavailable", "the server is shutting down"));
    }
    expect(seen.map(({ event }) => event)).toEqual(["session", "error"]);
    expect(seen[1]!.data).toMatchObject({ code: "unavailable" });
  });

  it("takes from the service no faster than its client reads", async () => {
    const TOTAL = 4_000;
    let taken = 0;
    const wide = "x".repeat(16 * 1024);
    const door = await openDoor({
      journal: {
        tail: async function* () {
          for (let seq = 1; seq <= TOTAL; seq++) {
            taken = seq;
            yield { kind: "record", record: record(seq, wide) };
            if (seq % 16 === 0) await new Promise((resolve) => setImmediate(resolve));
          }
        },
      },
    });
    const path = "/v1/sessions/u/records";
    const response = await new Promise<IncomingMessage>((resolve) => {
      httpRequest({ port: door.port, path, headers: { accept: "text/event-stream" } }, resolve).end();
    });
    response.pause();
    // The server may fill the sockets' buffers and nothing more; it has stopped once a while brings no further item.
    let before = -1;
    while (taken !== before) {
      before = taken;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(taken).toBeLessThan(TOTAL / 2);
    let bytes = 0;
    for await (const chunk of response) bytes += (chunk as Buffer).length;
    expect(taken).toBe(TOTAL);
    expect(bytes).toBeGreaterThan(TOTAL * wide.length);
  });

  /** A stream that says what the session is and then waits for its end. */
  async function* quiet({ signal }: CallContext): AsyncGenerator<StreamItem, void> {
    yield first;
    await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }));
  }
});
