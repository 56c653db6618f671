/**
 * StreamSession: requests as they come, responses as they are made, for as long as both want.
 *
 * Invariants:
 * - Requests are answered one after the other, in their order. While too many responses wait for their reader no further request is read.
 * - What is wrong with a request is a SessionError, and the conversation goes on; it ends only where it could not begin.
 * - The stream is its client's, and the session is not: whatever happens to the one, the other goes on.
 */

import { create } from "@bufbuild/protobuf";
import { invalidArgument, toHoldfastError, type HoldfastError } from "../../base/errors.ts";
import { DeletionState } from "../../gen/agentsessions/v1/session_pb.ts";
import {
  SessionResponseSchema,
  SessionStartedSchema,
  PongSchema,
  type SessionRequest,
  type StartSession,
} from "../../gen/roz/v1/agent_pb.ts";
import type { SessionRow } from "../../journal/index.ts";
import { accessSession } from "../access.ts";
import type { AgentResponse, Incoming, StreamContext } from "../contract.ts";
import { permissionRules, plainEnvironment } from "../environment/index.ts";
import { atHead, attachRequestOf, HEAD_SEQ_KEY, positionOf, SESSION_KEY, type AttachRequest, type Position } from "./attach-request.ts";
import { AttachedSession } from "./attached.ts";
import { SessionNotes } from "./client-notes.ts";
import { placeOf, type AgentHost } from "./host.ts";
import { Outbox } from "./outbox.ts";
import { Refusal, saidOf } from "./session-error.ts";
import { startSession } from "./start-session.ts";
import { answer, cancelSession, cancelTurn, decide, keepFeedback, registerTools, say } from "./turns.ts";

/** See `AgentService.streamSession`. */
export async function* streamSession(
  host: AgentHost,
  requests: AsyncIterable<Incoming<SessionRequest>>,
  context: StreamContext,
): AsyncGenerator<AgentResponse, void, undefined> {
  const stream = new SessionStream(host, context);
  const onAbort = (): void => stream.close();
  context.signal.addEventListener("abort", onAbort, { once: true });
  try {
    void stream.read(requests);
    for await (const { said, seq } of stream.outbox.leaving()) {
      yield { response: create(SessionResponseSchema, said === undefined ? {} : { response: said }), seq };
    }
  } finally {
    context.signal.removeEventListener("abort", onAbort);
    stream.close();
  }
}

class SessionStream {
  readonly outbox: Outbox;
  readonly #host: AgentHost;
  readonly #context: StreamContext;
  #attached: AttachedSession | undefined;

  constructor(host: AgentHost, context: StreamContext) {
    this.#host = host;
    this.#context = context;
    this.outbox = new Outbox(host.limits.responsesWaitingMax, host.limits.charsWaitingMax);
  }

