/**
 * The effects of one execution, handed from the wire to the sink.
 *
 * Invariants:
 * - The sink is called in the order in which the events came. A call whose result the harness waits for holds nothing up. An output, a
 *   report or a usage, for which no answer is sent, holds up what comes after it until the sink has taken it: in process the harness
 *   would not have come further either.
 * - Once an effect that nobody waits for was refused, nothing after it happens: every later call is refused with the same error.
 */

import { HoldfastError } from "../base/errors.ts";
import type { ControllerFrame } from "../gen/agentsessions/v1/harness_pb.ts";
import type { EventSink } from "../spi/index.ts";
import type { AskedEffect } from "./asked-effect.ts";
import { Deferred } from "./promise.ts";
import { brokenProtocol } from "./protocol.ts";

/** The body of a frame of the contract. */
export type ControllerBody = ControllerFrame["frame"];
/** An effect, not an end. */
export type Effect = Exclude<AskedEffect, { kind: "completed" | "canceled" | "failed" | "parked" }>;
type Recorded = Exclude<Effect, { kind: "model" | "tool" }>;

/** Where results go. Each resolves when it was sent: an effect is under way until then. */
export interface EffectAnswers {
  /** The result of a call. */
  answer(ordinal: number, result: ControllerBody): Promise<void>;
  /** An effect was refused, or parked. */
  refuse(ordinal: number, error: unknown): Promise<void>;
}

interface Queued {
  readonly effect: Effect;
  readonly ordinal: number;
}

/** Performs effects through a sink. */
export class EffectRunner {
  readonly #sink: EventSink;
  readonly #answers: EffectAnswers;
  readonly #inFlightMax: number;
  readonly #modelCalls = new Set<string>();
  readonly #mediated = new Set<string>();
  readonly #queue: Queued[] = [];
  #isRecording = false;
  #isStopped = false;
  #inFlight = 0;
  #unanswered = 0;
  #room: Deferred<void> | undefined;
  #drained: Deferred<void> | undefined;
  #fatal: { readonly error: unknown } | undefined;

  constructor(sink: EventSink, options: { readonly answers: EffectAnswers; readonly inFlightMax: number }) {
    this.#sink = sink;
    this.#answers = options.answers;
    this.#inFlightMax = options.inFlightMax;
  }

  /** The refusal of an effect that nobody waits for. */
  get fatal(): { readonly error: unknown } | undefined {
    return this.#fatal;
  }

  /** Resolves when there is room for another effect; undefined where there is. */
  get room(): Promise<void> | undefined {
    if (this.#isStopped || this.#inFlight < this.#inFlightMax) return undefined;
    this.#room ??= new Deferred();
    return this.#room.promise;
  }

  /** Resolves when every effect that nobody waits for has been taken or refused; undefined where they have. */
  get drained(): Promise<void> | undefined {
    if (this.#unanswered === 0) return undefined;
    this.#drained ??= new Deferred();
    return this.#drained.promise;
  }

  /** Takes an effect. Throws the rule that it breaks. */
  add(effect: Effect, ordinal: number): void {
    if (effect.kind === "model") {
      if (this.#modelCalls.has(effect.callId)) throw brokenProtocol("MODEL_CALL must have an id that no open call has");
      this.#modelCalls.add(effect.callId);
    } else if (effect.kind === "tool") {
      this.#mediated.add(effect.call.id);
    } else {
      if (effect.kind === "report" && this.#mediated.has(effect.result.id)) {
        throw brokenProtocol("the result of a call that the host runs is the host's to report");
      }
      this.#unanswered += 1;
    }
    this.#inFlight += 1;
    this.#queue.push({ effect, ordinal });
    this.#advance();
  }

  /** Nothing that has not begun will begin. */
  stop(): void {
    this.#isStopped = true;
    this.#queue.length = 0;
    this.#freeRoom();
  }

  #advance(): void {
    while (!this.#isRecording) {
      const next = this.#queue.shift();
      if (next === undefined) return;
      const { effect, ordinal } = next;
      if (effect.kind === "model" || effect.kind === "tool") void this.#call(effect, ordinal);
      else void this.#record(effect, ordinal);
    }
  }

  async #call(effect: Extract<Effect, { kind: "model" | "tool" }>, ordinal: number): Promise<void> {
    try {
      if (this.#fatal !== undefined) throw this.#fatal.error;
      const result = await this.#resultOf(effect);
      if (effect.kind === "model") this.#modelCalls.delete(effect.callId);
      await this.#answers.answer(ordinal, result);
    } catch (error) {
      if (effect.kind === "model") this.#modelCalls.delete(effect.callId);
      // A call that was refused has no result of the host's.
      else if (error instanceof HoldfastError) this.#mediated.delete(effect.call.id);
      await this.#answers.refuse(ordinal, error);
    } finally {
      this.#inFlight -= 1;
      this.#freeRoom();
    }
  }

  async #resultOf(effect: Extract<Effect, { kind: "model" | "tool" }>): Promise<ControllerBody> {
    if (effect.kind === "tool") return { case: "tool", value: await this.#sink.toolCall(effect.call) };
    const { message, usage } = await this.#sink.model(effect.request);
    return { case: "model", value: { $typeName: "agentsessions.v1.ModelResult", message, usage, modelCallId: effect.callId } };
  }

  async #record(effect: Recorded, ordinal: number): Promise<void> {
    this.#isRecording = true;
    try {
      if (this.#fatal === undefined) await this.#taken(effect);
    } catch (error) {
      this.#fatal = { error };
      await this.#answers.refuse(ordinal, error);
    } finally {
      this.#isRecording = false;
      this.#inFlight -= 1;
      this.#unanswered -= 1;
      this.#advance();
      if (this.#unanswered === 0) this.#drained?.resolve();
      this.#freeRoom();
    }
  }

  #taken(effect: Recorded): Promise<void> {
    switch (effect.kind) {
      case "output":
        return this.#sink.output(effect.text);
      case "report":
        return this.#sink.report(effect.result);
      case "usage":
        return this.#sink.usage(effect.usage);
    }
  }

  #freeRoom(): void {
    this.#room?.resolve();
    this.#room = undefined;
  }
}
