/**
 * One execution at the harness's end: the start, the run, and how it ends.
 *
 * Invariants:
 * - The run begins with the start and once. What it ends with is said once: END or PARKED and then the end of the exchange, or the end of
 *   the exchange with a reason.
 * - A run that unwound with nothing but parks is parked. One that went on although a call of it was parked is not completed.
 */

import { HoldfastError } from "../base/errors.ts";
import type { ExecutionId, Seq, SessionUid } from "../base/ids.ts";
import { EventKind } from "../gen/agentsessions/v1/common_pb.ts";
import type { ControllerFrame, Start as WireStart } from "../gen/agentsessions/v1/harness_pb.ts";
import type { ExecutionOpening, HostFrame } from "../gen/holdfast/v1/harness_wire_pb.ts";
import { ApprovalParkedError, HarnessFailure, readableThrow } from "../spi/faults.ts";
import type { Harness, IdentityContext, Start } from "../spi/harness.ts";
import { CallTable } from "./call-table.ts";
import type { HarnessFrameBody } from "./harness-end.ts";
import { PulledHistory, pushedHistory } from "./history-view.ts";
import { errorOfWire, STATUS_CANCELLED, STATUS_INTERNAL, thrownErrorOf, type WireError } from "./status.ts";
import { WireSink } from "./wire-sink.ts";

/** A line as one execution sees it. */
export interface HarnessExchange {
  /** Throws at once for a frame that is too large; rejects when the line is closed. */
  send(body: HarnessFrameBody): Promise<void>;
  /** The exchange is over, and so is the run. */
  release(): void;
}

/** What a host sends within an exchange. */
type ExchangeFrame = Exclude<HostFrame["frame"], { case: "hello" | "describe" | "open" | undefined }>;

/** Runs a harness once. */
export class HarnessExecution {
  readonly #harness: Harness;
  readonly #opening: ExecutionOpening;
  readonly #exchange: HarnessExchange;
  readonly #abort = new AbortController();
  readonly #calls = new CallTable();
  #history: PulledHistory | undefined;
  #sink: WireSink | undefined;
  #session = "";
  #executionId = "";
  #isStarted = false;
  /** Nothing is sent any more. */
  #isSilent = false;

  constructor(harness: Harness, opening: ExecutionOpening, exchange: HarnessExchange) {
    this.#harness = harness;
    this.#opening = opening;
    this.#exchange = exchange;
  }

  receive(frame: ExchangeFrame): void {
    switch (frame.case) {
      case "controller":
        return this.#controlled(frame.value);
      case "refused":
        return this.#calls.refuse(Number(frame.value.eventOrdinal), errorOfWire(frame.value.error));
      case "history":
        return this.#history?.receive(frame.value);
      case "token":
        return this.#calls.answerToken(frame.value);
      case "end":
        return this.abandon(new HoldfastError("cancelled", "turn: the host has ended the exchange"));
    }
  }

  /** The host does not wait any longer. The run is told to stop; whatever becomes of it is not sent. */
  abandon(fault: HoldfastError): void {
    this.#isSilent = true;
    this.#stop(fault);
    if (!this.#isStarted) this.#exchange.release();
  }

  #controlled({ session, executionId, frame }: ControllerFrame): void {
    if (frame.case === "start" && !this.#isStarted) {
      if (session === "" || executionId === "") return this.#refuseHost("the start names its session and its execution");
      this.#session = session;
      this.#executionId = executionId;
      return void this.#run(frame.value);
    }
    if (!this.#isStarted || frame.case === "start") return this.#refuseHost("the start is the first frame of an execution, and comes once");
    if (session !== this.#session || executionId !== this.#executionId) return this.#refuseHost("a frame carries the ids of its execution");
    switch (frame.case) {
      case "model":
        return this.#calls.answerModel(frame.value);
      case "tool":
        return this.#calls.answerTool(frame.value);
      case "park":
        return this.#calls.park(frame.value);
      case "cancel":
        return this.#stop(new HoldfastError("cancelled", `turn: it was cancelled (${frame.value.reason})`));
      case "approval":
        // The decision is followed by its receipt, which is what the call resolves with.
        return;
      case undefined:
        return this.#refuseHost("a frame carries something");
    }
  }

  /** The host broke a rule: the exchange ends, since nothing can be known any more of what it holds for true. */
  #refuseHost(rule: string): void {
    this.#end({ code: STATUS_INTERNAL, description: `harness wire: ${rule}` });
    this.abandon(new HoldfastError("internal", `host: it broke the harness wire's rule that ${rule}`));
  }

  #stop(fault: HoldfastError): void {
    this.#abort.abort(fault);
    this.#calls.close(fault);
    this.#history?.close(fault);
  }

