/**
 * Recovery: from an interrupted turn's records to the same Start again.
 *
 * Invariants:
 * - The harness is the recorded one: same name, same version where one is recorded. Never another.
 * - The turn's own records are read, and what lies between them and the END before; the past is read when the harness asks for it.
 * - What a harness may not do again is refused before it runs.
 */

import { HoldfastError } from "../base/errors.ts";
import { executionIdOf, type ExecutionId, type Seq } from "../base/ids.ts";
import type { Digest } from "../base/ports.ts";
import { EventKind } from "../gen/agentsessions/v1/common_pb.ts";
import type { JournalStore, OpenTurn, SessionRow } from "../journal/index.ts";
import {
  INBOX_TOOL,
  Mediation,
  type HarnessCatalog,
  type HarnessDescriptor,
  type HarnessEntry,
  type ToolDefinition,
  type ToolExecutor,
  type TurnToolsRequest,
} from "../spi/index.ts";
import type { ExecInvocation } from "./contract.ts";
import { readTurn, type RecordedTurn, repeatedStartError, turnRecordOf, type TurnRecord } from "./recorded-turn.ts";
import { isMintedAfter } from "./minted-id.ts";
import { readOfferedTools } from "./offered-tools.ts";
import { ownApprovals } from "./open-approvals.ts";
import { safeName } from "./safe-name.ts";

/** An interrupted turn that can go on. */
export interface RecoveryPlan {
  readonly turn: RecordedTurn;
  /** What the harness is told; a journal without execution ids gets a token that is never journaled. */
  readonly executionId: ExecutionId;
  readonly invocation: ExecInvocation;
  readonly harness: HarnessEntry;
  readonly descriptor: HarnessDescriptor;
  /** What runs its tools. */
  readonly executor: ToolExecutor | undefined;
  /** The tools that it was offered. */
  readonly tools: readonly ToolDefinition[] | undefined;
}

/** What recovery needs of its controller. */
export interface RecoveryContext {
  readonly journal: JournalStore;
  readonly harnesses: HarnessCatalog;
  readonly digest: Digest;
  /** What runs the tools of a turn that started so; undefined where there are none. */
  readonly toolsOf: (turn: Omit<TurnToolsRequest, "session">) => ToolExecutor | undefined;
}

/** Plans the recovery of `row`'s open turn. Writes nothing. Throws FAILED_PRECONDITION when the turn may not go on here. */
export async function planRecovery(context: RecoveryContext, row: SessionRow, open: OpenTurn): Promise<RecoveryPlan> {
  const turn = readTurn(await openRecords(context.journal, row, open));
  refuseInheritedEffects(row, turn);
  await refuseRepeatedStart(context.journal, row, turn);
  const { harness, descriptor } = await recordedHarness(context.harnesses, row, turn);
  if (turn.start === undefined) refuseUnfinishedLegacy(turn);
  const config = turn.start?.config ?? new Uint8Array();
  const tools = await readOfferedTools(context.journal, row.seed.uid, turn.startSeq);
  const executor = context.toolsOf({ config, offered: tools });
  refuseUnservedTools(turn, executor);
  return {
    turn,
    executor,
    tools,
    executionId: turn.executionId === "" ? legacyToken(row, turn, context.digest) : turn.executionId,
    invocation: {
      inputs: turn.inputs,
      caller: undefined,
      harness: turn.start?.harness ?? "",
      config,
      resumeFromSeq: turn.start?.resumeFromSeq ?? 0n,
      expectedLastSeq: undefined,
      deadlineMs: undefined,
    },
    harness,
    descriptor,
  };
}

/** The session's open turn as its records tell it; undefined where none is open. */
export async function openTurnOf(journal: JournalStore, row: SessionRow): Promise<RecordedTurn | undefined> {
  const open = row.projection.openTurn;
  return open === undefined ? undefined : readTurn(await openRecords(journal, row, open));
}

/** The open turn's records. In a journal without markers it goes on from the last INPUT. */
async function openRecords(journal: JournalStore, row: SessionRow, open: OpenTurn): Promise<readonly TurnRecord[]> {
  const records: TurnRecord[] = [];
  const range = { session: row.seed.uid, fromSeq: open.startSeq, toSeq: row.projection.lastSeq };
  for await (const page of journal.read(range)) {
    for (const record of page) records.push(turnRecordOf(record));
  }
  if (records[0]?.event.body.case === "executionStart") return records;
  const lastInput = records.findLastIndex(({ event }) => isInput(event));
  return lastInput < 0 ? records : records.slice(lastInput);
}

function isInput(event: TurnRecord["event"]): boolean {
  return event.kind === EventKind.EVENT_INPUT;
}