  /** Reads and answers requests until there are no more, or the stream has ended. Never rejects. */
  async read(requests: AsyncIterable<Incoming<SessionRequest>>): Promise<void> {
    try {
      const asked = attachRequestOf(this.#context);
      if (asked !== undefined) await this.#reattach(asked);
      for await (const incoming of requests) {
        // What came after the stream had ended, or had lost its session, was said to nobody.
        if (this.outbox.isEnded) return;
        await this.#handle(incoming);
        if (!this.outbox.hasRoom) await this.outbox.room();
      }
      if (this.#attached === undefined) this.outbox.end();
      else this.#attached.lastWord();
    } catch (error) {
      // A stream that has ended takes no more requests, and nobody hears what becomes of one: that is no fault.
      if (this.outbox.isEnded) return this.close();
      this.#say(toHoldfastError(error));
      this.close({ isWhole: true });
    }
  }

  /** Ends the stream; what waits is dropped unless it is to be whole. */
  close({ isWhole = false } = {}): void {
    this.#attached?.close();
    if (isWhole) this.outbox.end();
    else this.outbox.close();
  }

  async #handle(incoming: Incoming<SessionRequest>): Promise<void> {
    if (incoming.kind === "malformed") return this.#say(incoming.error);
    const { request } = incoming.message;
    if (request.case === "ping") return this.#pong();
    if (request.case === "start") return this.#start(request.value);
    try {
      await this.#answer(request);
    } catch (error) {
      this.#say(toHoldfastError(error));
    }
  }

  async #answer(request: Exclude<SessionRequest["request"], { readonly case: "ping" | "start" }>): Promise<void> {
    const attached = this.#attached;
    if (request.case === undefined) throw invalidArgument("request", "must have one of the requests of a session");
    if (attached === undefined) throw new Refusal("no_session", "session: start one first");
    switch (request.case) {
      case "userMessage":
        return say(this.#host, attached, request.value, this.#context);
      case "toolResult":
        return answer(this.#host, attached, request.value);
      case "permissionDecision":
        return decide(this.#host, attached, request.value, this.#context);
      case "cancelTurn":
        return cancelTurn(this.#host, attached, request.value, this.#context);
      case "cancelSession":
        return cancelSession(this.#host, attached, request.value.reason, this.#context);
      case "registerTools":
        return registerTools(this.#host, attached, request.value);
      case "feedback":
        return keepFeedback(this.#host, attached, request.value, this.#context);
    }
  }

  /** A session that cannot be started ends the stream; a second one does not. */
  async #start(start: StartSession): Promise<void> {
    if (this.#attached !== undefined) return this.#say(new Refusal("already_started", "session: this stream has one already"));
    this.#refuseMany();
    const { row, notes } = await startSession(this.#host, start, this.#context);
    this.#attach(row, notes, { position: atHead(row), isNew: true });
  }

  async #reattach({ session, fromSeq }: AttachRequest): Promise<void> {
    this.#refuseMany();
    const row = await accessSession(this.#host, "session.exec", session, "session", this.#context);
    if (row.projection.deletionState !== DeletionState.DELETION_ACTIVE) throw new Refusal("no_session", "session: it was deleted");
    const position = await positionOf(this.#host.journal, row, fromSeq);
    const notes = await SessionNotes.load(this.#host.notes, this.#host.journal, row);
    this.#attach(row, notes, { position, isNew: false });
  }

  #refuseMany(): void {
    const { channels, limits } = this.#host;
    if (channels.streams >= limits.streamsMax)
      throw new Refusal("internal", "server: it has as many streams as it takes; try again later", true);
  }

  #attach(row: SessionRow, notes: SessionNotes, { position, isNew }: { readonly position: Position; readonly isNew: boolean }): void {
    if (this.#context.signal.aborted) return;
    const { caller, announce } = this.#context;
    const environment = environmentOf(this.#host, row);
    announce({ [SESSION_KEY]: row.seed.uid, [HEAD_SEQ_KEY]: String(row.projection.lastSeq) });
    const value = create(SessionStartedSchema, {
      sessionId: row.seed.uid,
      model: row.seed.model,
      permissions: permissionRules(environment),
    });
    this.outbox.put([{ said: { case: "sessionStarted", value }, seq: position.after }]);
    const { outbox } = this;
    const { presence } = environment;
    const attached = new AttachedSession(this.#host, { row, notes, position, presence, caller: caller.identity, isNew, outbox });
    this.#attached = attached;
    this.#host.channels.attach(row.seed.uid, attached);
    void attached.run();
  }

  #pong(): void {
    this.#put({ case: "pong", value: create(PongSchema) });
  }

  #say(fault: HoldfastError): void {
    const { code, details } = fault;
    if (code === "internal" || code === "data_loss")
      this.#host.log.log("error", "a request of a conversation failed", { code, ...details });
    this.#put(saidOf(fault));
  }

  #put(said: ReturnType<typeof saidOf>): void {
    this.outbox.put([{ said, seq: this.#attached?.transcript.seq ?? this.outbox.lastSeq }]);
  }
}

/** The environment of a session as it is now; one that is gone leaves what holds everywhere. */
function environmentOf(host: AgentHost, { seed }: SessionRow): ReturnType<typeof plainEnvironment> {
  try {
    return placeOf(host, seed).environment;
  } catch {
    return plainEnvironment();
  }
}
