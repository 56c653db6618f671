/**
 * A server of `roz.v1.AgentService` that plays one session: real gRPC, a journal in a list, one turn that the test scripts, and a connection
 * that is cut where the test says. It shows what a client must live with, and no more.
 */

import { create, fromBinary, toBinary, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { Metadata, Server, ServerCredentials, status, type ServerDuplexStream } from "@grpc/grpc-js";
import { onTestFinished } from "vitest";
import { StreamCursorSchema } from "../../src/gen/holdfast/v1/agent_stream_pb.ts";
import { SessionRequestSchema, SessionResponseSchema, type SessionRequest, type ToolResult } from "../../src/gen/roz/v1/agent_pb.ts";

type Said = NonNullable<MessageInitShape<typeof SessionResponseSchema>["response"]>;
type Call = ServerDuplexStream<SessionRequest, Uint8Array>;

/** What a scripted turn can do. */
export interface Play {
  readonly messageId: string;
  /** Streams a piece of reasoning or of the answer. */
  delta(kind: "thinkingDelta" | "textDelta", content: string): Promise<void>;
  /** A record is durable; the pieces since the last one are in it. */
  commit(): Promise<void>;
  tool(callId: string, name: string, args: JsonObject): Promise<ToolResult>;
  ask(callId: string): Promise<boolean>;
  /** The model call that was cut is made anew: its pieces so far are void. */
  again(): void;
  complete(stopReason: string): Promise<void>;
}

/** When the connection is cut: at the n-th message of that direction, before it has any effect or right after. */
export interface Cut {
  readonly at: "sent" | "received";
  readonly message: number;
  readonly effect: "lost" | "had";
}

interface Entry {
  readonly seq: bigint;
  readonly responses: readonly Said[];
}

export class PlayedAgent {
  readonly uid = "played-1";
  readonly received: SessionRequest[] = [];
  /** How many messages went each way. */
  readonly count = { sent: 0, received: 0 };
  attachments = 0;
  readonly #turn: (play: Play) => Promise<void>;
  readonly #cut: Cut | undefined;
  readonly #entries: Entry[] = [];
  #partial: Said[] = [];
  #call: Call | undefined;
  #running: string | undefined;
  readonly #open = new Map<string, { readonly asked: Said; readonly settle: (answer: SessionRequest["request"]) => void }>();

  constructor(turn: (play: Play) => Promise<void>, cut?: Cut) {
    this.#turn = turn;
    this.#cut = cut;
  }

  get headSeq(): bigint {
    return BigInt(this.#entries.length);
  }

  /** Takes a new stream. */
  accept(call: Call): void {
    call.on("error", () => undefined);
    call.on("data", (request: SessionRequest) => this.#receive(call, request));
    call.on("end", () => call.end());
    const [session] = call.metadata.get("holdfast-session");
    if (session === undefined) return;
    const [from] = call.metadata.get("holdfast-from-seq");
    this.#attach(call, BigInt(String(from ?? "0")));
  }

  #attach(call: Call, fromSeq: bigint): void {
    this.#call = call;
    this.attachments++;
    const headers = new Metadata();
    headers.set("holdfast-session", this.uid);
    headers.set("holdfast-seq", this.headSeq.toString());
    call.sendMetadata(headers);
    this.#send({ case: "sessionStarted", value: { sessionId: this.uid, model: "played" } });
    for (const { seq, responses } of this.#entries.filter((entry) => entry.seq > fromSeq)) {
      // The record itself comes with the last thing that it says.
      for (const [index, response] of responses.entries()) this.#send(response, index === responses.length - 1 ? seq : seq - 1n);
      if (responses.length === 0) this.#send(undefined, seq);
    }
    for (const response of this.#partial) this.#send(response, this.headSeq);
    this.#send({ case: "activityUpdate", value: { state: this.#running === undefined ? "idle" : "thinking" } }, this.headSeq);
    for (const { asked } of this.#open.values()) this.#send(asked);
  }

  #send(response: Said | undefined, seq?: bigint): void {
    const call = this.#call;
    if (call === undefined) return;
    this.count.sent++;
    const cut = this.#cut?.at === "sent" && this.#cut.message === this.count.sent ? this.#cut : undefined;
    if (cut?.effect !== "lost") call.write(encoded(response, seq));
    if (cut !== undefined) this.#drop(call);
  }

  #drop(call: Call): void {
    this.#call = undefined;
    call.emit("error", { code: status.UNAVAILABLE, details: "cut" });
  }

  #receive(call: Call, request: SessionRequest): void {
    if (this.#call !== undefined && this.#call !== call) return;
    this.count.received++;
    const cut = this.#cut?.at === "received" && this.#cut.message === this.count.received ? this.#cut : undefined;
    if (cut?.effect !== "lost") this.#handle(call, request);
    if (cut !== undefined) this.#drop(call);
  }

  #handle(call: Call, { request }: SessionRequest): void {
    this.received.push(create(SessionRequestSchema, { request }));
    if (request.case === "start") return this.#attach(call, 0n);
    if (request.case === "userMessage") return this.#begin(request.value.messageId ?? "");
    const callId = request.case === "toolResult" || request.case === "permissionDecision" ? request.value.toolCallId : "";
    const open = this.#open.get(callId);
    if (open === undefined) return this.#send({ case: "error", value: { code: "unknown_tool_call", message: "no such call" } });
    this.#open.delete(callId);
    open.settle(request);
  }

  #begin(messageId: string): void {
    if (this.#running !== undefined) return this.#send({ case: "error", value: { code: "turn_in_progress", message: "a turn runs" } });
    this.#running = messageId;
    this.#commit([]);
    void this.#turn(this.#play(messageId));
  }

  #commit(responses: readonly Said[]): void {
    const seq = this.headSeq + 1n;
    this.#entries.push({ seq, responses });
    this.#send(undefined, seq);
  }

  #play(messageId: string): Play {
    const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    return {
      messageId,
      delta: async (kind, content) => {
        // That the model is asked is a record that says nothing.
        if (this.#partial.length === 0) this.#entries.push({ seq: this.headSeq + 1n, responses: [] });
        const piece: Said = { case: kind, value: { messageId, content } };
        this.#partial.push(piece);
        // The record before it: a piece is of none yet.
        this.#send(piece, this.headSeq);
        await tick();
      },
      commit: async () => {
        const pieces = this.#partial;
        this.#partial = [];
        this.#commit(pieces);
        await tick();
      },
      tool: async (callId, toolName, parameters) => {
        const answer = await this.#ask(callId, {
          case: "toolRequest",
          value: { toolCallId: callId, toolName, parameters, timeoutMs: 1_000 },
        });
        if (answer.case !== "toolResult") throw new Error("a tool request must have a result");
        return answer.value;
      },
      ask: async (callId) => {
        const answer = await this.#ask(callId, { case: "activityUpdate", value: { state: "waiting_approval", detail: callId } });
        return answer.case === "permissionDecision" && answer.value.approved;
      },
      again: () => {
        this.#partial = [];
      },
      complete: async (stopReason) => {
        this.#running = undefined;
        const complete: Said = { case: "turnComplete", value: { messageId, stopReason, usage: { inputTokens: 3, outputTokens: 2 } } };
        this.#entries.push({ seq: this.headSeq + 1n, responses: [complete] });
        this.#send(complete, this.headSeq);
      },
    };
  }

  async #ask(callId: string, asked: Said): Promise<SessionRequest["request"]> {
    this.#commit([]);
    const answer = await new Promise<SessionRequest["request"]>((settle) => {
      this.#open.set(callId, { asked, settle });
      this.#send(asked);
    });
    this.#commit([]);
    return answer;
  }
}

