/**
 * Between turns that need a tool of their client's and the stream that the client has, if it has one.
 *
 * Invariants:
 * - A session has one stream at most. A newer one takes its place, and the older one is told.
 * - A request stays open until it is answered, its time is over or its turn gives it up, whatever streams come and go. Each new stream is given
 *   every open request again, under the same id.
 * - The time of a request runs from when it was handed to a stream, anew with each stream, and never without one.
 * - An answer counts once.
 */

import type { SessionUid } from "../../base/ids.ts";
import type { Clock, Timer } from "../../base/ports.ts";
import type { ToolResult } from "../../gen/roz/v1/agent_pb.ts";
import type { ToolCall } from "../../spi/index.ts";

/** What a session's channel has for a stream. */
export interface ChannelPort {
  /** A request is open: it is to be sent, and its sending reported. */
  readonly ask: (request: OpenRequest) => void;
  /** Another stream has taken the session. */
  readonly takenOver: () => void;
}

/** What came of a request. */
export type RequestOutcome =
  | { readonly kind: "answered"; readonly result: ToolResult }
  /** The client was asked and did not answer in time. */
  | { readonly kind: "timed-out" };

/** What became of a client's answer. `repeated`: the request has been answered before. */
export type AnswerOutcome = "taken" | "repeated" | "unknown";

/** A request that waits for its answer. */
export class OpenRequest {
  readonly call: ToolCall;
  readonly timeoutMs: number;
  readonly #clock: Clock;
  readonly #settled = Promise.withResolvers<RequestOutcome>();
  #timer: Timer | undefined;
  #isOpen = true;

  constructor(call: ToolCall, timeoutMs: number, clock: Clock) {
    this.call = call;
    this.timeoutMs = timeoutMs;
    this.#clock = clock;
    // Nobody may wait for what was given up.
    this.#settled.promise.catch(() => undefined);
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get outcome(): Promise<RequestOutcome> {
    return this.#settled.promise;
  }

  /** It was handed to a stream: its time begins. */
  sent(): void {
    this.held();
    if (this.#isOpen) this.#timer = this.#clock.after(this.timeoutMs, () => this.settle({ kind: "timed-out" }));
  }

  /** Its stream is gone: its time stands still. */
  held(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  settle(outcome: RequestOutcome): void {
    this.#close();
    this.#settled.resolve(outcome);
  }

  giveUp(reason: unknown): void {
    this.#close();
    this.#settled.reject(reason);
  }

  #close(): void {
    this.#isOpen = false;
    this.held();
  }
}

interface Channel {
  port: ChannelPort | undefined;
  /** Absent until the first request: most sessions are idle. */
  open?: Map<string, OpenRequest> | undefined;
  /** Requests of the turn that were answered; absent where none was. */
  answered?: Set<string> | undefined;
}

/** The channels of a host's sessions. One without a stream and without requests takes no room. */
export class Channels {
  readonly #clock: Clock;
  readonly #channels = new Map<SessionUid, Channel>();
  /** Who waits for a request that no stream hears. */
  readonly #unheard = new Map<SessionUid, Set<() => void>>();
  #streams = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Streams that are attached. */
  get streams(): number {
    return this.#streams;
  }

  /** Gives a session to a stream, and the stream every open request. */
  attach(session: SessionUid, port: ChannelPort): void {
    const channel = this.#of(session);
    const older = channel.port;
    channel.port = port;
    if (older === undefined) this.#streams += 1;
    for (const request of requestsOf(channel)) request.held();
    older?.takenOver();
    for (const request of requestsOf(channel)) port.ask(request);
  }

  /** The stream is gone; one that was taken over already has left nothing. */
  detach(session: SessionUid, port: ChannelPort): void {
    const channel = this.#channels.get(session);
    if (channel?.port !== port) return;
    channel.port = undefined;
    this.#streams -= 1;
    for (const request of requestsOf(channel)) request.held();
    this.#tellUnheard(session, channel);
    this.#tidy(session, channel);
  }

  /** Resolves when a request of the session waits for a stream: at once where one does, and when the signal fires in any case. */
  async untilUnheard(session: SessionUid, signal: AbortSignal): Promise<void> {
    const channel = this.#channels.get(session);
    if (signal.aborted || (channel !== undefined && isUnheard(channel))) return;
    const listeners = this.#unheard.get(session) ?? new Set();
    this.#unheard.set(session, listeners);
    const { promise, resolve } = Promise.withResolvers<void>();
    listeners.add(resolve);
    signal.addEventListener("abort", () => resolve(), { once: true });
    await promise;
    listeners.delete(resolve);
    if (listeners.size === 0 && this.#unheard.get(session) === listeners) this.#unheard.delete(session);
  }

  /**
   * Asks the session's client, now or when it comes back. Rejects with the signal's reason when that fires.
   */
  async request(
    session: SessionUid,
    { call, timeoutMs }: { readonly call: ToolCall; readonly timeoutMs: number },
    signal: AbortSignal,
  ): Promise<RequestOutcome> {
    signal.throwIfAborted();
    const channel = this.#of(session);
    const request = new OpenRequest(call, timeoutMs, this.#clock);
    const open = (channel.open ??= new Map());
    open.set(call.id, request);
    const giveUp = (): void => request.giveUp(signal.reason);
    signal.addEventListener("abort", giveUp, { once: true });
    channel.port?.ask(request);
    this.#tellUnheard(session, channel);
    try {
      return await request.outcome;
    } finally {
      signal.removeEventListener("abort", giveUp);
      if (open.get(call.id) === request) open.delete(call.id);
      this.#tidy(session, channel);
    }
  }

  /** Takes a client's answer. */
  answer(session: SessionUid, result: ToolResult): AnswerOutcome {
    const channel = this.#channels.get(session);
    const request = channel?.open?.get(result.toolCallId);
    if (channel === undefined || request?.isOpen !== true) {
      return channel?.answered?.has(result.toolCallId) === true ? "repeated" : "unknown";
    }
    channel.answered ??= new Set();
    channel.answered.add(result.toolCallId);
    request.settle({ kind: "answered", result });
    return "taken";
  }

  /** A turn of the session is over: what was answered in it is forgotten. */
  turnOver(session: SessionUid): void {
    const channel = this.#channels.get(session);
    if (channel !== undefined) channel.answered = undefined;
  }

  #tellUnheard(session: SessionUid, channel: Channel): void {
    if (isUnheard(channel)) for (const tell of this.#unheard.get(session) ?? []) tell();
  }

  #of(session: SessionUid): Channel {
    const known = this.#channels.get(session);
    if (known !== undefined) return known;
    const channel: Channel = { port: undefined };
    this.#channels.set(session, channel);
    return channel;
  }

  #tidy(session: SessionUid, channel: Channel): void {
    if (channel.port === undefined && requestsOf(channel).length === 0 && this.#channels.get(session) === channel)
      this.#channels.delete(session);
  }
}

function requestsOf({ open }: Channel): readonly OpenRequest[] {
  return open === undefined ? [] : [...open.values()];
}

function isUnheard(channel: Channel): boolean {
  return channel.port === undefined && requestsOf(channel).length > 0;
}
