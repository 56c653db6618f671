/**
 * Cancellation handed down: the turn of a worker whose answer nobody waits for any more is cancelled, and with it its own workers'.
 *
 * Invariants:
 * - Only the spawner's journal says that: its turn has ended or was given up for another one, the call has its result, the session is to
 *   be deleted. A turn that was interrupted, by a shutdown or a crash, goes on one day, and so does its worker.
 * - It holds over crashes: a start looks for workers that were left behind.
 * - A worker whose turn has not begun by then is deleted; a start looks for it among the newest sessions.
 * - Only what `spawn` began is cancelled: the first turn of a session whose uid follows from a call of its spawner's journal.
 */

import { HoldfastError, toHoldfastError } from "../../base/errors.ts";
import { SEQ_NONE, type Seq, type SessionUid } from "../../base/ids.ts";
import type { Clock, Digest, Log } from "../../base/ports.ts";
import { decodeLogRecord } from "../../canon/index.ts";
import type { Controller } from "../../controller/index.ts";
import { EventKind } from "../../gen/agentsessions/v1/common_pb.ts";
import { DeletionState } from "../../gen/agentsessions/v1/session_pb.ts";
import type { JournalStore, ListCursor, SessionRow, StoredRecord } from "../../journal/index.ts";
import { spawnerOf } from "./annotations.ts";
import { emptySessions } from "./empty-sessions.ts";
import { findSpawn } from "./spawned.ts";
import { readWorkerStart } from "./worker-turn.ts";

/** What handing down needs. */
export interface HandDownContext {
  readonly journal: JournalStore;
  readonly controller: Controller;
  readonly clock: Clock;
  readonly digest: Digest;
  readonly log: Log;
}

/** A worker whose turn may be open, and the call that it works for. */
export interface FollowedWorker {
  readonly parent: SessionUid;
  readonly worker: SessionUid;
  readonly callId: string;
  /** The seq of the start of the call's turn. */
  readonly turnSeq: Seq;
}

interface FollowedParent {
  readonly workers: Map<SessionUid, FollowedWorker>;
  readonly unwatch: () => void;
}

const PAGE_ROWS = 100;
/** How often a cancel is tried again that failed, and how long is waited before that at first. */
const ATTEMPTS_MAX = 6;
const FIRST_PAUSE_MS = 250;

/** Watches the spawners of this host's workers. */
export class HandDown implements AsyncDisposable {
  readonly #context: HandDownContext;
  readonly #parents = new Map<SessionUid, FollowedParent>();
  readonly #working = new Set<Promise<void>>();
  readonly #stopping = new AbortController();

  constructor(context: HandDownContext) {
    this.#context = context;
  }

  /** From here on the worker is cancelled when nobody waits for it any more. */
  follow(followed: FollowedWorker): void {
    const { parent, worker } = followed;
    const known = this.#parents.get(parent);
    const workers = known?.workers ?? new Map<SessionUid, FollowedWorker>();
    workers.set(worker, followed);
    if (known !== undefined) return;
    const unwatch = this.#context.journal.watch(parent, (records) => this.#noticed(parent, records));
    this.#parents.set(parent, { workers, unwatch });
  }

  /** The worker's turn is over, or its answer is on its way to the spawner. */
  unfollow({ parent, worker }: Pick<FollowedWorker, "parent" | "worker">): void {
    const known = this.#parents.get(parent);
    known?.workers.delete(worker);
    if (known === undefined || known.workers.size > 0) return;
    known.unwatch();
    this.#parents.delete(parent);
  }

  /** Cancels a followed worker if nobody waits for it. */
  async look(followed: FollowedWorker): Promise<void> {
    const row = await this.#context.journal.get(followed.parent);
    if (row !== undefined && isOpen(row, followed.turnSeq)) return;
    await this.#cancel(followed);
  }

  /**
   * Looks through all open turns, and sessions that have had none, for workers that were left behind: an earlier process ended after their
   * spawner's turn had, or somebody ended that while no host watched. Never rejects: what keeps it from its work is logged.
   */
  start(): Promise<void> {
    return this.#work(this.#lookForLeftBehind());
  }

