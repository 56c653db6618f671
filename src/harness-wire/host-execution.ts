/**
 * One execution at the host's end: a harness elsewhere, driven through a sink here.
 *
 * Invariants:
 * - What reaches the sink, and in which order, is the effect runner's affair; nothing reaches it after END, PARKED, a broken rule or a cancel.
 * - The run is over when the harness ended the exchange, when it broke a rule, when the line closed, or when the grace after a cancel
 *   has passed: whichever comes first, and once.
 * - It completes only after END COMPLETED, when every output, report and usage before it has been taken by the sink.
 */

import type { Timer } from "../base/ports.ts";
import type { Event } from "../gen/agentsessions/v1/common_pb.ts";
import type { ExchangeEnd, HarnessFrame, MintTokenRequest } from "../gen/holdfast/v1/harness_wire_pb.ts";
import { HoldfastError } from "../base/errors.ts";
import { ApprovalParkedError, HarnessFailure } from "../spi/faults.ts";
import { expiresUnixOf, ToolResultCode, type ApprovalResult, type EventSink, type Start, type ToolResult } from "../spi/index.ts";
import { askedEffectOf, isSameRef, type AskedEffect } from "./asked-effect.ts";
import { EffectRunner, type ControllerBody } from "./effect-runner.ts";
import { HistoryFeed } from "./history-feed.ts";
import type { ExchangeContext, HostExchange, HostFrameBody } from "./host-exchange.ts";
import type { FrameExtras, HostGrant } from "./line.ts";
import { brokenProtocol, cancelWordOf } from "./protocol.ts";
import { Deferred } from "./promise.ts";
import type { PushedHistory } from "./pushed-history.ts";
import { RefusedEffects } from "./refused-effects.ts";
import { STATUS_CANCELLED, STATUS_INTERNAL, wireErrorOf } from "./status.ts";

/** How the harness said that it ends. */
type Ending = Extract<AskedEffect, { kind: "completed" | "canceled" | "failed" | "parked" }>;

/** Drives one execution. */
export class HostExecution implements HostExchange {
  readonly #context: ExchangeContext;
  readonly #start: Start;
  readonly #outcome = new Deferred<void>();
  readonly #feed: HistoryFeed | undefined;
  readonly #effects: EffectRunner;
  readonly #refused = new RefusedEffects();
  readonly #parks: ApprovalParkedError[] = [];
  /** Made for the first token; most turns ask for none. */
  #tokens: AbortController | undefined;
  #ordinal = 0;
  #tokenRequests = 0;
  #ending: Ending | undefined;
  #cancelReason: { readonly reason: unknown } | undefined;
  #timer: Timer | undefined;
  /** The harness has ended the exchange. */
  #hasLeft = false;
  #isOver = false;

