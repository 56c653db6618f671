/**
 * Replay as a check: the turns of a journal run again with a harness, served from their records.
 *
 * Invariants:
 * - Replay calls no model, no tool and no approver (I1), and writes nothing: it has nothing to do either with.
 * - The first divergence of a turn is reported with what is recorded and what was asked (I0).
 */

import { InvariantError } from "../base/assert.ts";
import { HoldfastError, toHoldfastError } from "../base/errors.ts";
import { executionIdOf, type ExecutionId, type Seq, type SessionUid } from "../base/ids.ts";
import type { Ports } from "../base/ports.ts";
import { endStateOf, type EndState, type JournalStore, type SessionRow } from "../journal/index.ts";
import {
  failureStatusOf,
  HarnessFailure,
  type Harness,
  type HarnessCatalog,
  type ModelProvider,
  type Start,
  type ToolExecutor,
} from "../spi/index.ts";
import { DeltaHub } from "./deltas.ts";
import { DivergenceError, type Divergence } from "./divergence.ts";
import { recordable } from "./events.ts";
import { Gate, turnOverError } from "./gate.ts";
import { HostTools } from "./host-tools.ts";
import { HistoryCache, JournalHistory } from "./history.ts";
import { readOfferedTools } from "./offered-tools.ts";
import { Partials } from "./partials.ts";
import { readTurn, repeatedStartError, turnRecordOf, type RecordedTurn, type TurnRecord } from "./recorded-turn.ts";
import { isBudgetFault } from "./budgets.ts";
import { MessageOrigins } from "./request-sketch.ts";
import { type Pen, TurnSink } from "./sink.ts";
import { Rehearsal } from "./rehearsal.ts";
import { Tape } from "./tape.ts";

/** What a replay needs. */
export interface ReplayContext {
  readonly journal: JournalStore;
  readonly harnesses: HarnessCatalog;
  readonly ports: Ports;
  /** Whether this host mints tokens; a replay gives a harness one that is good for nothing. */
  readonly canMintTokens?: boolean | undefined;
  /**
   * The host's tools, so that a call which was refused when it was live is refused again. None is run. Absent: whatever is not recorded
   * diverges.
   */
  readonly tools?: Pick<ToolExecutor, "find" | "check"> | undefined;
}

/** What a harness gets in a replay that asks for a token. */
const REPLAYED_TOKEN = "replayed";

