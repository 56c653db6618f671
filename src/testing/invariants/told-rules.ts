/** What clients were told against the journal: streams, begun and ended turns (I8), and replays (I0, I1, I5). */

import type { Seq } from "../../base/index.ts";
import { EventKind } from "../../gen/agentsessions/v1/common_pb.ts";
import type { Ledger, SeenReplay, SeenStream, Told } from "./ledger.ts";
import { hasItsInputs, startSeqFrom, type SessionEvidence } from "./session-evidence.ts";
import { violation, type Violation } from "./violation.ts";
import type { Journals } from "./writer-rules.ts";

/**
 * Harnesses that do something else each time, by name: a turn of theirs with as many records of that kind must not replay as it was.
 */
export type DivergentHarnesses = Readonly<Record<string, { readonly kind: EventKind; readonly count: number }>>;

/** What is wrong with what clients were told in a whole run. */
export function toldViolations(ledger: Ledger, journals: Journals, divergent: DivergentHarnesses): readonly Violation[] {
  return [
    ...ledger.streams.flatMap((stream) => streamViolations(stream, journals)),
    ...ledger.told.flatMap((told) => turnViolations(told, journals)),
    ...ledger.replays.flatMap((replay) => replayViolations(replay, journals, divergent)),
  ];
}

/** A watcher is told each record once, in order, and each is in the journal. `from` skips what was judged before. */
export function streamViolations({ session, fromSeq, records }: SeenStream, journals: Journals, from = 0): readonly Violation[] {
  for (let index = from; index < records.length; index++) {
    const record = records[index];
    if (record === undefined) continue;
    const due = fromSeq + index;
    if (record.seq !== due) return [violation("I8", { session, seq: record.seq }, `a watcher was told this record where ${due} is due`)];
    if (journals.get(session)?.at(due)?.contentHash === record.contentHash) continue;
    return [violation("I8", { session, seq: due }, "a watcher was told a record that is not in the journal")];
  }
  return [];
}

function turnViolations(told: Told, journals: Journals): readonly Violation[] {
  const { session, seq, executionId } = told;
  const evidence = journals.get(session);
  const event = evidence?.at(told.kind === "begun" ? startSeqFrom(evidence, seq) : seq)?.event;
  const { body } = event ?? { body: undefined };
  const right =
    told.kind === "begun"
      ? body?.case === "executionStart"
      : body?.case === "end" && body.value.state === told.state && event?.kind === EventKind.EVENT_END;
  if (right && event?.executionId === executionId) return [];
  return [violation("I8", { session, seq }, `a client was told that its turn has ${told.kind}, and the journal does not say so`)];
}

/** Every ended turn replays as it was recorded and asks no model; a start that does not add up is refused. */
function replayViolations({ session, checks, calls }: SeenReplay, journals: Journals, divergent: DivergentHarnesses): readonly Violation[] {
  const evidence = journals.get(session);
  const found: Violation[] = [];
  if (calls > 0) found.push(violation("I1", { session }, `a replay asked a model ${calls} times`));
  const ends = evidence?.records.filter(({ kind }) => kind === EventKind.EVENT_END).map(({ seq }) => seq) ?? [];
  const checked = checks.map(({ lastSeq }) => lastSeq);
  if (ends.join() !== checked.join())
    found.push(violation("I5", { session }, `turns end at ${ends.join()}, and those at ${checked.join()} were replayed`));
  for (const { startSeq, lastSeq, end, outcome } of checks) {
    const place = { session, seq: lastSeq };
    const asksAnew = evidence === undefined ? undefined : divergent[harnessOf(evidence, startSeq)];
    if (evidence !== undefined && asksAnew !== undefined && outcome.kind === "same") {
      const asked = evidence.records.slice(startSeq, lastSeq).filter(({ kind }) => kind === asksAnew.kind).length;
      if (asked < asksAnew.count) continue;
      found.push(violation("I0", place, "a turn replays as it was, although its harness asked for something else"));
    }
    if (asksAnew !== undefined || outcome.kind === "same") continue;
    if (outcome.kind === "diverged") {
      found.push(violation("I0", place, `a ${end} turn diverged at ${outcome.divergence.seq}: ${outcome.divergence.reason}`));
    } else if (evidence !== undefined && hasItsInputs(evidence, startSeq)) {
      found.push(violation("I5", place, `a ${end} turn could not be replayed: ${outcome.error.message}`));
    }
  }
  return found;
}

function harnessOf(evidence: SessionEvidence, startSeq: Seq): string {
  const start = evidence.at(startSeq)?.event.body;
  return start?.case === "executionStart" ? start.value.harness : "";
}