  /** Stops watching; what is being cancelled is waited for. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    for (const { unwatch } of this.#parents.values()) unwatch();
    this.#parents.clear();
    await Promise.all(this.#working);
  }

  async #lookForLeftBehind(): Promise<void> {
    let after: ListCursor | undefined;
    do {
      const page = await this.#context.journal.list({ openTurn: true, after, limit: PAGE_ROWS });
      for (const row of page.rows) {
        if (this.#stopping.signal.aborted) return;
        await this.#takeUp(row);
      }
      after = page.next;
    } while (after !== undefined);
    for await (const row of emptySessions(this.#context.journal, this.#stopping)) {
      if (spawnerOf(row.seed) !== undefined) await this.#takeUp(row);
    }
  }

  async #takeUp(row: SessionRow): Promise<void> {
    const { journal, digest } = this.#context;
    const parent = spawnerOf(row.seed);
    const spawner = parent === undefined ? undefined : await journal.get(parent);
    // Whoever annotates a session that is not here, or did not spawn this one, has said nothing about its turn.
    const spawn = spawner === undefined ? undefined : await findSpawn(journal, spawner, row.seed.uid, digest);
    if (spawner === undefined || spawn === undefined) return;
    const { openTurn } = spawner.projection;
    const turnSeq = openTurn !== undefined && openTurn.startSeq <= spawn.callSeq ? openTurn.startSeq : spawn.callSeq;
    const followed = { parent: spawner.seed.uid, worker: row.seed.uid, callId: spawn.callId, turnSeq };
    if (!spawn.isAnswered && isOpen(spawner, turnSeq)) return this.follow(followed);
    await this.#cancel(followed);
  }

  #noticed(parent: SessionUid, records: readonly StoredRecord[]): void {
    const workers = [...(this.#parents.get(parent)?.workers.values() ?? [])];
    const answered = new Set(records.map(answeredCall));
    const isEnding = records.some(({ kind }) => ENDING_KINDS.has(kind));
    for (const followed of workers) {
      if (answered.has(followed.callId)) void this.#work(this.#cancel(followed));
      else if (isEnding) void this.#work(this.look(followed));
    }
  }

  async #work(work: Promise<void>): Promise<void> {
    const done = work.catch((error: unknown) => {
      this.#context.log.log("warn", "workers could not be looked after", { code: toHoldfastError(error).code });
    });
    this.#working.add(done);
    await done;
    this.#working.delete(done);
  }

  /** Cancels the worker's turn; what the store refuses just now is tried again, and at the next start. */
  async #cancel(followed: FollowedWorker): Promise<void> {
    const { clock } = this.#context;
    for (let attempt = 1, pauseMs = FIRST_PAUSE_MS; ; attempt++, pauseMs *= 4) {
      try {
        await this.#cancelOnce(followed);
        return this.unfollow(followed);
      } catch (error) {
        if (attempt === ATTEMPTS_MAX || this.#stopping.signal.aborted) throw error;
        await clock.sleep(pauseMs, { signal: this.#stopping.signal }).catch(() => undefined);
      }
    }
  }

  async #cancelOnce({ parent, worker }: FollowedWorker): Promise<void> {
    const { journal, controller } = this.#context;
    const row = await journal.get(worker);
    if (row?.projection.lastSeq === SEQ_NONE && spawnerOf(row.seed) === parent) {
      // It waited for room, and nobody would ever begin its turn.
      if (await controller.deleteUnbegun(worker)) return;
      throw new HoldfastError("aborted", "session: its turn begins just now; look at it again");
    }
    const open = row?.projection.openTurn;
    if (row === undefined || open === undefined) return;
    // What failed waits for a person, as every turn that failed does.
    if (open.failed && row.holder === undefined && controller.running(worker) === undefined) return;
    const start = await readWorkerStart(journal, worker);
    if (start?.startSeq !== open.startSeq) return;
    try {
      await controller.cancel({ session: worker, executionId: open.executionId, reason: "INTERNAL" });
    } catch (error) {
      // It is another turn by now.
      if (toHoldfastError(error).code !== "failed_precondition") throw error;
    }
  }
}

/** Records after which a turn that was open may be so no longer. */
const ENDING_KINDS: ReadonlySet<EventKind> = new Set([EventKind.EVENT_END, EventKind.EVENT_EXECUTION_START, EventKind.EVENT_LIFECYCLE]);

/** Whether the turn that began at `turnSeq` is the session's open one. */
function isOpen({ projection }: SessionRow, turnSeq: Seq): boolean {
  return projection.deletionState === DeletionState.DELETION_ACTIVE && projection.openTurn?.startSeq === turnSeq;
}

function answeredCall({ kind, bytes }: StoredRecord): string | undefined {
  if (kind !== EventKind.EVENT_TOOL_RESULT) return undefined;
  const body = decodeLogRecord(bytes).event?.body;
  return body?.case === "result" ? body.value.id : undefined;
}
