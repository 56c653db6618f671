/** Families of sessions for tests: a journal in which sessions grow, are forked, deleted and reclaimed as steps say. */

import fc from "fast-check";
import type { Seq, SessionUid } from "../base/index.ts";
import { normaliseEvent } from "../canon/index.ts";
import { EventKind, type Event } from "../gen/agentsessions/v1/common_pb.ts";
import { projectionAt, type JournalStore, type NewEvent, type SessionRow, type SessionSeed } from "../journal/index.ts";
import { event } from "./events.ts";
import { deletion, forkMarker, seedOf } from "./journal-conformance/fixtures.ts";

/** One step of a family's life; `of` chooses among the sessions that can take it. */
export type FamilyStep =
  | { readonly kind: "grow"; readonly of: number; readonly events: readonly NewEvent[] }
  | { readonly kind: "fork"; readonly of: number; readonly at: number; readonly children: number }
  | { readonly kind: "delete"; readonly of: number }
  | { readonly kind: "reclaim"; readonly of: number };

const number = fc.nat(999);

/** An event that a session may have, of any kind but a deletion. */
function sessionEvent(): fc.Arbitrary<Event> {
  return event({ scope: "recordable" })
    .map(normaliseEvent)
    .filter(({ kind, body }) => {
      // A deletion ends a session, and a decision must name a request that can be.
      if (body.case === "lifecycle") return false;
      return (
        body.case !== "approvalResult" ||
        (kind === EventKind.EVENT_APPROVAL_RESULT && body.value.requestSeq >= 0n && body.value.requestSeq < 2n ** 53n)
      );
    });
}

const newEvent: fc.Arbitrary<NewEvent> = fc.record({
  event: sessionEvent(),
  aside: fc.option(fc.uint8Array({ maxLength: 20 }), { nil: undefined, freq: 4 }),
});

/** Steps of a family. The first makes a session grow, so that there is something to fork. */
export const familySteps: fc.Arbitrary<readonly FamilyStep[]> = fc
  .tuple(
    fc.array(newEvent, { minLength: 1, maxLength: 5 }),
    fc.array(
      fc.oneof(
        {
          weight: 4,
          arbitrary: fc.record({
            kind: fc.constant("grow" as const),
            of: number,
            events: fc.array(newEvent, { minLength: 1, maxLength: 5 }),
          }),
        },
        {
          weight: 4,
          arbitrary: fc.record({ kind: fc.constant("fork" as const), of: number, at: number, children: fc.integer({ min: 1, max: 2 }) }),
        },
        { weight: 1, arbitrary: fc.record({ kind: fc.constant("delete" as const), of: number }) },
        { weight: 1, arbitrary: fc.record({ kind: fc.constant("reclaim" as const), of: number }) },
      ),
      { maxLength: 14 },
    ),
  )
  .map(([events, steps]) => [{ kind: "grow", of: 0, events }, ...steps]);

const FACTS: Partial<SessionSeed> = { project: "p", labels: { b: "2", a: "1", "10": "ten" }, annotations: { note: "line\nline", "": "x" } };

/** A family that lives by steps. Sessions are called s0, s1 …; s0 is everybody's ancestor. */
export class Family {
  readonly journal: JournalStore;
  readonly #living: SessionUid[] = [];
  readonly #deleted: SessionUid[] = [];
  #count = 0;

  constructor(journal: JournalStore) {
    this.journal = journal;
  }

  /** Sessions that are in use. */
  get living(): readonly SessionUid[] {
    return this.#living;
  }

  async live(steps: readonly FamilyStep[]): Promise<void> {
    await this.journal.create(this.#newSeed());
    for (const step of steps) await this.#step(step);
  }

  async #step(step: FamilyStep): Promise<void> {
    const among = step.kind === "reclaim" ? this.#deleted : this.#living;
    const session = among[step.of % Math.max(1, among.length)];
    const row = session === undefined ? undefined : await this.journal.get(session);
    if (session === undefined || row === undefined) return;
    switch (step.kind) {
      case "grow":
        await this.#append(row, step.events);
        return;
      case "fork":
        if (row.projection.lastSeq > 0) await this.#fork(row, (1 + (step.at % row.projection.lastSeq)) as Seq, step.children);
        return;
      case "delete":
        await this.#append(row, [{ event: deletion() }]);
        this.#living.splice(this.#living.indexOf(session), 1);
        this.#deleted.push(session);
        return;
      case "reclaim":
        while ((await this.journal.reclaim(session)).kind === "more");
    }
  }

  async #append(row: SessionRow, events: readonly NewEvent[]): Promise<void> {
    const outcome = await this.journal.append({ session: row.seed.uid, writer: { kind: "hold", fence: row.fence }, events });
    if (outcome.kind !== "appended") throw new Error(`the append was refused as ${outcome.kind}`);
  }

  async #fork(row: SessionRow, atSeq: Seq, count: number): Promise<void> {
    const children = Array.from({ length: count }, () => ({ seed: this.#newSeed(), marker: { event: forkMarker() } }));
    const projection = await projectionAt(this.journal, row, atSeq);
    const outcome = await this.journal.fork({ parent: row.seed.uid, atSeq, projection, children });
    if (outcome.kind !== "forked") throw new Error(`the fork was refused as ${outcome.kind}`);
  }

  #newSeed(): SessionSeed {
    const index = this.#count++;
    const seed = seedOf(`s${index}`, { ...FACTS, name: index % 3 === 0 ? `name ${index}` : "", createTimeMs: 1_000 + (index % 4) });
    this.#living.push(seed.uid);
    return seed;
  }
}