  async #run(wire: WireStart): Promise<void> {
    this.#isStarted = true;
    const { signal } = this.#abort;
    const send = (body: HarnessFrameBody): Promise<void> => this.#exchange.send(body);
    const sink = new WireSink({ executionId: this.#executionId, calls: this.#calls, send, signal });
    this.#sink = sink;
    try {
      await this.#harness.run(this.#startOf(wire, sink), sink, { signal });
      this.#completed();
    } catch (error) {
      this.#threw(error);
    } finally {
      this.#isSilent = true;
      this.#calls.close(TURN_OVER);
      this.#history?.close(TURN_OVER);
      this.#exchange.release();
    }
  }

  #startOf(wire: WireStart, sink: WireSink): Start {
    const { model, historyLastSeq, historyPulled, tools } = this.#opening;
    const lastSeq = Number(historyLastSeq) as Seq;
    if (historyPulled) this.#history = new PulledHistory(lastSeq, { send: (body) => this.#exchange.send(body) });
    return {
      executionId: this.#executionId as ExecutionId,
      sessionUid: this.#session as SessionUid,
      config: wire.config,
      history: this.#history ?? pushedHistory(wire.history),
      inputs: wire.inputs,
      identity: identityOf(wire, sink),
      resumeFromSeq: wire.resumeFromSeq,
      model,
      tools: tools.length === 0 ? undefined : tools,
    };
  }

  #completed(): void {
    if (this.#abort.signal.aborted) return this.#end({ code: STATUS_CANCELLED, description: "the run ended after its cancel" });
    const { fatal, parks } = this.#calls;
    if (fatal !== undefined) return this.#end(thrownErrorOf(fatal));
    if (parks.length > 0) return this.#end(thrownErrorOf(swallowedPark()));
    this.#event({ case: "end", value: { state: "COMPLETED" } }, EventKind.EVENT_END);
    this.#end(IN_ORDER);
  }

  #threw(thrown: unknown): void {
    const error = readableThrow(thrown);
    if (this.#abort.signal.aborted) return this.#end({ code: STATUS_CANCELLED, description: "the run was cancelled" });
    const { parks } = this.#calls;
    const [park] = parks;
    if (park !== undefined && isUnwindOf(error, parks)) {
      this.#event({ case: "parked", value: park.ref }, EventKind.EVENT_PARKED);
      return this.#end(IN_ORDER);
    }
    if (error instanceof HarnessFailure) {
      const failure = { code: error.grpcCode, description: error.message.toWellFormed() };
      this.#event({ case: "end", value: { state: "FAILED", error: failure } }, EventKind.EVENT_END);
      return this.#end(IN_ORDER);
    }
    this.#end(thrownErrorOf(error));
  }

  #event(body: NonNullable<Parameters<WireSink["event"]>[0]>, kind: EventKind): void {
    if (this.#isSilent) return;
    this.#sink?.event(body, kind).catch(() => undefined);
  }

  #end(end: WireError): void {
    if (this.#isSilent) return;
    this.#isSilent = true;
    try {
      this.#exchange.send({ case: "end", value: end }).catch(() => undefined);
    } catch {
      // So few bytes fit into every line that is open.
    }
  }
}

/** What calls get after their turn has ended. Every turn ends, and its stack would tell nothing: so there is one for all. */
const TURN_OVER = new HoldfastError("failed_precondition", "turn: it has ended; a harness may act only while its run lasts");

const IN_ORDER: WireError = { code: 0, description: "" };

function identityOf(wire: WireStart, sink: WireSink): IdentityContext {
  const { principal, canMintTokens } = wire.identity ?? { principal: undefined, canMintTokens: false };
  return canMintTokens ? { principal, mintToken: (audience, options) => sink.mintToken(audience, options) } : { principal };
}

function swallowedPark(): HoldfastError {
  return new HoldfastError("failed_precondition", "harness: it went on although its call was parked; it must let the park pass");
}

/** Whether `error` is nothing but parks of these, however wrapped. */
function isUnwindOf(error: unknown, parks: readonly ApprovalParkedError[]): boolean {
  if (error instanceof ApprovalParkedError) return parks.some(({ ref }) => ref.requestSeq === error.ref.requestSeq);
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every((inner) => isUnwindOf(inner, parks));
  return error instanceof Error && error.cause !== undefined && isUnwindOf(error.cause, parks);
}