/** What a replay checks. */
export interface ReplayRequest {
  readonly row: SessionRow;
  /** Run every turn with this harness instead of the recorded one. */
  readonly harness?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** How one turn replayed. */
export interface TurnCheck {
  readonly executionId: ExecutionId;
  readonly startSeq: Seq;
  readonly lastSeq: Seq;
  readonly end: EndState;
  readonly outcome: TurnCheckOutcome;
}

export type TurnCheckOutcome =
  /** Every recorded effect was asked for, in order, and the turn ended as it had. */
  | { readonly kind: "same"; readonly effects: number }
  | { readonly kind: "diverged"; readonly divergence: Divergence }
  /** The turn could not be run again: its harness is not served, or its records contradict themselves. */
  | { readonly kind: "refused"; readonly error: HoldfastError };

/** The most records of one turn that a replay holds in memory. */
const TURN_RECORDS_MAX = 200_000;

/** Replays every ended turn of a session, oldest first. Turns without END are passed over. */
export async function* replaySession(context: ReplayContext, request: ReplayRequest): AsyncGenerator<TurnCheck, void, undefined> {
  const cache = new HistoryCache({ bytesMax: 64 * 1024 * 1024 });
  await using rehearsal = new Rehearsal(context.harnesses);
  for await (const turn of endedTurns(context.journal, request.row.seed.uid, request.signal)) {
    yield await checkTurn(context, request, turn, { cache, rehearsal });
  }
}

/** What the turns of one replay share. */
interface ReplayScope {
  readonly cache: HistoryCache;
  readonly rehearsal: Rehearsal;
}

/** A turn's records; `isRepeated` when an earlier start marker has its execution id, be it of a turn that was left behind. */
interface EndedTurn {
  readonly records: readonly TurnRecord[];
  readonly isRepeated: boolean;
}

/** The records of each ended turn. */
async function* endedTurns(
  journal: JournalStore,
  session: SessionUid,
  signal: AbortSignal | undefined,
): AsyncGenerator<EndedTurn, void, undefined> {
  const started = new Set<string>();
  let isRepeated = false;
  let turn: TurnRecord[] = [];
  for await (const page of journal.read({ session, signal })) {
    for (const record of page) {
      const decoded = turnRecordOf(record);
      const { case: kind } = decoded.event.body;
      if (kind === "executionStart") {
        turn = [];
        isRepeated = started.has(decoded.event.executionId);
        if (decoded.event.executionId !== "") started.add(decoded.event.executionId);
      }
      if (kind === "lifecycle" && turn.length === 0) continue;
      turn.push(decoded);
      if (turn.length > TURN_RECORDS_MAX) {
        throw new HoldfastError(
          "resource_exhausted",
          `session: a turn of it has more than ${TURN_RECORDS_MAX} records; it is not replayed`,
        );
      }
      if (kind !== "end") continue;
      yield { records: turn, isRepeated };
      turn = [];
      isRepeated = false;
    }
  }
}

async function checkTurn(
  context: ReplayContext,
  request: ReplayRequest,
  { records, isRepeated }: EndedTurn,
  scope: ReplayScope,
): Promise<TurnCheck> {
  const first = records[0];
  const last = records.at(-1);
  if (first === undefined || last === undefined) throw new InvariantError("an ended turn has records");
  const place = { executionId: executionIdOf(first.event.executionId), startSeq: first.seq, lastSeq: last.seq };
  const end = endOf(last);
  try {
    const turn = readTurn(records);
    if (isRepeated) throw repeatedStartError(turn.startSeq);
    return { ...place, end, outcome: await replayTurn(context, request, turn, scope) };
  } catch (error) {
    request.signal?.throwIfAborted();
    return { ...place, end, outcome: { kind: "refused", error: toHoldfastError(error) } };
  }
}

function endOf(record: TurnRecord): EndState {
  const { body } = record.event;
  return endStateOf(body.case === "end" ? body.value.state : "");
}

async function replayTurn(
  context: ReplayContext,
  request: ReplayRequest,
  turn: RecordedTurn,
  { cache, rehearsal }: ReplayScope,
): Promise<TurnCheckOutcome> {
  const harness = await rehearsal.harnessFor(harnessName(request, turn), turn, { signal: request.signal });
  const gate = new Gate();
  // A cancel came when everything recorded had happened, and did not wait for the harness.
  const cancel = (): void => gate.shut(new HoldfastError("cancelled", "turn: it was cancelled here when it was recorded"));
  const tape = new Tape({
    effects: turn.effects,
    atEnd: turn.end === "COMPLETED" ? "diverge" : "stop",
    lastSeq: turn.lastSeq,
    onPlayed: () => (isStopped(turn) ? queueMicrotask(cancel) : undefined),
  });
  const onAbort = (): void => gate.shut(new HoldfastError("cancelled", "replay: it was cancelled"));
  request.signal?.addEventListener("abort", onAbort, { once: true });
  if (request.signal?.aborted === true) onAbort();
  const stopped = new Promise<undefined>((resolve) => {
    if (gate.signal.aborted) resolve(undefined);
    gate.signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
  try {
    const running = runAgain(context, request, turn, { harness, tape, gate, cache });
    if (isStopped(turn) && tape.played) cancel();
    const thrown = await Promise.race([running, stopped]);
    gate.shut(turnOverError());
    request.signal?.throwIfAborted();
    return judged(turn, tape, thrown);
  } finally {
    request.signal?.removeEventListener("abort", onAbort);
  }
}

interface ReplayRun {
  readonly harness: Harness;
  readonly tape: Tape;
  readonly gate: Gate;
  readonly cache: HistoryCache;
}

/** Runs the harness to its end; resolves with what it threw, if it threw. */
async function runAgain(context: ReplayContext, request: ReplayRequest, turn: RecordedTurn, run: ReplayRun): Promise<Thrown | undefined> {
  const { harness, tape, gate, cache } = run;
  try {
    gate.pass();
    const start = await startOf(context, request, turn, cache);
    await harness.run(start, replaySink(context, request, turn, tape, gate), { signal: gate.signal });
    return undefined;
  } catch (error) {
    return { error };
  }
}

/** What a harness threw; it may have thrown undefined. */
interface Thrown {
  readonly error: unknown;
}

function harnessName(request: ReplayRequest, turn: RecordedTurn): string {
  const recorded = turn.start?.harness ?? "";
  return request.harness ?? (recorded === "" ? request.row.seed.harness : recorded);
}

/** Stands for the provider of a call that was open when its turn stopped: nobody is asked, and no answer comes. */
const NEVER_ANSWERS: ModelProvider = {
  name: "none",
  complete: async function* (_request, { signal }) {
    await new Promise<never>((_, reject) => {
      if (signal.aborted) reject(signal.reason);
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    yield* [];
  },
};

function replaySink(context: ReplayContext, request: ReplayRequest, turn: RecordedTurn, tape: Tape, gate: Gate): TurnSink {
  const nothing = (): never => {
    throw new InvariantError("a replay performs and records nothing");
  };
  const pen: Pen = { session: request.row.seed.uid, issuedSeq: turn.lastSeq, commit: nothing, issue: nothing };
  return new TurnSink({
    executor: context.tools,
    tools: new HostTools({ journal: context.journal, session: request.row.seed.uid }),
    isReplay: true,
    freshId: undefined,
    policies: [],
    mayPark: true,
    resultBytesMax: Number.POSITIVE_INFINITY,
    executionId: turn.executionId,
    tape,
    journal: pen,
    gate,
    models: { providerOf: () => NEVER_ANSWERS },
    requests: undefined,
    origins: new MessageOrigins(),
    deltas: new DeltaHub(),
    partials: new Partials(),
    ports: context.ports,
    principal: request.row.seed.identity,
    earlyServing: false,
    shares: () => false,
    admit: () => undefined,
    meter: undefined,
    interrupt: () => undefined,
  });
}

async function startOf(context: ReplayContext, request: ReplayRequest, turn: RecordedTurn, cache: HistoryCache): Promise<Start> {
  const { seed } = request.row;
  return {
    executionId: turn.executionId,
    sessionUid: seed.uid,
    config: turn.start?.config ?? new Uint8Array(),
    history: new JournalHistory(seed.uid, (turn.startSeq - 1) as Seq, { journal: context.journal, cache, origins: new MessageOrigins() }),
    inputs: turn.inputs,
    identity: { principal: seed.identity, mintToken: context.canMintTokens === true ? async () => REPLAYED_TOKEN : undefined },
    resumeFromSeq: turn.start?.resumeFromSeq ?? 0n,
    model: seed.model,
    tools: await readOfferedTools(context.journal, seed.uid, turn.startSeq),
  };
}

/** Whether a run that ended like this is the recorded one. */
function judged(turn: RecordedTurn, tape: Tape, thrown: Thrown | undefined): TurnCheckOutcome {
  const same: TurnCheckOutcome = { kind: "same", effects: turn.effects.length };
  if (tape.divergence !== undefined) return { kind: "diverged", divergence: tape.divergence.divergence };
  if (tape.stopped) return same;
  const left = leftOver(tape);
  if (left !== undefined) return { kind: "diverged", divergence: left };
  if (isStopped(turn)) return same;
  if (thrown === undefined) return turn.end === "FAILED" ? endedOtherwise(turn, "the harness completed; FAILED is recorded") : same;
  if (!(thrown.error instanceof HarnessFailure) || turn.end !== "FAILED") {
    return endedOtherwise(turn, `the harness threw; ${turn.end ?? "no END"} is recorded`);
  }
  return isRecordedFailure(turn, thrown.error) ? same : endedOtherwise(turn, "the harness failed with another code or description");
}

/** Whether the turn was stopped from outside, wherever its harness was: it was cancelled, or a budget was used up. */
function isStopped({ end, endError }: RecordedTurn): boolean {
  return end === "CANCELED" || (end === "FAILED" && endError !== undefined && isBudgetFault(endError));
}

/** A journal of another writer, or of an older host, may name no error, or a number that is no error's. */
function isRecordedFailure({ endError }: RecordedTurn, failure: HarnessFailure): boolean {
  if (endError === undefined) return true;
  return failureStatusOf(endError.code) === failure.grpcCode && endError.description === recordable(failure.message);
}

function leftOver(tape: Tape): Divergence | undefined {
  try {
    tape.finish();
    return undefined;
  } catch (error) {
    if (error instanceof DivergenceError) return error.divergence;
    throw error;
  }
}

function endedOtherwise(turn: RecordedTurn, reason: string): TurnCheckOutcome {
  return { kind: "diverged", divergence: { seq: turn.lastSeq, recorded: undefined, asked: undefined, reason } };
}
