import { create, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { HoldfastError } from "../base/errors.ts";
import { EventKind, LogRecordSchema, type Event, type LogRecord } from "../gen/agentsessions/v1/common_pb.ts";
import {
  DeltaSchema,
  ExecUpdateSchema,
  ListSessionsResponseSchema,
  SessionSchema,
  type ExecRequest,
  type ListSessionsRequest,
  type ListSessionsResponse,
  type ReplayRequest,
  type Session,
} from "../gen/agentsessions/v1/session_pb.ts";
import { TailUpdateSchema, type TailRequest } from "../gen/holdfast/v1/journal_pb.ts";
import { SeededRandom } from "../testing/ports.ts";
import { RecordingClock } from "../testing/recording-clock.ts";
import { createClient, type CallOptions, type Method, type SeqLike, type StreamItem, type Transport } from "./index.ts";

/** The client's own logic over a scripted transport: connections that break where a test says. */

type Frame = LogRecord | Session | ListSessionsResponse | { readonly chunk: string } | HoldfastError;
/** What each call of a method answers, in the order of the calls. */
type Script = Readonly<Record<string, readonly (readonly Frame[])[]>>;

class ScriptedTransport implements Transport {
  readonly clock = new RecordingClock();
  readonly ports = { clock: this.clock, random: new SeededRandom(7) };
  readonly requests: { readonly method: string; readonly request: unknown; readonly options: CallOptions }[] = [];
  readonly #script: Map<string, (readonly Frame[])[]>;

  constructor(script: Script) {
    this.#script = new Map(Object.entries(script).map(([method, calls]) => [method, [...calls]]));
  }

  async unary<Input extends DescMessage, Output extends DescMessage>(
    method: Method<Input, Output>,
    request: MessageShape<Input>,
    options: CallOptions = {},
  ): Promise<MessageShape<Output>> {
    const [frame] = this.#next(method.name, request, options);
    if (frame instanceof HoldfastError) throw frame;
    const answer: unknown = frame;
    return answer as MessageShape<Output>;
  }

  async *stream<Input extends DescMessage, Output extends DescMessage>(
    method: Method<Input, Output>,
    request: MessageShape<Input>,
    options: CallOptions = {},
  ): AsyncGenerator<MessageShape<Output>, void, undefined> {
    for (const frame of this.#next(method.name, request, options)) {
      options.signal?.throwIfAborted();
      if (frame instanceof HoldfastError) throw frame;
      yield (method.name === "Replay" ? frame : updateOf(frame, method.output)) as MessageShape<Output>;
    }
  }

  async upload<Input extends DescMessage, Output extends DescMessage>(
    method: Method<Input, Output>,
    requests: AsyncIterable<MessageShape<Input>>,
    options: CallOptions = {},
  ): Promise<MessageShape<Output>> {
    return this.unary(method, (await Array.fromAsync(requests)) as never, options);
  }

  async *streamBytes(): AsyncGenerator<Uint8Array, void, undefined> {
    yield new Uint8Array([1]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.requests.length = 0;
  }

  #next(method: string, request: unknown, options: CallOptions): readonly Frame[] {
    this.requests.push({ method, request, options });
    const frames = this.#script.get(method)?.shift();
    if (frames === undefined) throw new HoldfastError("internal", `${method} was called once more than scripted`);
    return frames;
  }
}

function updateOf(frame: Exclude<Frame, HoldfastError>, output: DescMessage): unknown {
  const schema = output.typeName === TailUpdateSchema.typeName ? TailUpdateSchema : ExecUpdateSchema;
  if ("chunk" in frame) return create(schema, { update: { case: "delta", value: create(DeltaSchema, frame) } });
  switch (frame.$typeName) {
    case "agentsessions.v1.Session":
      return create(schema, { update: { case: "session", value: frame } });
    case "agentsessions.v1.LogRecord":
      return create(schema, { update: { case: "record", value: frame } });
    case "agentsessions.v1.ListSessionsResponse":
      throw new Error("a page is no update");
  }
}

const lost = new HoldfastError("unavailable", "the server cannot be reached, or it closed the connection", { details: { grpcStatus: 14 } });
const session = (over: Partial<Session> = {}): Session => create(SessionSchema, { metadata: { uid: "u-1" }, ...over } as Session);
const record = (seq: number, body: Event["body"] = { case: undefined }, executionId = "turn"): LogRecord =>
  create(LogRecordSchema, { seq: BigInt(seq), event: { executionId, kind: EventKind.EVENT_OUTPUT, body } });
const ended = (seq: number, state: string, executionId = "turn"): LogRecord =>
  record(seq, { case: "end", value: { state } } as Event["body"], executionId);

async function collect(items: AsyncIterable<StreamItem>): Promise<string[]> {
  const seen: string[] = [];
  for await (const item of items) seen.push(shown(item));
  return seen;
}

function shown(item: StreamItem): string {
  if (item.kind === "record") return `#${item.record.seq}`;
  return item.kind === "delta" ? item.delta.chunk : item.kind;
}

/** What the items were before the error, and the error. */
async function collectUntilError(items: AsyncIterable<StreamItem>): Promise<[string[], HoldfastError]> {
  const seen: string[] = [];
  try {
    for await (const item of items) seen.push(shown(item));
  } catch (error) {
    return [seen, error as HoldfastError];
  }
  throw new Error("no error came");
}

describe("a tail", () => {
  const asked = (transport: ScriptedTransport): SeqLike[] => transport.requests.map(({ request }) => (request as TailRequest).fromSeq);

  it("goes on after a lost connection at the next seq, without loss or repetition", async () => {
    const transport = new ScriptedTransport({
      Tail: [
        [session(), record(1), record(2), lost],
        [lost],
        [session(), record(2), record(3), { chunk: "hel" }, lost],
        [session(), record(4)],
      ],
    });
    const items = await collect(createClient({ transport }).journal.tail("u-1"));
    expect(items).toEqual(["session", "#1", "#2", "session", "#3", "hel", "session", "#4"]);
    expect(asked(transport)).toEqual([1n, 3n, 3n, 4n]);
  });

  it("begins where it is told", async () => {
    const transport = new ScriptedTransport({ Tail: [[session(), record(41), lost], [record(42)]] });
    const options = { fromSeq: 41, until: "idle", deltas: false } as const;
    expect(await collect(createClient({ transport }).session("u-1").tail(options))).toEqual(["session", "#41", "#42"]);
    expect(asked(transport)).toEqual([41n, 42n]);
    expect(transport.requests[1]!.request).toMatchObject({ session: "u-1", until: 2, omitDeltas: true });
  });

  it("waits longer from attempt to attempt, and gives up after the last", async () => {
    const transport = new ScriptedTransport({ Tail: [[session(), record(1), lost], [lost], [lost], [lost]] });
    const reconnect = { attemptsMax: 3, delayMinMs: 100, delayMaxMs: 250 };
    const [items, error] = await collectUntilError(createClient({ transport }).journal.tail("u-1", { reconnect }));
    expect([items, error]).toEqual([["session", "#1"], lost]);
    const bounds = [100, 200, 250];
    expect(transport.clock.sleeps).toHaveLength(3);
    transport.clock.sleeps.forEach((ms, index) => {
      expect(ms).toBeGreaterThanOrEqual(bounds[index]! / 2);
      expect(ms).toBeLessThanOrEqual(bounds[index]!);
    });
  });

  it("begins to count anew when a record came", async () => {
    const calls = Array.from({ length: 8 }, (_, index) => [record(index + 1), lost]);
    const transport = new ScriptedTransport({ Tail: [...calls, [record(9)]] });
    const items = await collect(createClient({ transport }).journal.tail("u-1", { reconnect: { attemptsMax: 1 } }));
    expect(items).toHaveLength(9);
  });

  it("rejects at once when it is not to reconnect, and for every other error", async () => {
    const off = new ScriptedTransport({ Tail: [[record(1), lost]] });
    expect((await collectUntilError(createClient({ transport: off }).journal.tail("u-1", { reconnect: false })))[1]).toBe(lost);
    const gone = new HoldfastError("not_found", "session: there is none with this uid");
    const unknown = new ScriptedTransport({ Tail: [[gone]] });
    expect((await collectUntilError(createClient({ transport: unknown }).journal.tail("x")))[1]).toBe(gone);
    expect(unknown.requests).toHaveLength(1);
  });

  it("says so when a record is missing", async () => {
    const transport = new ScriptedTransport({ Tail: [[record(1), record(3)]] });
    const [items, error] = await collectUntilError(createClient({ transport }).journal.tail("u-1"));
    expect([items, error.code]).toEqual([["#1"], "data_loss"]);
  });

  it("stops waiting when its signal fires, with the signal's reason", async () => {
    const left = new AbortController();
    const transport = new ScriptedTransport({ Tail: [[record(1), lost]] });
    const reason = new Error("left");
    const seen: string[] = [];
    const reading = (async () => {
      for await (const item of createClient({ transport }).journal.tail("u-1", { signal: left.signal })) {
        seen.push(shown(item));
        left.abort(reason);
      }
    })();
    await expect(reading).rejects.toBe(reason);
    expect(seen).toEqual(["#1"]);
  });
});

describe("a turn's stream", () => {
  it("says which session, which turn, how far and how it ended", async () => {
    const transport = new ScriptedTransport({
      Exec: [[session(), record(1), { chunk: "hi" }, record(2), ended(3, "COMPLETED")]],
    });
    const turn = createClient({ transport }).sessions.exec({ inputs: ["hello", { role: "user", parts: [] }], deadline: new Date(1_500) });
    expect([turn.sessionUid, turn.executionId, turn.lastSeq, turn.end]).toEqual([undefined, undefined, 0n, undefined]);
    expect(await collect(turn)).toEqual(["session", "#1", "hi", "#2", "#3"]);
    expect([turn.sessionUid, turn.executionId, turn.lastSeq]).toEqual(["u-1", "turn", 3n]);
    expect(turn.end).toEqual({ kind: "ended", state: "COMPLETED" });
    const request = transport.requests[0]!.request as ExecRequest;
    expect(request).toMatchObject({ session: "", deadlineUnix: 2n });
    expect(request.inputs.map((input) => input.parts[0]?.part.value)).toMatchObject([{ text: "hello" }, undefined]);
    expect(request.expectedLastSeq).toBeUndefined();
  });

  it("tells an expected head of 0 from none", async () => {
    const transport = new ScriptedTransport({ Exec: [[ended(1, "COMPLETED")]] });
    await createClient({ transport }).session("u-1").exec({ expectedLastSeq: 0, config: "é" }).finish();
    expect(transport.requests[0]!.request).toMatchObject({ expectedLastSeq: 0n, config: new Uint8Array([0xc3, 0xa9]) });
  });

  it("picks its turn up when the stream is cut, and asks for it only once", async () => {
    const transport = new ScriptedTransport({
      Exec: [[session(), record(5), lost]],
      Tail: [
        [session(), record(6), lost],
        [session(), record(7), ended(8, "FAILED"), record(9)],
      ],
    });
    const turn = createClient({ transport }).sessions.exec({});
    expect(await collect(turn)).toEqual(["session", "#5", "session", "#6", "session", "#7", "#8"]);
    expect(turn.end).toEqual({ kind: "ended", state: "FAILED", error: undefined });
    expect(transport.requests.map(({ method }) => method)).toEqual(["Exec", "Tail", "Tail"]);
  });

  it("is whole when its connection is lost after its END", async () => {
    const transport = new ScriptedTransport({ Exec: [[session(), record(1), ended(2, "COMPLETED"), lost]] });
    expect(await createClient({ transport }).sessions.exec({}, { reconnect: false }).finish()).toEqual({
      kind: "ended",
      state: "COMPLETED",
    });
    expect(transport.requests).toHaveLength(1);
  });

  it("knows its turn by its start, where the session's RESUME comes before it", async () => {
    const transport = new ScriptedTransport({ Exec: [[session(), record(4, undefined, ""), record(5), ended(6, "COMPLETED")]] });
    const turn = createClient({ transport }).sessions.exec({ session: "u-1" });
    expect(await turn.finish()).toEqual({ kind: "ended", state: "COMPLETED" });
    expect(turn.executionId).toBe("turn");
  });

  it("does not mistake another turn's END for its own", async () => {
    const transport = new ScriptedTransport({
      Exec: [[session(), record(5), lost]],
      Tail: [[ended(6, "COMPLETED", "other"), ended(7, "CANCELED")]],
    });
    const turn = createClient({ transport }).sessions.exec({});
    expect(await turn.finish()).toEqual({ kind: "ended", state: "CANCELED" });
  });

  it("says that it was interrupted when its turn stopped without an END", async () => {
    const transport = new ScriptedTransport({ Exec: [[session(), record(5), lost]], Tail: [[session()]], GetSession: [[session()]] });
    const [items, error] = await collectUntilError(createClient({ transport }).sessions.exec({}));
    expect([items, error.code]).toEqual([["session", "#5", "session"], "aborted"]);
  });

  it("says that it waits for a decision, also when it was picked up", async () => {
    const pendingApproval = { executionId: "turn", toolCallId: "call", requestSeq: 6n } as NonNullable<Session["pendingApproval"]>;
    const parked = session({ pendingApproval });
    const direct = new ScriptedTransport({ Exec: [[session(), record(5), parked]] });
    expect(await createClient({ transport: direct }).sessions.exec({}).finish()).toMatchObject({
      kind: "parked",
      approval: { toolCallId: "call" },
    });
    const cut = new ScriptedTransport({ Exec: [[session(), record(5), lost]], Tail: [[session(), record(6)]], GetSession: [[parked]] });
    expect(await createClient({ transport: cut }).sessions.exec({}).finish()).toMatchObject({ kind: "parked" });
  });

  it("is not picked up before a record of its turn came, nor when it is not to be", async () => {
    const early = new ScriptedTransport({ Exec: [[session(), lost]] });
    expect((await collectUntilError(createClient({ transport: early }).sessions.exec({})))[1]).toBe(lost);
    const off = new ScriptedTransport({ Exec: [[session(), record(1), lost]] });
    const turn = createClient({ transport: off }).sessions.exec({}, { reconnect: false });
    expect((await collectUntilError(turn))[1]).toBe(lost);
    expect([turn.sessionUid, turn.lastSeq]).toEqual(["u-1", 1n]);
  });
});

describe("a listing", () => {
  const page = (uids: readonly string[], nextPageToken: string): ListSessionsResponse =>
    create(ListSessionsResponseSchema, { sessions: uids.map((uid) => ({ metadata: { uid } })), nextPageToken });

  it("asks for page after page, as they are read", async () => {
    const transport = new ScriptedTransport({ ListSessions: [[page(["a", "b"], "t1")], [page([], "t2")], [page(["c"], "")]] });
    const list = createClient({ transport }).sessions.list({ project: "p", pageSize: 2 });
    expect(transport.requests).toHaveLength(0);
    const uids: (string | undefined)[] = [];
    for await (const each of list) uids.push(each.metadata?.uid);
    expect(uids).toEqual(["a", "b", "c"]);
    expect(transport.requests.map(({ request }) => (request as ListSessionsRequest).pageToken)).toEqual(["", "t1", "t2"]);
    expect(transport.requests[2]!.request).toMatchObject({ project: "p", pageSize: 2 });
  });

  it("stops asking when its reader has enough", async () => {
    const transport = new ScriptedTransport({ ListSessions: [[page(["a", "b"], "t1")]] });
    for await (const each of createClient({ transport }).sessions.list()) if (each.metadata?.uid === "a") break;
    expect(transport.requests).toHaveLength(1);
  });

  it("gives pages to those who want them", async () => {
    const transport = new ScriptedTransport({ ListSessions: [[page(["a"], "t1")], [page(["b"], "")]] });
    const tokens: string[] = [];
    for await (const each of createClient({ transport }).sessions.list().pages()) tokens.push(each.nextPageToken);
    expect(tokens).toEqual(["t1", ""]);
  });
});

describe("a request", () => {
  it("takes seqs as numbers or bigints and refuses what is none", async () => {
    const transport = new ScriptedTransport({ Replay: [[record(2)]] });
    const { sessions } = createClient({ transport });
    expect(await collect(sessions.replay("u-1", { fromSeq: 2, toSeq: 2n ** 60n }))).toEqual(["#2"]);
    expect(transport.requests[0]!.request).toMatchObject({ fromSeq: 2n, toSeq: 2n ** 60n } satisfies Partial<ReplayRequest>);
    expect(() => sessions.replayBytes("u-1", { fromSeq: 0.5 })).toThrow("fromSeq: must be a whole number");
  });

  it("leaves out of a new session what was not given", async () => {
    const transport = new ScriptedTransport({ CreateSession: [[session()]] });
    await createClient({ transport }).sessions.create({ name: "n", labels: { a: "b" } });
    expect(transport.requests[0]!.request).toMatchObject({ session: { metadata: { name: "n", project: "" }, labels: { a: "b" } } });
  });
});
