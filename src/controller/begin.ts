/**
 * How a turn comes to be: from a plan to a turn whose start is durable.
 *
 * Invariants:
 * - One append makes a new turn durable: its start and its inputs, with RESUME before them on a cold session. It takes the session's lease, or
 *   goes on under the one that was taken to make the harness ready.
 * - A turn that does not come to be spends nothing, and leaves the session free.
 */

import { newExecutionId, type Fence, type Seq, type SessionUid } from "../base/ids.ts";
import type { NewEvent, SessionRow } from "../journal/index.ts";
import type { Budgets, Meter } from "./budgets.ts";
import { computeToRestore } from "./compute.ts";
import type { ControllerOptions, TurnPlan } from "./contract.ts";
import { resumeEvent } from "./events.ts";
import type { ToolOffers } from "./offered-tools.ts";
import { approvalOpenError, ownApprovals } from "./open-approvals.ts";
import { appendedOrThrow } from "./outcome.ts";
import { leaveUnbegun, readyHarness, type ReadyContext } from "./ready.ts";
import type { RecoveryPlan } from "./recover.ts";
import { Tape } from "./tape.ts";
import { RACE_ATTEMPTS_MAX, rowOf } from "./transitions.ts";
import { startEvents, type TurnContext } from "./turn-start.ts";
import { executorOf } from "./turn-tools.ts";
import { Turn } from "./turn.ts";
import { isCold, keptFence } from "./bring-back.ts";

/** What beginning needs of its controller. */
export interface BeginContext {
  readonly options: ControllerOptions;
  readonly turns: TurnContext;
  readonly offers: ToolOffers;
  readonly budgets: Budgets | undefined;
}

/** What was opened for a turn that has not begun. */
interface Opened {
  meter: Meter | undefined;
  /** Set once the lease was taken. */
  fence: Fence | undefined;
}

/** Begins turns. */
export class TurnBeginnings {
  readonly #context: BeginContext;
  readonly #ready: ReadyContext;

  constructor(context: BeginContext) {
    const { journal, hostId, ports } = context.options;
    this.#context = context;
    this.#ready = { journal, hostId, clock: ports.clock, leaseMs: context.turns.limits.leaseMs };
  }

  /** Begins a new turn. */
  async start(session: SessionUid, plan: TurnPlan): Promise<Turn> {
    const opened: Opened = { meter: undefined, fence: undefined };
    try {
      return await this.#start(session, plan, opened);
    } catch (error) {
      opened.meter?.close(undefined);
      if (opened.fence !== undefined) await leaveUnbegun(this.#ready, plan, opened.fence);
      throw error;
    }
  }

  /** Takes an interrupted turn up again: a lease of its own, nothing written but RESUME on a cold session. */
  async recover(row: SessionRow, plan: RecoveryPlan, events: readonly NewEvent[]): Promise<Turn> {
    const { turn, executionId, invocation, harness, descriptor, executor, tools } = plan;
    const { journal, hostId } = this.#context.options;
    const { leaseMs } = this.#context.turns.limits;
    const meter = await this.#context.budgets?.open(row, { isNew: false });
    const writer = { kind: "claim", holder: hostId, leaseMs, keep: keptFence(row, harness) } as const;
    const claimed = journal
      .append({ session: row.seed.uid, expectedLastSeq: row.projection.lastSeq, writer, events })
      .then(appendedOrThrow);
    claimed.catch(() => meter?.close(undefined));
    const outcome = await claimed;
    return new Turn(this.#context.turns, {
      executionId,
      recordedId: turn.executionId === "" ? "" : undefined,
      seed: row.seed,
      invocation,
      harness,
      descriptor,
      compute: computeToRestore(row),
      startSeq: turn.startSeq,
      executor,
      tools,
      position: { session: row.seed.uid, fence: outcome.fence, lastSeq: outcome.projection.lastSeq },
      meter,
      tape: new Tape({ effects: turn.effects, atEnd: "live", lastSeq: turn.lastSeq }),
    });
  }

  /** Refused where a budget is used up. */
  async #start(session: SessionUid, asPlanned: TurnPlan, opened: Opened): Promise<Turn> {
    const { options, turns, offers, budgets } = this.#context;
    const { journal, hostId, ports } = options;
    const { expectedLastSeq, caller, config } = asPlanned.invocation;
    const executionId = newExecutionId(ports);
    const executor = executorOf(options, { session, config });
    const offer = await offers.offer(session, executor);
    for (let attempt = 1; ; attempt++) {
      const row = await rowOf(journal, session);
      if (ownApprovals(row).length > 0) throw approvalOpenError();
      if (budgets !== undefined) opened.meter ??= await budgets.open(row, { isNew: true });
      const ready = await readyHarness(this.#ready, row, asPlanned);
      const { plan, unready } = ready;
      opened.fence = ready.claimed ?? opened.fence;
      const resume = isCold(row) ? [resumeEvent(ports.clock, caller)] : [];
      const events = startEvents({ executionId, clock: ports.clock }, plan, offer?.aside);
      const all = [...resume, ...events];
      const outcome = await journal.append({
        session,
        expectedLastSeq: expectedLastSeq ?? row.projection.lastSeq,
        writer: { kind: "claim", holder: hostId, leaseMs: turns.limits.leaseMs, keep: ready.keep },
        events: all,
      });
      if (outcome.kind === "fenced" && attempt < RACE_ATTEMPTS_MAX) continue;
      if (outcome.kind === "conflict" && expectedLastSeq === undefined && attempt < RACE_ATTEMPTS_MAX) continue;
      const { fence, projection, records } = appendedOrThrow(outcome);
      const head = { seq: row.projection.lastSeq, hash: row.projection.headHash };
      const startSeq = (projection.lastSeq - events.length + 1) as Seq;
      const firstSeq = (startSeq - resume.length) as Seq;
      const position = { session, fence, lastSeq: projection.lastSeq };
      const compute = computeToRestore(row);
      offer?.started(startSeq);
      opened.meter?.spend({ turns: 1 });
      const made = { position, head, started: { records, events: all }, tape: Tape.empty(), tools: offer?.tools, meter: opened.meter };
      return new Turn(turns, { ...plan, ...made, executionId, compute, startSeq, firstSeq, executor, unready });
    }
  }
}
