/**
 * One worker, from before its turn to its end, over whatever lies between: a decision that it waits for, a crash, another host.
 *
 * Invariants:
 * - Its prompt is run once: the turn begins only on a session that has had none, at the head that was seen (I3, I6).
 * - Where it stands is read from its journal each time. Whoever drives it again goes on from there.
 * - Nobody else resumes it: once everything is decided that it waits for, it goes on by itself.
 * - Its spawner waits and needs no room meanwhile: where the host has none left, the worker takes the spawner's, one worker at a time; others
 *   wait. So a host that is full of spawners goes on.
 */

import { HoldfastError, toHoldfastError } from "../../base/errors.ts";
import type { SessionUid } from "../../base/ids.ts";
import type { Clock } from "../../base/ports.ts";
import { ownApprovals, type Controller, type ExecInvocation, type RunningTurn, type SeatOptions } from "../../controller/index.ts";
import { ComputeState, DeletionState } from "../../gen/agentsessions/v1/session_pb.ts";
import type { JournalStore, SessionRow } from "../../journal/index.ts";
import { InterruptedCallError, textMessage, type IdentityRef } from "../../spi/index.ts";
import type { WorkerAnswer } from "./spawn-result.ts";
import { settledOrFired, Waking } from "./waking.ts";
import { readWorkerProgress, readWorkerStart, type WorkerProgress, type WorkerStart } from "./worker-turn.ts";

/** What driving workers needs. */
export interface WorkerContext {
  readonly journal: JournalStore;
  readonly controller: Controller;
  readonly clock: Clock;
}

/** A worker that is to be driven; its session is there. */
export interface WorkerRequest {
  readonly worker: SessionUid;
  /** Whose turn waits for it on this host. */
  readonly spawner: SessionUid;
  readonly prompt: string;
  /** How long it may take in all, from its creation; undefined for as long as it likes. */
  readonly timeoutMs: number | undefined;
  /** Fires when nobody waits for the answer any more. The worker is left as it is then. */
  readonly signal: AbortSignal;
}

/** How often a worker is looked at that another host has, or that cannot be taken up just now. */
const LOOK_AGAIN_MS = 1_000;

/**
 * Drives a worker and resolves with how its turn went. Rejects with the signal's reason, and with InterruptedCallError where it cannot go
 * on here for now.
 */
export async function driveWorker(context: WorkerContext, request: WorkerRequest): Promise<WorkerAnswer> {
  using drive = new Drive(context, request);
  return await drive.run();
}

class Drive implements Disposable {
  readonly #context: WorkerContext;
  readonly #request: WorkerRequest;
  readonly #waking: Waking;
  /** Fires when the worker's time is over. */
  readonly #overdue = new AbortController();
  #start: WorkerStart | undefined;

  constructor(context: WorkerContext, request: WorkerRequest) {
    this.#context = context;
    this.#request = request;
    this.#waking = new Waking(context.journal, request.worker, [request.signal, this.#overdue.signal, context.controller.closing]);
  }

  [Symbol.dispose](): void {
    this.#waking[Symbol.dispose]();
  }

