/**
 * WatchTeam: what the workers of a task do, from their journals.
 *
 * Invariants:
 * - What happened before the watch comes first, in the order of the records' times, then what happens as it does: each once, and what
 *   concerns one worker in the order of its journal.
 * - Nothing is told before it is durable (I8), and nothing is kept: two watches of one task are told the same of its past.
 * - A slow reader holds up its own watch and nothing else. What waits for it of each member is a page of records, or what any watch may be
 *   behind.
 */

import { timestampMs } from "@bufbuild/protobuf/wkt";
import { invariant } from "../../base/assert.ts";
import { SEQ_NONE, type Seq } from "../../base/ids.ts";
import type { Digest } from "../../base/ports.ts";
import { decodeLogRecord } from "../../canon/index.ts";
import type { Controller } from "../../controller/index.ts";
import type { Event } from "../../gen/agentsessions/v1/common_pb.ts";
import type { TeamEvent } from "../../gen/roz/v1/agent_pb.ts";
import type { JournalStore, SessionRow, StoredRecord } from "../../journal/index.ts";
import { Confluence } from "../confluence.ts";
import { HOST_ANNOTATION } from "../environment/annotations.ts";
import { Team, type Member } from "./team.ts";

/** What watching needs. */
export interface TeamSources {
  readonly journal: JournalStore;
  readonly controller: Pick<Controller, "watch">;
  readonly digest: Digest;
}

/** A record of a member. */
interface Step {
  readonly member: Member;
  readonly seq: Seq;
  readonly event: Event;
}

/** Watches the team of `lead` until it has ended or the signal fires. */
export async function* watchTeam(sources: TeamSources, lead: SessionRow, signal: AbortSignal): AsyncGenerator<TeamEvent, void, undefined> {
  const fromSeq = ((lead.parent?.forkSeq ?? 0) + 1) as Seq;
  const team = new Team(
    { session: lead.seed.uid, fromSeq },
    { digest: sources.digest, hostId: lead.seed.annotations[HOST_ANNOTATION] ?? "" },
  );
  yield* toldOfThePast(sources, team, signal);
  if (!team.hasEnded) yield* toldLive(sources, team, signal);
}

/** What there is already, as if it had been watched: the records of all members by their times. */
async function* toldOfThePast(sources: TeamSources, team: Team, signal: AbortSignal): AsyncGenerator<TeamEvent, void, undefined> {
  const readers = [await PastReader.open(sources.journal, team.lead, signal)];
  for (let reader = earliest(readers); reader !== undefined; reader = earliest(readers)) {
    const { member, seq, event } = reader.taken();
    const { events, joined } = team.add(member, seq, event);
    yield* events;
    if (joined !== undefined) readers.push(await PastReader.open(sources.journal, joined, signal));
    await reader.advance();
  }
  for (const member of team.members) yield* toldAtRest(sources.journal, team, member);
}

/** What happens from there on. */
async function* toldLive(sources: TeamSources, team: Team, signal: AbortSignal): AsyncGenerator<TeamEvent, void, undefined> {
  const ended = new AbortController();
  const both = AbortSignal.any([signal, ended.signal]);
  using steps = new Confluence<Step>();
  for (const member of team.members) if (member.stillAtSeq === undefined) steps.join(stepsOf(sources, member, both));
  try {
    while (!team.hasEnded) {
      const step = await steps.next();
      if (step === undefined) return;
      const { events, joined, resting } = team.add(step.member, step.seq, step.event);
      yield* events;
      if (joined !== undefined) steps.join(stepsOf(sources, joined, both));
      if (resting !== undefined) yield* toldAtRest(sources.journal, team, resting);
    }
  } finally {
    ended.abort();
  }
}

/** Once the call that spawned a member is answered, nobody drives it: where it stands then it stays, until a person takes it up. */
async function* toldAtRest(journal: JournalStore, team: Team, member: Member): AsyncGenerator<TeamEvent, void, undefined> {
  if (!member.isAnswered) return;
  member.stillAtSeq = stillAtSeq(await journal.get(member.session));
  yield* team.rest(member);
}

/** Where a worker stands still: at its ERROR, or before its first record. Undefined for one that has an END, goes on, or is being cancelled. */
function stillAtSeq(row: SessionRow | undefined): Seq | undefined {
  if (row === undefined || row.keptSeq !== undefined) return SEQ_NONE;
  const { lastSeq, openTurn } = row.projection;
  const isLeft = openTurn?.failed === true && row.holder === undefined;
  return isLeft || lastSeq === SEQ_NONE ? lastSeq : undefined;
}

async function* stepsOf({ controller }: TeamSources, member: Member, signal: AbortSignal): AsyncGenerator<Step, void, undefined> {
  const { session, nextSeq: fromSeq } = member;
  for await (const item of controller.watch({ session, fromSeq, deltas: false, signal })) {
    if (item.kind === "record") yield stepOf(member, item.record);
  }
}

function stepOf(member: Member, record: StoredRecord): Step {
  const { event } = decodeLogRecord(record.bytes);
  invariant(event !== undefined, "a committed record has an event");
  return { member, seq: record.seq, event };
}

/** Reads what one member has on record when it is opened, one record ahead. */
class PastReader {
  readonly #steps: AsyncIterator<Step, void>;
  #next: Step | undefined;

  private constructor(steps: AsyncIterator<Step, void>) {
    this.#steps = steps;
  }

  static async open(journal: JournalStore, member: Member, signal: AbortSignal): Promise<PastReader> {
    const reader = new PastReader(pastSteps(journal, member, signal));
    await reader.advance();
    return reader;
  }

  /** When the next record was made; infinite where there is none. */
  get atMs(): number {
    const ts = this.#next?.event.ts;
    if (this.#next === undefined) return Number.POSITIVE_INFINITY;
    return ts === undefined ? 0 : timestampMs(ts);
  }

  taken(): Step {
    invariant(this.#next !== undefined, "only a reader with a record is taken from");
    return this.#next;
  }

  async advance(): Promise<void> {
    const { value } = await this.#steps.next();
    this.#next = value ?? undefined;
  }
}

async function* pastSteps(journal: JournalStore, member: Member, signal: AbortSignal): AsyncGenerator<Step, void, undefined> {
  for await (const page of journal.read({ session: member.session, fromSeq: member.nextSeq, signal })) {
    for (const record of page) yield stepOf(member, record);
  }
}

/** The reader whose next record is the oldest; of several the one that was found first, so that a call comes before what it spawned. */
function earliest(readers: readonly PastReader[]): PastReader | undefined {
  let found: PastReader | undefined;
  for (const reader of readers) if (reader.atMs < (found?.atMs ?? Number.POSITIVE_INFINITY)) found = reader;
  return found;
}
