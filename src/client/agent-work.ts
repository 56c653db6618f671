/**
 * What an agent session owes its server and is owed, over any number of connections. Pure.
 *
 * Invariants:
 * - A call id is handed out once a turn; when the server asks again it gets the answer that was given before.
 * - A message is sent until something shows that its turn began, and never once that is known.
 * - What belongs to a turn is forgotten with the turn.
 */

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ToolResultSchema, UserMessageSchema } from "../gen/roz/v1/agent_pb.ts";
import type { AgentEvent } from "./agent-events.ts";
import type { AgentRequest } from "./agent-stream.ts";

/** A message as it is sent: with its id. */
export type OutgoingMessage = MessageInitShape<typeof UserMessageSchema> & { readonly messageId: string };

/** A tool's result, without the id of its call. */
export type AgentToolResult = Omit<MessageInitShape<typeof ToolResultSchema>, "toolCallId" | "$typeName">;

/** Where a message stands: `held` while the turn of somebody else's runs. */
type Sending = { readonly message: OutgoingMessage; state: "unsent" | "sent" | "held" };

/** What is to be done about an event. */
export interface Taken {
  /** Whether the session's user gets it. */
  readonly isNews: boolean;
  /** The call that the event asks about for the first time. */
  readonly question?: string;
  /** The message that was refused: no turn began. */
  readonly refused?: string;
  /** What the server is told at once. */
  readonly reply?: AgentRequest;
}

/** Errors that answer a request and are never of a turn. */
const REFUSALS: ReadonlySet<string> = new Set(["invalid_argument", "permission_denied", "no_session", "no_active_turn", "internal"]);

const NEWS: Taken = { isNews: true };

export class AgentWork {
  #sending: Sending | undefined;
  /** The message whose turn runs; "" for a turn of which only that is known. */
  #turn: string | undefined;
  /** Whether the server said last that something goes on. */
  #isActive = false;
  #cancel: { readonly reason: string; state: "unsent" | "sent" } | undefined;
  /** The greatest seq that came, whatever it came with. */
  #seenSeq = 0n;
  readonly #requested = new Set<string>();
  readonly #asked = new Set<string>();
  readonly #results = new Map<string, AgentToolResult>();
  readonly #decisions = new Map<string, boolean>();

  /** Whether a turn runs or is about to. */
  get isBusy(): boolean {
    return this.#sending !== undefined || this.#turn !== undefined;
  }

  /** The message whose turn runs or is about to; undefined where none is, or where it is not known. */
  get messageId(): string | undefined {
    return this.#turn || this.#sending?.message.messageId;
  }

  say(message: OutgoingMessage): void {
    this.#sending = { message, state: "unsent" };
  }

  answer(callId: string, result: AgentToolResult): AgentRequest {
    this.#results.set(callId, result);
    return { case: "toolResult", value: { ...result, toolCallId: callId } };
  }

  decide(callId: string, approved: boolean): AgentRequest {
    this.#decisions.set(callId, approved);
    return { case: "permissionDecision", value: { toolCallId: callId, approved } };
  }

  cancel(reason: string): void {
    if (this.isBusy || this.#isActive) this.#cancel ??= { reason, state: "unsent" };
  }

  /** A connection was lost: what was sent over it may not have arrived. */
  lose(): void {
    for (const given of [this.#sending, this.#cancel]) if (given?.state === "sent") given.state = "unsent";
  }

  /** What is to be sent once all that was missed has come. */
  due(): readonly AgentRequest[] {
    const due: AgentRequest[] = [];
    const sending = this.#sending;
    if (sending?.state === "unsent" && this.#turn === undefined) {
      sending.state = "sent";
      due.push({ case: "userMessage", value: sending.message });
    }
    if (this.#cancel?.state === "unsent" && (this.#turn !== undefined || this.#isActive || sending?.state === "sent")) {
      this.#cancel.state = "sent";
      due.push({ case: "cancelTurn", value: { reason: this.#cancel.reason } });
    }
    return due;
  }

  /** Takes an event in. */
  take(event: AgentEvent): Taken {
    switch (event.kind) {
      case "text":
      case "thinking":
        this.#runs(event.delta.messageId);
        return NEWS;
      case "tool-request":
        this.#runs("");
        return this.#request(event.request.toolCallId);
      case "activity":
        return this.#does(event.activity.state, event.activity.detail);
      case "turn-complete":
        this.#ended(event.turn.messageId);
        return NEWS;
      case "error":
        return this.#failed(event.error.code, event.seq);
      case "cursor":
        if (event.seq > this.#seenSeq) this.#seenSeq = event.seq;
        return NEWS;
      case "started":
      case "keepalive":
      case "pong":
      case "compacted":
      case "presence":
        return NEWS;
    }
  }

  /** An error of a turn comes after records of it; one that refuses its message does not. The protocol does not say which it is. */
  #failed(code: string, seq: bigint | undefined): Taken {
    const sending = this.#sending;
    if (sending?.state !== "sent" || this.#turn !== undefined) return NEWS;
    if (code === "turn_in_progress") {
      // What this client repeated, or somebody else's turn: in both cases the message waits for what runs.
      sending.state = "held";
      this.#turn = "";
      return { isNews: false };
    }
    const hasMoved = this.#isActive || (seq !== undefined && seq > this.#seenSeq);
    if (code === "unknown_tool_call" || code === "model_error" || (hasMoved && !REFUSALS.has(code))) return NEWS;
    this.#sending = undefined;
    this.#cancel = undefined;
    return { isNews: true, refused: sending.message.messageId };
  }

  /** Activity is told at once after everything that was missed, and held back to a rate after that: one may come after its turn is over. */
  #does(state: string, detail: string): Taken {
    this.#isActive = state !== "idle";
    if (state === "waiting_approval") return this.#question(detail);
    if (this.#isActive) {
      // What runs may be the turn of the message that nobody knows of whether it arrived.
      if (this.#sending?.state === "unsent") this.#turn ??= "";
    } else if (this.#turn === "") {
      this.#turn = undefined;
      if (this.#sending?.state === "held") this.#sending.state = "unsent";
    }
    return NEWS;
  }

  #request(callId: string): Taken {
    const result = this.#results.get(callId);
    if (result !== undefined) return { isNews: false, reply: { case: "toolResult", value: { ...result, toolCallId: callId } } };
    const isNews = !this.#requested.has(callId);
    this.#requested.add(callId);
    return { isNews };
  }

  #question(callId: string): Taken {
    this.#runs("");
    const approved = this.#decisions.get(callId);
    if (approved !== undefined) return { isNews: true, reply: { case: "permissionDecision", value: { toolCallId: callId, approved } } };
    if (this.#asked.has(callId)) return NEWS;
    this.#asked.add(callId);
    return { isNews: true, question: callId };
  }

  #runs(messageId: string): void {
    this.#turn = messageId === "" ? (this.#turn ?? "") : messageId;
    if (this.#sending?.message.messageId === messageId) this.#sending = undefined;
  }

  #ended(messageId: string): void {
    if (this.#sending?.message.messageId === messageId) this.#sending = undefined;
    else if (this.#sending !== undefined) this.#sending.state = "unsent";
    this.#turn = undefined;
    this.#isActive = false;
    this.#cancel = undefined;
    for (const kept of [this.#requested, this.#asked, this.#results, this.#decisions]) kept.clear();
  }
}
