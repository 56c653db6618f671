/**
 * What a worker's records say of it, in the words of WatchTeam. Pure.
 *
 * Invariants:
 * - What is told of a worker is of its first turn, which is what it was spawned for: it has started before anything else is told of it,
 *   and once it has exited nothing more is.
 * - Reasons are of the protocol's four words; nothing of an error's text goes out.
 */

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { codeOfGrpcStatus } from "../../base/errors.ts";
import type { SessionUid } from "../../base/ids.ts";
import { EventKind, Lifecycle_Kind, type Event, type HarnessEnd } from "../../gen/agentsessions/v1/common_pb.ts";
import { TeamEventSchema, type TeamEvent } from "../../gen/roz/v1/agent_pb.ts";
import { baselineAccount, INBOX_TOOL, messageText } from "../../spi/index.ts";

/** Whose records they are. */
export interface WorkerFacts {
  readonly worker: SessionUid;
  /** Who spawned it. */
  readonly parent: SessionUid;
  /** The host of its environment; "" for none. */
  readonly hostId: string;
}

/** Why a worker failed, as the protocol has it. */
type FailureReason = "e_stop" | "timeout" | "model_error" | "safety_violation";

type Told = MessageInitShape<typeof TeamEventSchema>["event"];

/** Reads the records of one worker, in order. */
export class WorkerEvents {
  readonly #facts: WorkerFacts;
  #state: "new" | "started" | "exited" = "new";
  #mode = "react";
  #phase = 0;
  #words = "";
  #cancelReason = "";
  /** How much of the conversation the last summary stands for. */
  #summary = 0;
  #isSummaryNext = false;

  constructor(facts: WorkerFacts) {
    this.#facts = facts;
  }

  /** Whether everything was told. */
  get hasExited(): boolean {
    return this.#state === "exited";
  }

  /** What the worker's next record tells. */
  add(event: Event): readonly TeamEvent[] {
    if (this.#state === "exited") return [];
    return this.#told(event).map((told) => create(TeamEventSchema, { event: told }));
  }

  #told(event: Event): readonly Exclude<Told, undefined>[] {
    const { worker: workerId, hostId } = this.#facts;
    const { body } = event;
    switch (body.case) {
      case "executionStart":
        if (this.#state !== "new") return this.#failed("e_stop");
        this.#state = "started";
        this.#mode = modeOf(body.value.config);
        return [{ case: "workerStarted", value: { workerId, hostId } }];
      case "model":
        return this.#phaseBegan();
      case "message":
        if (event.kind === EventKind.EVENT_OUTPUT) this.#words = messageText(body.value);
        return [];
      case "tool":
        return body.value.tool === INBOX_TOOL ? [] : [{ case: "workerToolCall", value: { workerId, tool: body.value.tool } }];
      case "lifecycle":
        return this.#moved(event, body.value.kind, body.value.detail);
      case "end":
        return this.#exit(this.#ended(body.value));
      default:
        return [];
    }
  }

  /** Nothing of its turn will come any more, and it has no END. */
  giveUp(): readonly TeamEvent[] {
    if (this.#state !== "started") return [];
    return this.#failed("model_error").map((told) => create(TeamEventSchema, { event: told }));
  }

  #phaseBegan(): readonly Exclude<Told, undefined>[] {
    const isSummary = this.#isSummaryNext;
    this.#isSummaryNext = false;
    if (isSummary) return [];
    this.#phase += 1;
    return [{ case: "workerPhase", value: { workerId: this.#facts.worker, phase: this.#phase, mode: this.#mode } }];
  }

  #moved(event: Event, kind: Lifecycle_Kind, detail: string): readonly Exclude<Told, undefined>[] {
    if (kind === Lifecycle_Kind.LIFECYCLE_CANCEL) this.#cancelReason = detail;
    if (kind === Lifecycle_Kind.LIFECYCLE_BASELINE) {
      const summary = summaryOf(baselineAccount(event));
      this.#isSummaryNext = summary > this.#summary;
      this.#summary = Math.max(summary, this.#summary);
    }
    if (kind !== Lifecycle_Kind.LIFECYCLE_DELETE) return [];
    if (this.#state === "started") return this.#failed("e_stop");
    // It was never there.
    this.#state = "exited";
    return [];
  }

  #failed(reason: FailureReason): readonly Exclude<Told, undefined>[] {
    return this.#exit({ case: "workerFailed", value: { workerId: this.#facts.worker, reason } });
  }

  #ended(end: HarnessEnd): Exclude<Told, undefined> {
    const { worker: workerId } = this.#facts;
    if (end.state === "COMPLETED") return { case: "workerCompleted", value: { workerId, result: this.#words } };
    return { case: "workerFailed", value: { workerId, reason: this.#reason(end) } };
  }

  #reason({ state, error }: HarnessEnd): FailureReason {
    if (state === "CANCELED") return this.#cancelReason === "TIMEOUT" ? "timeout" : "e_stop";
    const code = error === undefined ? undefined : codeOfGrpcStatus(error.code);
    if (code === "deadline_exceeded") return "timeout";
    if (code === "cancelled") return "e_stop";
    if (code === "permission_denied" || error?.description.startsWith("observation:") === true) return "safety_violation";
    return "model_error";
  }

  #exit(last: Exclude<Told, undefined>): readonly Exclude<Told, undefined>[] {
    this.#state = "exited";
    const { worker: workerId, parent: parentTaskId } = this.#facts;
    return [last, { case: "workerExited", value: { workerId, parentTaskId } }];
  }
}

/** The mode that a turn's config names; react for every other config. */
function modeOf(config: Uint8Array): string {
  const mode = fieldOf(new TextDecoder().decode(config), "mode");
  return mode === "ooda_re_act" ? mode : "react";
}

/** How much of the conversation a baseline of the agent's stands a summary for; 0 for none, and for a baseline of another harness. */
function summaryOf(account: string | undefined): number {
  const summary = account === undefined ? undefined : fieldOf(account, "summary");
  return typeof summary === "number" ? summary : 0;
}

/** A field of a JSON object; undefined for what is none. */
function fieldOf(text: string, name: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined;
  } catch {
    return undefined;
  }
}