async function recordedHarness(
  harnesses: HarnessCatalog,
  row: SessionRow,
  turn: RecordedTurn,
): Promise<{ harness: HarnessEntry; descriptor: HarnessDescriptor }> {
  const recordedName = turn.start?.harness ?? "";
  const harness = harnesses.find(recordedName === "" ? row.seed.harness : recordedName);
  if (harness === undefined) {
    throw new HoldfastError(
      "failed_precondition",
      "harness: the turn's recorded harness is not served by this host; start the host with it",
    );
  }
  const descriptor = await harness.describe();
  const recordedVersion = turn.start?.harnessVersion ?? "";
  if (recordedVersion !== "" && recordedVersion !== descriptor.version) {
    const versions = `(recorded ${versionWord(recordedVersion)}, served ${versionWord(descriptor.version)})`;
    throw new HoldfastError(
      "failed_precondition",
      `harness: its version is not the one that the turn was recorded with ${versions}; serve that version and resume, ${otherWay(row)}`,
    );
  }
  return { harness, descriptor };
}

function versionWord(version: string): string {
  return version === "" ? "none" : (safeName(version) ?? "one of another form");
}

/** What is left where a turn cannot go on: one that waits for a receipt takes no new inputs before it was cancelled. */
function otherWay(row: SessionRow): string {
  return ownApprovals(row).length > 0 ? "or cancel the turn" : "or cancel the turn or start a new one";
}

/** Records that are looked at in one step back. */
const LOOK_BACK_RECORDS = 256;

/**
 * Two start markers with one execution id make one of two turns of one: nobody can say which records are whose. It is looked for back
 * to the END before; further back only where the id can be as old as that, which no id of this host's making is.
 */
async function refuseRepeatedStart(journal: JournalStore, row: SessionRow, turn: RecordedTurn): Promise<void> {
  if (turn.executionId === "" || turn.start === undefined) return;
  for (let toSeq = turn.startSeq - 1; toSeq > 0; toSeq -= LOOK_BACK_RECORDS) {
    const fromSeq = Math.max(1, toSeq - LOOK_BACK_RECORDS + 1);
    let isOlder = true;
    for await (const page of journal.read({ session: row.seed.uid, fromSeq: fromSeq as Seq, toSeq: toSeq as Seq })) {
      for (const record of page) {
        if (record.kind !== EventKind.EVENT_EXECUTION_START && record.kind !== EventKind.EVENT_END) continue;
        const { event } = turnRecordOf(record);
        const isStart = event.body.case === "executionStart";
        if (isStart && event.executionId === turn.executionId) throw repeatedStartError(turn.startSeq);
        if (!isStart && isMintedAfter(turn.executionId, event.ts)) isOlder = false;
      }
    }
    if (!isOlder) return;
  }
}

/** A fork never inherits the right to run its parent's effect: an intent of the parent's without a result stays unresolved. */
function refuseInheritedEffects(row: SessionRow, turn: RecordedTurn): void {
  const forkSeq = row.parent?.forkSeq ?? 0;
  const inherited = turn.effects.find((effect) => effect.kind === "tool" && effect.result === undefined && effect.seq <= forkSeq);
  if (inherited !== undefined) {
    throw new HoldfastError(
      "failed_precondition",
      `session: its open turn has a tool call of its parent's at seq ${inherited.seq}, which a fork may not run; start a new turn`,
    );
  }
}

/** A call that is to be driven needs its tool; without it the turn stays as it is, and so does a decision on it. */
function refuseUnservedTools(turn: RecordedTurn, tools: ToolExecutor | undefined): void {
  for (const effect of turn.effects) {
    if (effect.kind !== "tool" || effect.result !== undefined) continue;
    const { call, approval, seq } = effect;
    if (call.mediation === Mediation.REQUIRES_APPROVAL && approval?.decision?.value.approved !== true) continue;
    if (call.tool === INBOX_TOOL || tools?.find(call.tool) !== undefined) continue;
    throw new HoldfastError(
      "failed_precondition",
      `session: the tool of its call at seq ${seq}${named(call.tool)} is not served by this host; start the host with it`,
    );
  }
}

/** A tool's name after a word for it, where a message may hold it. */
function named(tool: string): string {
  const name = safeName(tool);
  return name === undefined ? "" : ` (${name})`;
}

/** A writer without markers may have been anywhere in its model call, so one without a completion is not made again. */
function refuseUnfinishedLegacy(turn: RecordedTurn): void {
  const unfinished = turn.effects.find((effect) => effect.kind === "model" && effect.result === undefined);
  if (unfinished !== undefined) {
    throw new HoldfastError(
      "failed_precondition",
      `session: its journal has no execution ids and a model call without a completion at seq ${unfinished.seq}; start a new turn`,
    );
  }
}

function legacyToken(row: SessionRow, turn: RecordedTurn, digest: Digest): ExecutionId {
  return executionIdOf(`legacy-${digest.sha256Hex(`${row.seed.uid} ${turn.startSeq}`)}`);
}
