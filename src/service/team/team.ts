/**
 * A team as its journals tell it: the lead, the workers that it spawned and those that these spawned.
 *
 * Invariants:
 * - A worker is known by the call that spawned it, which is on record in its parent's journal; its session may not be there yet.
 * - A spawn that was refused has no session and no part in the team: once its result is on record, nothing is waited for.
 * - A worker that stands still once the call has its result, since its turn never began or was left with an error, is not waited for either.
 * - The team has ended when the lead's turn has, and every worker that came to be has exited.
 */

import type { Seq, SessionUid } from "../../base/ids.ts";
import type { Digest } from "../../base/ports.ts";
import { Lifecycle_Kind, type Event } from "../../gen/agentsessions/v1/common_pb.ts";
import type { TeamEvent } from "../../gen/roz/v1/agent_pb.ts";
import { spawnCallOf, workerUid } from "./spawn-call.ts";
import { WorkerEvents } from "./worker-events.ts";

/** A session of a team. */
export interface Member {
  readonly session: SessionUid;
  /** The next record of it to look at. */
  nextSeq: Seq;
  /** What is told of it; undefined for the lead. */
  readonly worker: WorkerEvents | undefined;
  /** The members that its calls spawned, by the ids of the calls. */
  readonly spawned: Map<string, Member>;
  /** The call that spawned it has its result: nobody drives it any more. */
  isAnswered: boolean;
  /** Its last record, where it stands still then; 0 where it has none, or no session. */
  stillAtSeq: Seq | undefined;
}

/** What one record comes to. */
export interface TeamStep {
  readonly events: readonly TeamEvent[];
  /** A worker that was not known before. */
  readonly joined: Member | undefined;
  /** A worker whose spawning call has its result, and which may stand still now. */
  readonly resting: Member | undefined;
}

/** Reads the records of a team's members, each one's in order. */
export class Team {
  readonly lead: Member;
  readonly #digest: Digest;
  readonly #hostId: string;
  readonly #members = new Map<SessionUid, Member>();
  #isLeadAtWork = true;

  /** `hostId` is the host of the lead's environment, "" for none: its workers are there as well. */
  constructor(lead: { readonly session: SessionUid; readonly fromSeq: Seq }, parts: { readonly digest: Digest; readonly hostId: string }) {
    this.#digest = parts.digest;
    this.#hostId = parts.hostId;
    this.lead = member(lead.session, lead.fromSeq, undefined);
    this.#members.set(lead.session, this.lead);
  }

  /** The members, in the order in which they were found. */
  get members(): Iterable<Member> {
    return this.#members.values();
  }

  /** Whether nothing more will be told. */
  get hasEnded(): boolean {
    if (this.#isLeadAtWork) return false;
    for (const each of this.#members.values()) if (each.worker?.hasExited === false && !standsStill(each)) return false;
    return true;
  }

  /** Takes the next record of a member. */
  add(of: Member, seq: Seq, event: Event): TeamStep {
    of.nextSeq = (seq + 1) as Seq;
    const { body } = event;
    if (of === this.lead && body.case === "executionStart") this.#isLeadAtWork = true;
    if (of === this.lead && isLast(body)) this.#isLeadAtWork = false;
    const call = spawnCallOf(event);
    const joined = call === undefined ? undefined : this.#join(of, call.id, call.idempotencyKey);
    const answered = body.case === "result" ? of.spawned.get(body.value.id) : undefined;
    if (answered !== undefined) answered.isAnswered = true;
    const events = [...(of.worker?.add(event) ?? []), ...this.rest(of)];
    return { events, joined, resting: answered ?? (of.isAnswered && body.case === "error" ? of : undefined) };
  }

  /** What is told of a member that stands still, once all of its records were taken. */
  rest(of: Member): readonly TeamEvent[] {
    return standsStill(of) ? (of.worker?.giveUp() ?? []) : [];
  }

  /** A call that names a worker that is known already, such as one under the key of an earlier call, adds none. */
  #join(parent: Member, callId: string, key: string): Member | undefined {
    const worker = workerUid(parent.session, key, this.#digest);
    const known = this.#members.get(worker);
    const joined = known ?? member(worker, 1 as Seq, new WorkerEvents({ worker, parent: parent.session, hostId: this.#hostId }));
    parent.spawned.set(callId, joined);
    this.#members.set(worker, joined);
    return known === undefined ? joined : undefined;
  }
}

function member(session: SessionUid, nextSeq: Seq, worker: WorkerEvents | undefined): Member {
  return { session, nextSeq, worker, spawned: new Map(), isAnswered: false, stillAtSeq: undefined };
}

/** Whether nothing more comes of a turn. A session that was deleted before its first one has no END. */
function isLast(body: Event["body"]): boolean {
  return body.case === "end" || (body.case === "lifecycle" && body.value.kind === Lifecycle_Kind.LIFECYCLE_DELETE);
}

function standsStill({ stillAtSeq, nextSeq }: Member): boolean {
  return stillAtSeq !== undefined && nextSeq > stillAtSeq;
}
