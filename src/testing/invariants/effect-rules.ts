/**
 * Effects against the journal: no model was asked without a durable MODEL_CALL for that very request (I0, I7), none again for what
 * was recorded (I3), a run was served what is recorded (I2, I3), and was started with what is recorded (I4).
 */

import { equals } from "@bufbuild/protobuf";
import type { SessionUid } from "../../base/index.ts";
import { wellFormedMessage } from "../../canon/index.ts";
import { EventKind, EventSchema, Lifecycle_Kind, MessageSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import type { Message } from "../../spi/index.ts";
import type { Ledger, RealCall, Run, SeenDivergence, SeenStart, ServedCompletion } from "./ledger.ts";
import { completionOf, modelCallSeqs, type SessionEvidence } from "./session-evidence.ts";
import { toolViolations } from "./tool-rules.ts";
import { violation, type Violation } from "./violation.ts";
import type { Journals } from "./writer-rules.ts";

/** What is wrong with the effects of a whole run. */
export function effectViolations(ledger: Ledger, journals: Journals): readonly Violation[] {
  const claims = new Claims(ledger);
  return [
    ...ledger.calls.flatMap((call) => callViolations(call, claims, journals)),
    ...repeatedCalls(ledger, claims, journals),
    ...[...journals.values()].flatMap((evidence) => completionViolations(evidence, ledger)),
    ...servedViolations(ledger, claims, journals),
    ...ledger.starts.flatMap((start) => startViolations(start, journals)),
    ...ledger.divergences.flatMap((divergence) => divergenceViolations(divergence, ledger, journals)),
    ...toolViolations(ledger, journals, (run) => claims.headOf(run)),
  ];
}

/** Where runs began: the head that each claim found and left, and how often a session's turn was taken up again. */
class Claims {
  readonly #heads = new Map<string, { readonly found: number; readonly left: number }>();
  readonly #recoveries = new Map<SessionUid, number[]>();

  constructor(ledger: Ledger) {
    for (const { session, writer, answer, fence, records, expectedLastSeq, events } of ledger.appends) {
      if (answer !== "appended" || writer.kind !== "claim") continue;
      const head = (records[0]?.seq ?? (expectedLastSeq ?? 0) + 1) - 1;
      this.#heads.set(`${session} ${fence}`, { found: head, left: head + records.length });
      const starts = events.some(({ kind }) => kind === EventKind.EVENT_EXECUTION_START);
      if (starts || writer.leaseMs === 0) continue;
      this.#recoveries.set(session, [...(this.#recoveries.get(session) ?? []), head]);
    }
  }

  /** The head that a run found; undefined for a replay's, and for one whose claim was never answered. */
  headOf({ session, fence }: Run): number | undefined {
    return this.#heads.get(`${session} ${fence}`)?.found;
  }

  /** The head that a run's claim left: what the run wrote itself comes after it. */
  ownFrom({ session, fence }: Run): number {
    return this.#heads.get(`${session} ${fence}`)?.left ?? 0;
  }

  /** How often the turn was taken up again with `seq` in its record. */
  recoveriesAfter(session: SessionUid, seq: number): number {
    return (this.#recoveries.get(session) ?? []).filter((head) => head >= seq).length;
  }
}

/** What is wrong with one request to a model. */
function callViolations(call: RealCall, claims: Claims, journals: Journals): readonly Violation[] {
  const { session, callSeq, fence, inputHash } = call;
  const place = { session, seq: callSeq };
  if (fence === "replay") return [violation("I1", place, "a replay asked a model")];
  const evidence = journals.get(session);
  if (callSeq === undefined || evidence === undefined) return [violation("I7", place, "a model was asked without a durable MODEL_CALL")];
  const body = evidence.at(callSeq)?.event.body;
  const recorded = body?.case === "model" ? body.value.inputHash : undefined;
  if (recorded !== inputHash) return [violation("I0", place, "a model was asked for something else than its MODEL_CALL says")];
  const completion = completionOf(evidence, callSeq);
  const head = claims.headOf(call);
  if (completion === undefined || head === undefined || completion.seq > head) return [];
  return [violation("I3", place, "a model was asked again for a completion that the run found recorded")];
}

/** Each MODEL_CALL costs one request, and one more at most for each time that the turn was taken up again. */
function repeatedCalls(ledger: Ledger, claims: Claims, journals: Journals): readonly Violation[] {
  const found: Violation[] = [];
  const counts = new Map<string, { readonly call: RealCall; count: number; readonly fences: Set<unknown> }>();
  for (const call of ledger.calls) {
    if (call.callSeq === undefined) continue;
    const key = `${call.session} ${call.callSeq}`;
    const entry = counts.get(key) ?? { call, count: 0, fences: new Set() };
    entry.count += 1;
    if (entry.fences.has(call.fence)) found.push(violation("I3", placeOf(call), "one run asked a model twice under one MODEL_CALL"));
    entry.fences.add(call.fence);
    counts.set(key, entry);
  }
  for (const { call, count } of counts.values()) {
    const first = isOwn(call, ledger) ? 1 : 0;
    const allowed = first + claims.recoveriesAfter(call.session, call.callSeq ?? 0);
    if (count <= allowed || journals.get(call.session) === undefined) continue;
    found.push(violation("I3", placeOf(call), `a model was asked ${count} times under one MODEL_CALL, ${allowed} are allowed`));
  }
  return found;
}

function placeOf({ session, callSeq }: RealCall): { readonly session: SessionUid; readonly seq: number | undefined } {
  return { session, seq: callSeq };
}

/** Whether the call's session wrote its MODEL_CALL itself; a fork asks for an inherited one only when it takes the turn up. */
function isOwn({ session, callSeq }: RealCall, ledger: Ledger): boolean {
  const fork = ledger.forks.find(({ children }) => children.includes(session));
  return callSeq !== undefined && callSeq > (fork?.atSeq ?? 0);
}

/** Every recorded completion is what a model answered, byte for byte (I2). */
function completionViolations(evidence: SessionEvidence, ledger: Ledger): readonly Violation[] {
  const found: Violation[] = [];
  for (const { seq, event } of evidence.records) {
    if (event.body.case !== "model") continue;
    const completion = completionOf(evidence, seq);
    if (completion?.event.body.case !== "message") continue;
    const { inputHash } = event.body.value;
    const answers = ledger.calls.filter((call) => call.executionId === event.executionId && call.inputHash === inputHash);
    const message = completion.event.body.value;
    if (answers.some(({ response }) => response !== undefined && sameMessage(wellFormedMessage(response), message))) continue;
    found.push(violation("I2", { session: evidence.session, seq: completion.seq }, "a recorded completion is not what a model answered"));
  }
  return found;
}

function sameMessage(left: Message, right: Message): boolean {
  return equals(MessageSchema, left, right);
}

/** What a run was served is what is recorded, unless nothing of the run is recorded after it. */
function servedViolations(ledger: Ledger, claims: Claims, journals: Journals): readonly Violation[] {
  const found: Violation[] = [];
  const nth = new Map<string, number>();
  for (const served of ledger.served) {
    const { session, fence, executionId, inputHash } = served;
    const evidence = journals.get(session);
    if (evidence === undefined) continue;
    const key = `${session} ${fence} ${executionId} ${inputHash}${fence === "replay" ? ` ${served.host}` : ""}`;
    const index = nth.get(key) ?? 0;
    nth.set(key, index + 1);
    const callSeq = modelCallSeqs(evidence, executionId, inputHash)[index];
    const completion = callSeq === undefined ? undefined : completionOf(evidence, callSeq);
    const body = completion?.event.body;
    if (served.actsItself && (completion === undefined || completion.seq > served.durableSeq)) {
      const what = "a harness that can act by itself was served a completion that was not durable";
      found.push(violation("I7", { session, seq: completion?.seq ?? callSeq }, what));
    }
    if (completion !== undefined && body?.case === "message" && sameMessage(body.value, served.message)) continue;
    const wasRecorded = completion !== undefined && completion.seq <= (claims.headOf(served) ?? 0);
    const restsFrom = Math.max(completion?.seq ?? callSeq ?? 0, claims.ownFrom(served));
    if (!wasRecorded && !wroteAfter(served, evidence, restsFrom)) continue;
    found.push(violation("I3", { session, seq: completion?.seq ?? callSeq }, "a run was served another completion than the recorded one"));
  }
  return found;
}

/** Whether something of the run is in the journal after `seq`: something that may rest on what it was served. */
function wroteAfter({ fence }: ServedCompletion, evidence: SessionEvidence, seq: number): boolean {
  return fence === "replay" || evidence.records.slice(seq).some((record) => record.fence === fence);
}

/** A run is started with its recorded inputs and config, and the whole prefix as its history (I4). */
function startViolations(start: SeenStart, journals: Journals): readonly Violation[] {
  const { session, executionId } = start;
  const evidence = journals.get(session);
  const marker = evidence?.records.find(({ event }) => event.kind === EventKind.EVENT_EXECUTION_START && event.executionId === executionId);
  const found: Violation[] = [];
  const require = (holds: boolean, what: string): void => {
    if (!holds) found.push(violation("I4", { session, seq: marker?.seq }, what));
  };
  if (evidence === undefined || marker?.event.body.case !== "executionStart") {
    return [violation("I7", { session }, "a harness ran without a durable EXECUTION_START")];
  }
  const { config, resumeFromSeq } = marker.event.body.value;
  require(start.lastSeq === marker.seq - 1, "a run's history does not end before its start");
  require(Buffer.compare(start.config, config) === 0 && start.resumeFromSeq === resumeFromSeq, "a run got another config or cursor");
  const inputs = evidence.records.slice(marker.seq, marker.seq + start.inputs.length);
  const same = inputs.every(({ event: { kind, body } }, index) => {
    const input = start.inputs[index];
    return kind === EventKind.EVENT_INPUT && body.case === "message" && input !== undefined && sameMessage(body.value, input);
  });
  require(inputs.length === start.inputs.length && same, "a run got other inputs than are recorded");
  for (const { firstSeq, events } of start.pages) {
    const right = events.every((event, index) => {
      const record = evidence.at(firstSeq + index);
      return record !== undefined && record.seq <= start.lastSeq && equals(EventSchema, record.event, event);
    });
    require(right, "a run read another history than is recorded");
  }
  return found;
}

/** After a divergence a run performs nothing and records nothing (I0). */
function divergenceViolations(divergence: SeenDivergence, ledger: Ledger, journals: Journals): readonly Violation[] {
  const { session, fence, callsBefore } = divergence;
  const found: Violation[] = [];
  const performed = ledger.calls.slice(callsBefore).some((call) => call.session === session && call.fence === fence);
  if (performed) found.push(violation("I0", { session }, "a run asked a model after it had diverged"));
  const recorded = journals.get(session)?.records.find((record) => {
    const { body } = record.event;
    return record.fence === fence && !(body.case === "lifecycle" && body.value.kind === Lifecycle_Kind.LIFECYCLE_RESUME);
  });
  if (recorded !== undefined)
    found.push(violation("I0", { session, seq: recorded.seq }, "a run recorded something although it had diverged"));
  return found;
}
