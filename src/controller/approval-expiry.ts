/**
 * The expiry of requests that nobody answers: the host gives the answer that its configuration says, as one more who may decide.
 *
 * Invariants:
 * - When a request expires is worked out from the time on its record, so no restart lengthens or shortens it.
 * - The first decision wins, whoever makes it: an expiry is an ordinary decision, and comes to nothing where a person was first.
 * - A sweep can end anywhere, the process with it. The next one finds what is left: requests that are due, and turns that were to go on.
 */

import { timestampMs } from "@bufbuild/protobuf/wkt";
import { HoldfastError, toHoldfastError } from "../base/errors.ts";
import type { SessionUid } from "../base/ids.ts";
import type { Clock, Log } from "../base/ports.ts";
import { ComputeState } from "../gen/agentsessions/v1/session_pb.ts";
import type { JournalStore, ListCursor, OpenApproval, SessionRow } from "../journal/index.ts";
import type { Controller } from "./contract.ts";
import { eventAt } from "./host-tools.ts";
import { approvalRefOf, ownApprovals, requestedCall } from "./open-approvals.ts";
import { policyActor, ruleFor, type ApprovalExpiry, type PolicyRule } from "./policy.ts";
import { rowOf } from "./transitions.ts";

/** The subject of decisions that an expiry makes. */
export const EXPIRY_SUBJECT = "expiry";

/** What becomes of requests that nobody answers. */
export interface ExpiryPolicy {
  /** A request of a call that one of these speaks of, the first that matches, expires as that rule says, if it says anything. */
  readonly rules: readonly PolicyRule[];
  /** What becomes of all others. */
  readonly expiry: ApprovalExpiry;
  /** Whether a turn goes on by itself once its last open request has expired. */
  readonly resume: boolean;
}

/** What an expirer needs. */
export interface ExpirerOptions {
  readonly journal: JournalStore;
  readonly controller: Pick<Controller, "approve" | "resume" | "running">;
  readonly clock: Clock;
  readonly log: Log;
  readonly policy: ExpiryPolicy;
}

/** What came of a sweep. */
export interface ExpiryReport {
  /** Requests that were decided. */
  readonly expired: number;
  /** Turns that went on. */
  readonly resumed: number;
}

/** An expirer at work. */
export interface Expirer {
  /** Ends it. Resolves when it does nothing more; turns that it resumed are the controller's. */
  stop(): Promise<void>;
}

const PAGE_ROWS = 100;
const SLEEP_MIN_MS = 1_000;
const SLEEP_MAX_MS = 60_000;
/** Requests whose expiry is remembered between sweeps, so that their records are read once. */
const REMEMBERED_MAX = 10_000;
/** How long a turn that could not go on is left alone. */
const REFUSED_MS = 10 * 60_000;

/** Whether anything can expire under a policy. */
export function canExpire({ rules, expiry }: Pick<ExpiryPolicy, "rules" | "expiry">): boolean {
  return expiry.afterMs !== undefined || rules.some((rule) => rule.expiry?.afterMs !== undefined);
}

/** Sweeps now and then for as long as it is not stopped. What keeps a sweep from its work is logged, and the next one tries again. */
export function startExpirer(options: ExpirerOptions): Expirer {
  const stopping = new AbortController();
  const { signal } = stopping;
  const ended = expireForever(options, signal);
  return {
    stop: async () => {
      stopping.abort(new HoldfastError("cancelled", "expirer: it was stopped"));
      await ended;
    },
  };
}

async function expireForever(options: ExpirerOptions, signal: AbortSignal): Promise<void> {
  const { clock, log } = options;
  const sweeps = new ApprovalSweeps(options);
  while (!signal.aborted) {
    try {
      const { expired, resumed } = await sweeps.sweep(signal);
      if (expired > 0 || resumed > 0) log.log("info", "requests expired", { expired, resumed });
    } catch (error) {
      if (!signal.aborted) log.log("warn", "requests could not be looked through", { code: toHoldfastError(error).code });
    }
    await clock.sleep(sweeps.sleepMs(), { signal }).catch(() => undefined);
  }
}

/** When a request expires, and with which answer. */
interface Due {
  readonly atMs: number;
  readonly afterMs: number;
  readonly answer: ApprovalExpiry["answer"];
}

/** The sweeps of one expirer. */
export class ApprovalSweeps {
  readonly #options: ExpirerOptions;
  /** By session and request; undefined for one that never expires. */
  #remembered = new Map<string, Due | undefined>();
  readonly #refusedUntilMs = new Map<SessionUid, number>();
  #nextDueMs = Number.POSITIVE_INFINITY;

  constructor(options: ExpirerOptions) {
    this.#options = options;
  }

  /** How long to wait for the next sweep: until something is due, be it asked for only now. */
  sleepMs(): number {
    const { clock, policy } = this.#options;
    const soonestMs = Math.min(...[policy.expiry, ...policy.rules.map((rule) => rule.expiry)].map((each) => each?.afterMs ?? SLEEP_MAX_MS));
    const dueMs = this.#nextDueMs - clock.nowMs();
    return Math.max(SLEEP_MIN_MS, Math.min(SLEEP_MAX_MS, soonestMs, dueMs));
  }

