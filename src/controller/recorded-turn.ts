/**
 * A turn as its records tell it: what it was started with, what it did in order, and how it ended.
 *
 * Invariants:
 * - Reading is pure. A turn whose records contradict themselves is refused before a harness sees any of it.
 * - An OUTPUT that follows a MODEL_CALL is its completion: effects are serialised around a model call. An ERROR in that place is
 *   the call's failure for good; any other ERROR is audit and no effect.
 */

import { HoldfastError } from "../base/errors.ts";
import type { ExecutionId, Seq } from "../base/ids.ts";
import { executionIdOf, seqOf } from "../base/ids.ts";
import { decodeLogRecord } from "../canon/index.ts";
import { EventKind, type LogRecord } from "../gen/agentsessions/v1/common_pb.ts";
import { endStateOf, type EndState, type StoredRecord } from "../journal/index.ts";
import {
  baselineAccount,
  type ApprovalResult,
  type EventError,
  type ExecutionStart,
  type Message,
  type ModelCall,
  type ToolCall,
  type ToolResult,
  type Usage,
} from "../spi/index.ts";

/** One recorded effect. */
export type RecordedEffect =
  | {
      readonly kind: "model";
      readonly seq: Seq;
      readonly call: ModelCall;
      /** How the call went; undefined when a crash came before either. */
      readonly result: RecordedCompletion | undefined;
    }
  | { readonly kind: "output"; readonly seq: Seq; readonly message: Message }
  | RecordedToolCall
  | { readonly kind: "report"; readonly seq: Seq; readonly result: ToolResult }
  | { readonly kind: "usage"; readonly seq: Seq; readonly usage: Usage }
  | { readonly kind: "baseline"; readonly seq: Seq; readonly account: string };

/** A call that the host ran, or was to run. */
export interface RecordedToolCall {
  readonly kind: "tool";
  readonly seq: Seq;
  readonly call: ToolCall;
  /** The request for a decision; undefined for a call that needs none, and where a crash came before it. */
  readonly approval: RecordedApproval | undefined;
  /** Undefined when a crash, or a decision that is still to come, came before it. */
  readonly result: { readonly seq: Seq; readonly value: ToolResult } | undefined;
}

/** A request for a decision, and the decision once there is one. */
export interface RecordedApproval {
  readonly requestSeq: Seq;
  readonly decision: { readonly seq: Seq; readonly value: ApprovalResult } | undefined;
}

/** How a recorded model call went. */
export type RecordedCompletion =
  | { readonly kind: "completed"; readonly seq: Seq; readonly message: Message }
  | { readonly kind: "failed"; readonly seq: Seq; readonly error: EventError };

/** A turn, read from its records. */
export interface RecordedTurn {
  /** "" for a turn that was written without execution ids. */
  readonly executionId: ExecutionId;
  /** The seq of its first record. */
  readonly startSeq: Seq;
  /** Its last record. */
  readonly lastSeq: Seq;
  /** Undefined for a turn that was written without a start marker. */
  readonly start: ExecutionStart | undefined;
  readonly inputs: readonly Message[];
  readonly effects: readonly RecordedEffect[];
  /** Undefined for an open turn. */
  readonly end: EndState | undefined;
  /** The error that END names. */
  readonly endError: EventError | undefined;
}

/** A record with its event, as a turn's reader takes it. */
export interface TurnRecord {
  readonly seq: Seq;
  readonly event: NonNullable<LogRecord["event"]>;
}

/**
 * A stored record as a TurnRecord. Throws DATA_LOSS for one that cannot be read, or has no event. A harness gets what is read here: it shares
 * nothing with the bytes, which may be what a journal in memory keeps.
 */
export function turnRecordOf({ bytes }: Pick<StoredRecord, "bytes">): TurnRecord {
  const record = decodeLogRecord(new Uint8Array(bytes));
  if (record.event === undefined) {
    throw new HoldfastError("data_loss", `session: its record ${record.seq} has no event; the journal is damaged`);
  }
  return { seq: seqOf(record.seq), event: record.event };
}

/**
 * Reads one turn. `records` are all records of the turn, in order, beginning with its EXECUTION_START (or its first INPUT, in a
 * journal without markers). Throws FAILED_PRECONDITION when they do not make one turn.
 */