  async run(): Promise<WorkerAnswer> {
    const { clock } = this.#context;
    const { timeoutMs, signal } = this.#request;
    const { createTimeMs } = (await this.#row()).seed;
    const leftMs = timeoutMs === undefined ? undefined : Math.max(0, createTimeMs + timeoutMs - clock.nowMs());
    const timer = leftMs === undefined ? undefined : clock.after(leftMs, () => this.#overdue.abort());
    try {
      for (;;) {
        signal.throwIfAborted();
        this.#waking.reset();
        const answer = await this.#step(await this.#row());
        if (answer !== undefined) return answer;
      }
    } finally {
      timer?.cancel();
    }
  }

  /** One step on the way; resolves with the answer once there is one. */
  async #step(row: SessionRow): Promise<WorkerAnswer | undefined> {
    const { journal } = this.#context;
    const { worker, prompt } = this.#request;
    const { openTurn } = row.projection;
    this.#start ??= await readWorkerStart(journal, worker);
    const start = this.#start;
    if (start === undefined) return this.#begin(row);
    // Its turn began after the row was read, which says nothing of it.
    if (start.startSeq > row.projection.lastSeq) return;
    if (start.prompt !== prompt) return failed("CANCELED", "its session was used for something else");
    if (openTurn?.startSeq !== start.startSeq) return answerOf(await readWorkerProgress(journal, worker, start));
    if (this.#overdue.signal.aborted) return this.#stop(openTurn.executionId);
    const running = this.#context.controller.running(worker);
    if (running !== undefined) return this.#ended(running);
    if (openTurn.failed && row.holder === undefined) {
      const { error } = await readWorkerProgress(journal, worker, start);
      return failed("FAILED", error ?? "its turn was interrupted by an error");
    }
    // One that waits while its host shuts down would wait for nothing.
    if (this.#context.controller.closing.aborted) throw this.#interrupted(this.#context.controller.closing.reason);
    if (waitsForDecision(row)) return this.#woken();
    return this.#resume(row.seed.identity);
  }

  get #seat(): SeatOptions {
    return { lentBy: this.#request.spawner };
  }

  async #row(): Promise<SessionRow> {
    const row = await this.#context.journal.get(this.#request.worker);
    if (row === undefined) throw new HoldfastError("not_found", "session: the worker's session is gone");
    return row;
  }

  /** Begins the turn of a session that has had none. */
  async #begin(row: SessionRow): Promise<WorkerAnswer | undefined> {
    const { controller } = this.#context;
    if (row.projection.deletionState !== DeletionState.DELETION_ACTIVE) return failed("CANCELED", "its session was deleted");
    let turn: RunningTurn;
    try {
      const plan = await controller.plan(row, invocationOf(row, this.#request.prompt));
      this.#request.signal.throwIfAborted();
      if (!controller.hasRoom(this.#seat)) return await this.#waitForRoom();
      turn = await controller.begin(row.seed.uid, plan, this.#seat);
    } catch (error) {
      this.#request.signal.throwIfAborted();
      const { code, message } = toHoldfastError(error);
      if (code === "unavailable") throw this.#interrupted(error);
      return code === "aborted" ? this.#lookAgain() : failed("FAILED", `it could not be started: ${message}`);
    }
    return this.#ended(turn);
  }

  async #waitForRoom(): Promise<WorkerAnswer | undefined> {
    if (!this.#overdue.signal.aborted) return this.#lookAgain();
    // Somebody else may have begun it.
    if (!(await this.#context.controller.deleteUnbegun(this.#request.worker))) return this.#lookAgain();
    return failed("CANCELED", "its time was up before the host had room for its turn");
  }

  async #stop(executionId: string): Promise<undefined> {
    try {
      await this.#context.controller.cancel({ session: this.#request.worker, executionId, reason: "TIMEOUT" });
    } catch (error) {
      const { code } = toHoldfastError(error);
      if (code !== "aborted" && code !== "failed_precondition") throw this.#interrupted(error);
      return this.#lookAgain();
    }
  }

  async #resume(actor: IdentityRef | undefined): Promise<undefined> {
    let turn: RunningTurn | undefined;
    try {
      ({ turn } = await this.#context.controller.resume(this.#request.worker, actor, this.#seat));
    } catch (error) {
      this.#request.signal.throwIfAborted();
      const { code } = toHoldfastError(error);
      // Somebody else takes it up just now, or this host has its hands full.
      if (code !== "aborted" && code !== "resource_exhausted") throw this.#interrupted(error);
    }
    return turn === undefined ? this.#lookAgain() : this.#ended(turn);
  }

  /** Waits for the turn that runs here. One that stopped with neither END nor ERROR would do so again if it were resumed at once. */
  async #ended(turn: RunningTurn): Promise<undefined> {
    const { signal } = this.#request;
    await settledOrFired(turn.outcome, [signal, this.#overdue.signal]);
    signal.throwIfAborted();
    if (this.#overdue.signal.aborted) return;
    const outcome = await turn.outcome;
    if (outcome.kind !== "interrupted") return;
    const { openTurn } = (await this.#row()).projection;
    if (openTurn === undefined || openTurn.failed || openTurn.executionId !== turn.executionId) return;
    // Another host has it.
    if (outcome.error.code === "aborted") return this.#lookAgain();
    throw this.#interrupted(outcome.error);
  }

  async #woken(): Promise<undefined> {
    await this.#waking.woken();
  }

  /** Waits until something happens, at most a second. */
  async #lookAgain(): Promise<undefined> {
    await this.#waking.wokenWithin(this.#context.clock, LOOK_AGAIN_MS);
  }

  #interrupted(error: unknown): InterruptedCallError {
    const { code, message } = toHoldfastError(error);
    const text = `session: what it spawned (${this.#request.worker}) cannot go on now: ${message}`;
    return new InterruptedCallError(new HoldfastError(code, text, { cause: error }));
  }
}

function invocationOf(row: SessionRow, prompt: string): ExecInvocation {
  return {
    inputs: [textMessage("user", prompt)],
    caller: row.seed.identity,
    harness: "",
    config: new Uint8Array(),
    resumeFromSeq: 0n,
    expectedLastSeq: row.projection.lastSeq,
    deadlineMs: undefined,
  };
}

/** Whether the session is parked and something of what it asked is not decided yet. */
function waitsForDecision(row: SessionRow): boolean {
  const isParked = row.projection.computeState === ComputeState.COMPUTE_COLD;
  return isParked && ownApprovals(row).some(({ decision }) => decision === undefined);
}

function answerOf({ end, lastWords }: WorkerProgress): WorkerAnswer {
  switch (end?.state) {
    case undefined:
      return failed("CANCELED", "its turn was given up for another one");
    case "COMPLETED":
      return { kind: "completed", text: lastWords };
    case "FAILED":
      return failed("FAILED", end?.why || "its turn failed");
    case "CANCELED":
      return failed("CANCELED", `its turn was cancelled (${end?.why || "USER"})`);
  }
}

function failed(state: "FAILED" | "CANCELED", why: string): WorkerAnswer {
  return { kind: "failed", state, why: `the sub-agent has no answer: ${why}` };
}