/** Serves a played agent on a port of its own; its address. */
export async function servePlayed(agent: PlayedAgent): Promise<string> {
  const server = new Server();
  const service = {
    StreamSession: {
      path: "/roz.v1.AgentService/StreamSession",
      requestStream: true,
      responseStream: true,
      requestSerialize: (request: SessionRequest) => Buffer.from(toBinary(SessionRequestSchema, request)),
      requestDeserialize: (bytes: Buffer) => fromBinary(SessionRequestSchema, bytes),
      responseSerialize: (bytes: Uint8Array) => Buffer.from(bytes),
      responseDeserialize: (bytes: Buffer) => bytes,
    },
  };
  server.addService(service, { StreamSession: (call: Call) => agent.accept(call) });
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  onTestFinished(() => server.forceShutdown());
  return `127.0.0.1:${port}`;
}

function encoded(response: Said | undefined, seq: bigint | undefined): Uint8Array {
  const message = create(SessionResponseSchema, response === undefined ? {} : { response });
  if (seq !== undefined) {
    const data = new BinaryWriter().bytes(toBinary(StreamCursorSchema, create(StreamCursorSchema, { seq }))).finish();
    message.$unknown = [{ no: 15_000, wireType: WireType.LengthDelimited, data }];
  }
  return toBinary(SessionResponseSchema, message);
}