export function readTurn(records: readonly TurnRecord[]): RecordedTurn {
  const first = records[0];
  const last = records.at(-1);
  if (first === undefined || last === undefined) throw refusal("it has no records");
  const start = first.event.body.case === "executionStart" ? first.event.body.value : undefined;
  const inputs: Message[] = [];
  const effects = new EffectReader();
  let end: EndState | undefined;
  let endError: EventError | undefined;
  for (const { seq, event } of start === undefined ? records : records.slice(1)) {
    const { body } = event;
    if (body.case === "executionStart") throw refusal(`it has two start markers, the second at seq ${seq}`);
    if (body.case === "message" && event.kind === EventKind.EVENT_INPUT) inputs.push(body.value);
    else if (body.case === "end") {
      end = endStateOf(body.value.state);
      endError = body.value.error;
    } else effects.take(seq, event);
  }
  if (start !== undefined) checkInputCount(start, inputs.length);
  const executionId = executionIdOf(first.event.executionId);
  return { executionId, startSeq: first.seq, lastSeq: last.seq, start, inputs, effects: effects.done(), end, endError };
}

/** Gathers effects; keeps the model call that still waits for its completion. */
class EffectReader {
  readonly #effects: RecordedEffect[] = [];
  /** Where the tool call of each id stands. */
  readonly #calls = new Map<string, number>();

  take(seq: Seq, event: TurnRecord["event"]): void {
    const { body } = event;
    switch (body.case) {
      case "model":
        this.#effects.push({ kind: "model", seq, call: body.value, result: undefined });
        return;
      case "message":
        if (!this.#complete({ kind: "completed", seq, message: body.value })) {
          this.#effects.push({ kind: "output", seq, message: body.value });
        }
        return;
      case "error":
        this.#complete({ kind: "failed", seq, error: body.value });
        return;
      case "tool":
        this.#calls.set(body.value.id, this.#effects.length);
        this.#effects.push({ kind: "tool", seq, call: body.value, approval: undefined, result: undefined });
        return;
      case "approval":
        this.#change(body.value.toolCallId, (effect) => ({ ...effect, approval: { requestSeq: seq, decision: undefined } }));
        return;
      case "approvalResult":
        this.#decide(seq, body.value);
        return;
      case "result":
        if (!this.#change(body.value.id, (effect) => ({ ...effect, result: { seq, value: body.value } })))
          this.#effects.push({ kind: "report", seq, result: body.value });
        return;
      case "usage":
        this.#effects.push({ kind: "usage", seq, usage: body.value });
        return;
      case "lifecycle": {
        const account = baselineAccount(event);
        if (account !== undefined) this.#effects.push({ kind: "baseline", seq, account });
        return;
      }
      default:
        return;
    }
  }

  done(): readonly RecordedEffect[] {
    return this.#effects;
  }

  #decide(seq: Seq, decision: ApprovalResult): void {
    this.#change(decision.toolCallId, (effect) => {
      if (effect.approval === undefined || BigInt(effect.approval.requestSeq) !== decision.requestSeq) return effect;
      return { ...effect, approval: { ...effect.approval, decision: { seq, value: decision } } };
    });
  }

  /** Changes what is known of a tool call; false when no call of this turn has that id. */
  #change(id: string, change: (effect: RecordedToolCall) => RecordedToolCall): boolean {
    const index = this.#calls.get(id);
    const effect = index === undefined ? undefined : this.#effects[index];
    if (index === undefined || effect?.kind !== "tool") return false;
    this.#effects[index] = change(effect);
    return true;
  }

  /** Gives the last effect its result, when that is a model call without one. */
  #complete(result: RecordedCompletion): boolean {
    const last = this.#effects.at(-1);
    if (last?.kind !== "model" || last.result !== undefined) return false;
    this.#effects[this.#effects.length - 1] = { ...last, result };
    return true;
  }
}

function checkInputCount(start: ExecutionStart, found: number): void {
  if (start.inputCount === undefined) throw refusal("its start marker does not say how many inputs it has");
  if (start.inputCount < 0n) throw refusal("its start marker has a negative input count");
  if (start.inputCount !== BigInt(found)) {
    throw refusal(`its start marker says ${start.inputCount} inputs, the journal has ${found}`);
  }
}

/** Two start markers of a journal have one execution id; the turn that begins at `secondSeq` is not run again. */
export function repeatedStartError(secondSeq: Seq): HoldfastError {
  return new HoldfastError("failed_precondition", `session: two start markers have one execution id, the second at seq ${secondSeq}`);
}

function refusal(what: string): HoldfastError {
  return new HoldfastError("failed_precondition", `session: its recorded turn cannot be run again: ${what}`);
}
