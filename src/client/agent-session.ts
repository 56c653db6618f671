/**
 * A conversation over as many connections as it takes.
 *
 * Invariants:
 * - The text and the reasoning that were handed out, less what was retracted, are those of a stream that was never cut. Each ToolRequest, each
 *   question and each TurnComplete is handed out once.
 * - A message is given once: it is sent again only while nothing shows that its turn began. A result and a decision are sent again whenever the
 *   server asks for them again.
 */

import { HoldfastError } from "../base/errors.ts";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { StartSessionSchema, UserMessageSchema } from "../gen/roz/v1/agent_pb.ts";
import type { AgentEvent } from "./agent-events.ts";
import { AgentStream, type AgentRequest } from "./agent-stream.ts";
import { AgentWork, type AgentToolResult } from "./agent-work.ts";
import { DeltaTail, type RetractedChars } from "./delta-tail.ts";
import { Attempts, isConnectionLost, reconnectPolicy, type ReconnectOptions } from "./reconnect.ts";
import { wireSeq, type SeqLike } from "./seqs.ts";
import type { Transport } from "./transport.ts";

/** Which conversation, and how it is kept up. */
export interface AgentSessionOptions {
  /** The uid of a session to go on with. Left out: a new one, as `start` says. */
  readonly session?: string | undefined;
  /** With `session`: the last seq that was seen. Left out: from the start of the open turn, or from the head. */
  readonly fromSeq?: SeqLike | undefined;
  /** What a new session begins with: environment, model, tools, history. Default: the server's default environment, no tools. */
  readonly start?: MessageInitShape<typeof StartSessionSchema> | undefined;
  /** What happens when the connection is lost; `false`: the events reject with UNAVAILABLE. */
  readonly reconnect?: ReconnectOptions | false | undefined;
  /** Ends the events with its reason. The session stays as it is. */
  readonly signal?: AbortSignal | undefined;
}

/** Requests that may wait for a connection. */
const QUEUED_MAX = 64;

/** One event of a conversation. */
export type AgentSessionEvent =
  | AgentEvent
  /** So many characters at the end of the current turn's text and reasoning are void: a model call that was cut was made anew. */
  | { readonly kind: "retracted"; readonly chars: RetractedChars }
  /** A person is asked whether a tool may run: to be answered with `decide`. */
  | { readonly kind: "question"; readonly callId: string }
  /** The message was refused, and no turn began; the `error` before it says why. */
  | { readonly kind: "refused"; readonly messageId: string }
  /** The connection was lost, and is made anew; or it is there again, and what was missed comes next. */
  | { readonly kind: "connection"; readonly state: "lost" | "restored" };

/**
 * A conversation. Its events are iterated once; the connection is made with the first read and kept up until the server ends the session, the
 * signal fires or the consumer leaves. Everything else may be called at any time, connected or not.
 */
export class AgentSession implements AsyncIterable<AgentSessionEvent>, AsyncDisposable {
  readonly #transport: Transport;
  readonly #options: AgentSessionOptions;
  readonly #work = new AgentWork();
  readonly #tail = new DeltaTail();
  readonly #events: AsyncGenerator<AgentSessionEvent, void, undefined>;
  readonly #left = new AbortController();
  #uid: string | undefined;
  #cursor: bigint | undefined;
  #isStarted = false;
  /** Whether the server can attach to a session that there is. */
  #canGoOn = false;
  #stream: AgentStream | undefined;
  /** Whether the stream has told all that was missed, and so what is under way. */
  #isCaughtUp = false;
  /** The greatest seq that came with a delta since the cursor: such a delta may be of that record or of one after it. */
  #deltaSeq = 0n;
  /** What waits for a connection, beside what `#work` keeps. */
  readonly #queue: AgentRequest[] = [];

  constructor(transport: Transport, options: AgentSessionOptions) {
    this.#transport = transport;
    this.#options = options;
    this.#uid = options.session;
    this.#cursor = options.fromSeq === undefined ? undefined : wireSeq(options.fromSeq, "fromSeq");
    this.#events = this.#run();
  }