  constructor(context: ExchangeContext, start: Start, sink: EventSink, options: { readonly pulled: boolean }) {
    this.#context = context;
    this.#start = start;
    const { effectsInFlightMax: inFlightMax } = context.limits;
    this.#effects = new EffectRunner(sink, {
      inFlightMax,
      answers: {
        answer: (ordinal, result) => this.#answer(ordinal, result),
        refuse: (ordinal, error) => (error instanceof ApprovalParkedError ? this.#park(error) : this.#refuse(ordinal, error)),
      },
    });
    if (!options.pulled) return;
    this.#feed = new HistoryFeed(start.history, {
      limits: context.limits,
      encoded: context.encodesEvents,
      send: (page, events) => this.#send({ case: "history", value: page }, { events }),
    });
  }

  /** Opens the exchange and hands over the start. */
  begin(options: { readonly replayed: boolean; readonly history: PushedHistory | undefined; readonly grant: HostGrant | undefined }): void {
    const { model, history, config, inputs, identity, resumeFromSeq, tools = [] } = this.#start;
    const { principal, mintToken } = identity;
    const historyPulled = this.#feed !== undefined;
    const opening = { model, historyLastSeq: BigInt(history.lastSeq), historyPulled, replayed: options.replayed, tools: [...tools] };
    const start: ControllerBody = {
      case: "start",
      value: {
        $typeName: "agentsessions.v1.Start",
        config,
        history: [...(options.history?.events ?? [])],
        inputs: [...inputs],
        identity: { $typeName: "agentsessions.v1.IdentityContext", principal, canMintTokens: mintToken !== undefined },
        resumeFromSeq,
      },
    };
    try {
      const opened = this.#context.send({ case: "open", value: opening }, { grant: options.grant });
      const started = this.#context.send(this.#controllerFrame(start), { events: options.history?.encoded });
      // The line's own reader hears of a line that is closed.
      opened.catch(() => undefined);
      started.catch(() => undefined);
    } catch (error) {
      this.#abandon(STATUS_INTERNAL, "the start cannot be sent", error);
    }
  }

  /** Resolves when the harness completed; rejects as `Harness.run` does. */
  get outcome(): Promise<void> {
    return this.#outcome.promise;
  }

  receive(frame: HarnessFrame["frame"]): Promise<void> | undefined {
    if (this.#isOver) return undefined;
    try {
      this.#take(frame);
    } catch (error) {
      this.#break(error instanceof HarnessFailure ? error : brokenProtocol("a frame could not be read"));
    }
    return this.#isOver ? undefined : this.#effects.room;
  }

  fail(error: Error): void {
    this.#settle(this.#cancelReason?.reason ?? error);
  }

  /** Tells the harness to stop, and waits for it for a while. */
  cancel(reason: unknown): void {
    if (this.#isOver || this.#cancelReason !== undefined) return;
    this.#cancelReason = { reason };
    this.#effects.stop();
    if (this.#hasLeft) return this.#settle(reason);
    const { cancelGraceMs } = this.#context.limits;
    const word = cancelWordOf(reason);
    void this.#trySend(this.#controllerFrame({ case: "cancel", value: { $typeName: "agentsessions.v1.Cancel", reason: word } }));
    this.#wait(cancelGraceMs, () => this.#abandon(STATUS_CANCELLED, "the cancelled execution is not waited for any longer", reason));
  }

  #take(frame: HarnessFrame["frame"]): void {
    switch (frame.case) {
      case "event":
        return this.#event(frame.value);
      case "readHistory":
        if (this.#feed === undefined) throw brokenProtocol("a history that was pushed is not read");
        if (this.#cancelReason !== undefined) return;
        return this.#feed.request(frame.value);
      case "mintToken":
        if (this.#tokenRequests >= 2 * this.#context.limits.tokenRequestsMax) throw brokenProtocol("too many tokens are asked for at once");
        return void this.#mint(frame.value);
      case "end":
        return this.#exchangeEnded(frame.value);
      case "hello":
      case "descriptor":
      case undefined:
        throw brokenProtocol("an execution knows no such frame");
    }
  }

  #event(event: Event): void {
    this.#ordinal += 1;
    if (this.#ending !== undefined) throw brokenProtocol("no event may follow END or PARKED");
    const effect = askedEffectOf(event, this.#start.executionId);
    switch (effect.kind) {
      case "completed":
      case "canceled":
      case "failed":
      case "parked":
        return this.#ends(effect);
      default:
        if (this.#cancelReason === undefined) this.#effects.add(effect, this.#ordinal);
    }
  }

  #ends(ending: Ending): void {
    if (ending.kind === "canceled" && this.#cancelReason === undefined) throw brokenProtocol("END CANCELED must answer a cancel");
    if (ending.kind === "parked" && this.#parkOf(ending) === undefined) {
      throw brokenProtocol("PARKED must answer a park with the same reference");
    }
    this.#ending = ending;
    if (this.#cancelReason !== undefined) return;
    const { endGraceMs } = this.#context.limits;
    this.#wait(endGraceMs, () => this.#break(brokenProtocol("the exchange must end after END or PARKED")));
  }

  #parkOf(ending: Extract<Ending, { kind: "parked" }>): ApprovalParkedError | undefined {
    return this.#parks.find(({ ref }) => isSameRef(ref, ending.ref));
  }

  async #answer(ordinal: number, result: ControllerBody): Promise<void> {
    try {
      const decision = result.case === "tool" ? decisionOf(result.value) : undefined;
      if (decision !== undefined) await this.#control({ case: "approval", value: decision });
      await this.#control(result);
    } catch (error) {
      // A line that is closed ends the execution by itself; a result that is too large for the harness is its author's affair.
      if (error instanceof HoldfastError && error.code === "resource_exhausted") await this.#refuse(ordinal, error);
    }
  }

  async #refuse(ordinal: number, error: unknown): Promise<void> {
    if (this.#isOver || this.#cancelReason !== undefined) return;
    const wire = wireErrorOf(error);
    this.#refused.add(wire, error);
    await this.#trySend({ case: "refused", value: { eventOrdinal: BigInt(ordinal), error: wire } });
  }

  async #park(error: ApprovalParkedError): Promise<void> {
    if (this.#isOver || this.#cancelReason !== undefined) return;
    this.#parks.push(error);
    const { parkGraceMs } = this.#context.limits;
    if (this.#parks.length === 1) {
      this.#wait(parkGraceMs, () => this.#abandon(STATUS_CANCELLED, "the parked execution is not waited for any longer", error));
    }
    await this.#trySend(this.#controllerFrame({ case: "park", value: error.ref }));
  }

  async #mint({ request, audience }: MintTokenRequest): Promise<void> {
    const { mintToken } = this.#start.identity;
    const { tokenRequestsMax } = this.#context.limits;
    this.#tokenRequests += 1;
    this.#tokens ??= new AbortController();
    try {
      if (mintToken === undefined) throw new HoldfastError("failed_precondition", "identity: this host mints no tokens");
      if (this.#tokenRequests > tokenRequestsMax) {
        throw new HoldfastError("resource_exhausted", `identity: at most ${tokenRequestsMax} tokens may be asked for at once`);
      }
      const token = await mintToken(audience, { signal: this.#tokens.signal });
      await this.#send({ case: "token", value: { request, token, expiresUnix: BigInt(expiresUnixOf(token)) } });
    } catch (error) {
      await this.#trySend({ case: "token", value: { request, error: wireErrorOf(error) } });
    } finally {
      this.#tokenRequests -= 1;
    }
  }

  #exchangeEnded(end: ExchangeEnd): void {
    const ending = this.#ending;
    if (this.#cancelReason !== undefined) return this.#settle(this.#cancelReason.reason);
    if (end.code !== 0 && ending !== undefined) throw brokenProtocol("an exchange must end in order after END or PARKED");
    if (end.code === 0 && ending === undefined) throw brokenProtocol("an exchange may end in order only after END or PARKED");
    this.#timer?.cancel();
    this.#hasLeft = true;
    const outcome = (): unknown =>
      ending === undefined ? (this.#effects.fatal?.error ?? this.#refused.errorOf(end)) : this.#errorOf(ending);
    const { drained } = this.#effects;
    if (drained === undefined) return this.#settle(outcome());
    void drained.then(() => this.#settle(outcome()));
  }

  /** What a run that ended so rejects with; undefined for one that completed. */
  #errorOf(ending: Ending): unknown {
    if (ending.kind === "parked") return this.#parkOf(ending);
    if (this.#effects.fatal !== undefined) return this.#effects.fatal.error;
    if (ending.kind === "failed") return new HarnessFailure(ending.grpcCode, ending.description);
    return this.#parks.length > 0 ? sweptAwayPark() : undefined;
  }

  #break(fault: HarnessFailure): void {
    if (this.#cancelReason !== undefined) return this.#abandon(STATUS_INTERNAL, fault.message, this.#cancelReason.reason);
    this.#abandon(STATUS_INTERNAL, fault.message, fault);
  }

  #abandon(code: number, description: string, error: unknown): void {
    if (this.#isOver) return;
    void this.#trySend({ case: "end", value: { code, description } });
    this.#settle(error);
  }

  #settle(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#timer?.cancel();
    this.#feed?.close();
    this.#tokens?.abort(new HoldfastError("cancelled", "identity: the execution is over"));
    this.#context.release();
    this.#effects.stop();
    if (error === undefined) this.#outcome.resolve();
    else this.#outcome.reject(error);
  }

  #wait(ms: number, then: () => void): void {
    this.#timer?.cancel();
    this.#timer = this.#context.clock.after(ms, then);
  }

  #control(frame: ControllerBody): Promise<void> {
    return this.#send(this.#controllerFrame(frame));
  }

  #controllerFrame(frame: ControllerBody): HostFrameBody {
    const { sessionUid, executionId } = this.#start;
    return { case: "controller", value: { session: sessionUid, executionId, frame } };
  }

  /** Tells the harness something that nobody waits for here. */
  async #trySend(body: HostFrameBody): Promise<void> {
    try {
      await this.#send(body);
    } catch {
      // The line is closed, and every execution on it has been told so.
    }
  }

  async #send(body: HostFrameBody, extras?: FrameExtras): Promise<void> {
    if (!this.#isOver) await this.#context.send(body, extras);
  }
}

/** The decision behind a receipt, which a harness is told before it; undefined for a call that needed none. */
function decisionOf({ id, code, error, approvalRequestSeq }: ToolResult): ApprovalResult | undefined {
  if (approvalRequestSeq === 0n) return undefined;
  const approved = code !== ToolResultCode.APPROVAL_DENIED;
  return {
    $typeName: "agentsessions.v1.ApprovalResult",
    toolCallId: id,
    approved,
    reason: approved ? "" : error,
    requestSeq: approvalRequestSeq,
  };
}

function sweptAwayPark(): HoldfastError {
  return new HoldfastError("failed_precondition", "harness: it went on although its call was parked; it must let the park pass");
}