  /** Looks through all sessions that wait for a decision, once. Rejects with the store's error. */
  async sweep(signal?: AbortSignal): Promise<ExpiryReport> {
    const before = this.#remembered;
    this.#remembered = new Map();
    this.#nextDueMs = Number.POSITIVE_INFINITY;
    const report = { expired: 0, resumed: 0 };
    for await (const row of this.#waiting(signal)) {
      const expired = await this.#expire(row, before);
      report.expired += expired;
      if (await this.#goOn(expired === 0 ? row : await rowOf(this.#options.journal, row.seed.uid))) report.resumed += 1;
    }
    return report;
  }

  async *#waiting(signal: AbortSignal | undefined): AsyncGenerator<SessionRow, void, undefined> {
    let after: ListCursor | undefined;
    do {
      const page = await this.#options.journal.list({ openApproval: true, after, limit: PAGE_ROWS, signal });
      for (const row of page.rows) {
        if (signal?.aborted === true) return;
        yield row;
      }
      after = page.next;
    } while (after !== undefined);
  }

  /** Answers what is due of a session's requests; how many. */
  async #expire(row: SessionRow, before: ReadonlyMap<string, Due | undefined>): Promise<number> {
    let expired = 0;
    for (const approval of ownApprovals(row)) {
      if (approval.decision !== undefined) continue;
      const key = `${row.seed.uid} ${approval.requestSeq}`;
      const due = before.has(key) ? before.get(key) : await this.#dueOf(row, approval);
      if (due !== undefined && due.atMs <= this.#options.clock.nowMs()) {
        if (await this.#answer(row, approval, due)) expired += 1;
        continue;
      }
      if (due !== undefined) this.#nextDueMs = Math.min(this.#nextDueMs, due.atMs);
      if (this.#remembered.size < REMEMBERED_MAX) this.#remembered.set(key, due);
    }
    return expired;
  }

  async #dueOf(row: SessionRow, approval: OpenApproval): Promise<Due | undefined> {
    const { journal, policy } = this.#options;
    const event = await eventAt(journal, row.seed.uid, approval.requestSeq);
    const call = await requestedCall(journal, row, approval);
    const { afterMs, answer } = (call === undefined ? undefined : ruleFor(policy.rules, call)?.expiry) ?? policy.expiry;
    if (afterMs === undefined || event?.ts === undefined) return undefined;
    return { atMs: timestampMs(event.ts) + afterMs, afterMs, answer };
  }

  /** False where somebody else was first. */
  async #answer(row: SessionRow, approval: OpenApproval, due: Due): Promise<boolean> {
    const { controller, log } = this.#options;
    const session = row.seed.uid;
    const ref = approvalRefOf(row, approval);
    const reason = `nobody decided within ${spanText(due.afterMs)}`;
    try {
      await controller.approve({ session, ref, approved: due.answer === "allow", reason, actor: policyActor(EXPIRY_SUBJECT) });
      return true;
    } catch (error) {
      const { code } = toHoldfastError(error);
      if (code !== "failed_precondition" && code !== "aborted") log.log("warn", "a request could not expire", { session, code });
      return false;
    }
  }

  /** Resumes a turn whose requests are all decided, where an expiry was among them and the policy says so. */
  async #goOn(row: SessionRow): Promise<boolean> {
    const { policy, controller, clock, log } = this.#options;
    const session = row.seed.uid;
    if (!policy.resume || !isParkedDecided(row) || controller.running(session) !== undefined || row.holder !== undefined) return false;
    if ((this.#refusedUntilMs.get(session) ?? 0) > clock.nowMs() || !(await this.#hasExpired(row))) return false;
    try {
      const { turn } = await controller.resume(session, policyActor(EXPIRY_SUBJECT));
      this.#refusedUntilMs.delete(session);
      return turn !== undefined;
    } catch (error) {
      if (this.#refusedUntilMs.size >= REMEMBERED_MAX) this.#refusedUntilMs.clear();
      this.#refusedUntilMs.set(session, clock.nowMs() + REFUSED_MS);
      log.log("warn", "a turn did not go on after its request expired", { session, code: toHoldfastError(error).code });
      return false;
    }
  }

  async #hasExpired(row: SessionRow): Promise<boolean> {
    for (const { decision } of ownApprovals(row)) {
      const event = decision === undefined ? undefined : await eventAt(this.#options.journal, row.seed.uid, decision.seq);
      const { issuer, principal, subject } = policyActor(EXPIRY_SUBJECT);
      const { actor } = event ?? {};
      if (actor?.issuer === issuer && actor.principal === principal && actor.subject === subject) return true;
    }
    return false;
  }
}

function isParkedDecided(row: SessionRow): boolean {
  const approvals = ownApprovals(row);
  const isCold = row.projection.computeState === ComputeState.COMPUTE_COLD;
  return isCold && approvals.length > 0 && approvals.every(({ decision }) => decision !== undefined);
}

const UNITS: readonly (readonly [string, number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
];

/** A span as the config file says it. */
function spanText(ms: number): string {
  const [unit, unitMs] = UNITS.find(([, size]) => ms >= size && ms % size === 0) ?? ["ms", 1];
  return `${ms / unitMs}${unit}`;
}