  /** The session's uid; undefined until the server named one that it made. */
  get uid(): string | undefined {
    return this.#uid;
  }

  /** The seq up to which everything was handed out; undefined until the server said so. With it and the uid another client can go on. */
  get cursor(): bigint | undefined {
    return this.#cursor;
  }

  /** Whether a turn runs or is about to. */
  get isBusy(): boolean {
    return this.#work.isBusy;
  }

  /** The id of the message whose turn runs or is about to; undefined where none is or it is not known yet. */
  get messageId(): string | undefined {
    return this.#work.messageId;
  }

  [Symbol.asyncIterator](): AsyncGenerator<AgentSessionEvent, void, undefined> {
    return this.#events;
  }

  /**
   * Begins a turn; the id of its message, which is the given one or a new one. What is wrong with the message is told by `error` and `refused`. Throws FAILED_PRECONDITION while a turn of this client's runs or
   * is about to. Where somebody else's turn runs, the message waits until that is over.
   */
  say(message: string | MessageInitShape<typeof UserMessageSchema>): string {
    const given = typeof message === "string" ? { content: message } : message;
    if (this.#work.isBusy) throw new HoldfastError("failed_precondition", "turn: one is running; wait until it is complete, or cancel it");
    const messageId = given.messageId ?? this.#newId();
    this.#work.say({ ...given, messageId });
    this.#flush();
    return messageId;
  }

  /** Answers a ToolRequest. The same answer is given whenever the server asks again. */
  answer(callId: string, result: AgentToolResult): void {
    const request = this.#work.answer(callId, result);
    void this.#stream?.send(request);
  }

  /** Answers a question. Where somebody else was faster their answer holds. */
  decide(callId: string, approved: boolean): void {
    const request = this.#work.decide(callId, approved);
    void this.#stream?.send(request);
  }

  /** Cancels the turn that runs: it completes with the stop reason `cancelled`. Does nothing where none runs. */
  cancelTurn(reason = ""): void {
    this.#work.cancel(reason);
    this.#flush();
  }

  /**
   * Sends something else: tools of a source, feedback, a ping, the end of the session. It waits for a connection where there is none, at most
   * 64 of them (RESOURCE_EXHAUSTED).
   */
  send(request: Extract<AgentRequest, { readonly case: "registerTools" | "feedback" | "ping" | "cancelSession" }>): void {
    if (this.#queue.length >= QUEUED_MAX)
      throw new HoldfastError("resource_exhausted", `session: ${QUEUED_MAX} requests wait for a connection`);
    this.#queue.push(request);
    this.#flush();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#left.abort(new HoldfastError("cancelled", "session: its client has left it"));
    await this.#events.return();
  }

  async *#run(): AsyncGenerator<AgentSessionEvent, void, undefined> {
    const { reconnect, signal } = this.#options;
    const attempts = new Attempts(reconnectPolicy(reconnect), this.#transport.ports);
    const either = signal === undefined ? this.#left.signal : AbortSignal.any([signal, this.#left.signal]);
    for (let isFirst = true; ; isFirst = false) {
      try {
        yield* this.#connection(isFirst, attempts, either);
        return;
      } catch (error) {
        if (this.#left.signal.aborted) return;
        // A session that never stood, or a server that cannot attach to one, has nothing to go back to.
        if (!isConnectionLost(error) || !this.#canGoOn) throw error;
        this.#lose();
        yield { kind: "connection", state: "lost" };
        await attempts.afterLoss(error, either);
      }
    }
  }

  /** One connection, until the server ends it. */
  async *#connection(isFirst: boolean, attempts: Attempts, signal: AbortSignal): AsyncGenerator<AgentSessionEvent, void, undefined> {
    await using stream = new AgentStream(this.#transport, { session: this.#uid, fromSeq: this.#cursor, signal });
    const isNew = this.#uid === undefined;
    if (isNew) void stream.send({ case: "start", value: this.#options.start ?? {} });
    const attachment = await stream.attached;
    if (attachment !== undefined) {
      // Of a session that is new there is nothing to miss.
      if (this.#uid === undefined) this.#cursor = attachment.headSeq;
      this.#uid = attachment.session;
      this.#canGoOn = true;
    }
    this.#stream = stream;
    if (!isFirst) yield { kind: "connection", state: "restored" };
    let isAfterDelta = false;
    let isForNow = false;
    for await (const event of stream) {
      // A server that takes no stream for now says so, and is not asked again at once.
      if (event.kind !== "error" && event.kind !== "cursor") attempts.progress();
      yield* this.#take(event, isAfterDelta);
      isAfterDelta = event.kind === "text" || event.kind === "thinking";
      if (event.kind !== "cursor") isForNow = event.kind === "error" && event.error.retryable;
      if (event.kind === "activity" || (isNew && event.kind === "started")) this.#isCaughtUp = true;
      this.#flush();
    }
    if (isForNow) throw new HoldfastError("unavailable", "session: the server ended its stream for now");
  }

  /** `isAfterDelta`: whether the event before was a delta, with which a cursor came then. */
  *#take(event: AgentEvent, isAfterDelta: boolean): Generator<AgentSessionEvent, void, undefined> {
    const { isNews, question, refused, reply } = this.#work.take(event);
    if (reply !== undefined) void this.#stream?.send(reply);
    switch (event.kind) {
      case "started":
        if (this.#isStarted) return;
        this.#isStarted = true;
        this.#uid = event.started.sessionId;
        break;
      case "text":
      case "thinking":
        return yield* this.#takeDelta(event);
      case "cursor":
        if (!this.#advances(event.seq, isAfterDelta)) return;
        yield* retraction(this.#tail.cover());
        break;
      case "tool-request":
      case "turn-complete":
      case "compacted":
        yield* retraction(this.#tail.settle());
        break;
      case "error":
      case "keepalive":
      case "pong":
      case "presence":
      case "activity":
    }
    if (isNews) yield event;
    if (question !== undefined) yield { kind: "question", callId: question };
    if (refused !== undefined) yield { kind: "refused", messageId: refused };
  }

  /** Whether the cursor moves. What comes with a delta may be the delta's own record or the one before it, so it does not move for that. */
  #advances(seq: bigint, isAfterDelta: boolean): boolean {
    if (isAfterDelta && seq > this.#deltaSeq) this.#deltaSeq = seq;
    if (isAfterDelta || seq <= this.#deltaSeq || (this.#cursor !== undefined && seq <= this.#cursor)) return false;
    this.#cursor = seq;
    this.#deltaSeq = 0n;
    return true;
  }

  *#takeDelta(event: Extract<AgentEvent, { readonly kind: "text" | "thinking" }>): Generator<AgentSessionEvent, void, undefined> {
    const { retracted, fresh } = this.#tail.take(event.kind, event.delta.content);
    yield* retraction(retracted);
    if (fresh === "") return;
    event.delta.content = fresh;
    yield event;
  }

  /** Sends what has waited, once all that was missed has come: what was given may have arrived before the connection was lost. */
  #flush(): void {
    if (this.#stream === undefined || !this.#isCaughtUp) return;
    for (const request of [...this.#queue.splice(0), ...this.#work.due()]) void this.#stream.send(request);
  }

  #lose(): void {
    this.#stream = undefined;
    this.#isCaughtUp = false;
    this.#deltaSeq = 0n;
    this.#work.lose();
    this.#tail.rewind();
  }

  /** 128 bits of chance: ids that two clients give do not meet. */
  #newId(): string {
    return Array.from(this.#transport.ports.random.bytes(16), (byte) => byte.toString(16).padStart(2, "0")).join("");
  }
}

function* retraction(chars: RetractedChars | undefined): Generator<AgentSessionEvent, void, undefined> {
  if (chars !== undefined) yield { kind: "retracted", chars };
}
