/**
 * The harness SPI: what an agent's code is to the host, and what the host is to it.
 *
 * Invariants:
 * - A harness reaches models and mediated tools through its sink and no other way; that is what makes a turn replayable.
 * - Sink calls are answered in the order of their effects. Every answer is recorded before anything that follows from it
 *   can leave the host (I7).
 * - `Start.history` is the whole prefix before this execution, also after a memory restore (I4).
 */

import type { ExecutionId, Seq, SessionUid } from "../base/ids.ts";
import type {
  ApprovalResult,
  Event,
  HarnessDescriptor,
  IdentityRef,
  Message,
  ToolCall,
  ToolDefinition,
  ToolResult,
  Usage,
} from "./wire.ts";
import type { ModelRequest, ModelResponse } from "./model.ts";

/** Options of every asynchronous call. */
export interface CallOptions {
  /** Cancels the call; the promise then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of a tool call. */
export interface ToolCallOptions extends CallOptions {
  /** Told of the decision on a call that needed approval, before the call resolves with its receipt. */
  readonly onDecision?: ((decision: ApprovalResult) => void) | undefined;
  /**
   * What becomes of a call whose arguments do not fit the tool's schema. `answer`: the call is recorded with a result that says what is
   * wrong, for a model to mend it, and nothing runs. Default `refuse`: INVALID_ARGUMENT, and nothing is recorded. Over a wire it is always
   * `refuse`.
   */
  readonly unfit?: "refuse" | "answer" | undefined;
}

/** An agent: one object drives any number of turns of any number of sessions. */
export interface Harness {
  /**
   * Whether it changes nothing of what it is given. In the host's own process it then gets inputs, completions and results as they are
   * recorded: frozen, without a copy, and the very objects that its history has in later turns. Bytes cannot be frozen, and are not to be
   * changed either. Default false: what it is given is its own, but for its history.
   */
  readonly readsOnly?: boolean | undefined;
  /** The static contract, used to place the harness and to know it again on recovery. */
  describe(options?: CallOptions): Promise<HarnessDescriptor>;
  /**
   * Drives exactly one execution. Resolving means COMPLETED. Throwing `HarnessFailure` means END FAILED, which is for good;
   * any other throw leaves ERROR, and the turn can be resumed. `options.signal` fires on cancel and at the deadline.
   */
  run(start: Start, sink: EventSink, options: { readonly signal: AbortSignal }): Promise<void>;
}

/** What the host hands a harness for one execution. */
export interface Start {
  /** The id of this execution. */
  readonly executionId: ExecutionId;
  /** The session it belongs to. */
  readonly sessionUid: SessionUid;
  /** Opaque per-execution config, journaled verbatim and given again on recovery. No place for secrets. */
  readonly config: Uint8Array;
  /** Every event before this execution's start. */
  readonly history: History;
  /** The inputs of this invocation, in order; empty for a turn without input. */
  readonly inputs: readonly Message[];
  /** On whose behalf the turn runs. */
  readonly identity: IdentityContext;
  /** The harness's own opaque cursor; an int64, so a bigint. */
  readonly resumeFromSeq: bigint;
  /** The session's default model; empty when it has none. */
  readonly model: string;
  /**
   * The host's tools as they were when the execution started, in a stable order: a replay and a recovery are given the same. Absent
   * where the host offers none. They are not to be changed.
   */
  readonly tools?: readonly ToolDefinition[] | undefined;
}

/** The past of a session, read on demand: nothing is loaded that the harness does not ask for. */
export interface History {
  /** The seq of the last event before this execution; 0 when there is none. */
  readonly lastSeq: Seq;
  /** Pages of consecutive events, oldest first, from `fromSeq` (default 1) to `toSeq` (default `lastSeq`). */
  read(options?: { readonly fromSeq?: Seq; readonly toSeq?: Seq; readonly signal?: AbortSignal }): AsyncIterable<HistoryPage>;
}

/** Consecutive events of a history: `events[i]` has seq `firstSeq + i`. */
export interface HistoryPage {
  readonly firstSeq: Seq;
  /** Frozen, since other turns read them too: take a copy to change one. */
  readonly events: readonly Event[];
}

/** The session's principal and, where the host can mint, a way to act for it. */
export interface IdentityContext {
  /** The bound principal; absent when the session has none. */
  readonly principal?: IdentityRef | undefined;
  /** Absent when the host has no signing key. */
  readonly mintToken?: TokenMinter | undefined;
}

/** Mints a short-lived, scoped, delegated token for the given audiences. */
export type TokenMinter = (audience: readonly string[], options?: CallOptions) => Promise<string>;

/** The harness's handle for everything that is to happen and be recorded. */
export interface EventSink {
  /**
   * Calls a model, or serves the recorded completion on replay. The completion is recorded as one OUTPUT by the host; do not
   * emit it again with `output`. Rejects with a HoldfastError when the call failed for good or the turn was cancelled.
   */
  model(request: ModelRequest, options?: CallOptions): Promise<ModelResponse>;
  /** Records text that the harness itself produced as one OUTPUT. */
  output(text: string, options?: CallOptions): Promise<void>;
  /**
   * Asks the host to run a mediated tool and waits for its result. The call needs an id that is unique in the turn and an idempotency
   * key; arguments that do not fit the tool's schema are INVALID_ARGUMENT, and nothing is recorded. A tool that fails is a result with
   * `is_error`. Calls that are made at once run at once. An approval that has to be waited for unwinds as `ApprovalParkedError`,
   * which a harness lets pass: everything else that it asks is refused with the same error until the turn is resumed.
   */
  toolCall(call: ToolCall, options?: ToolCallOptions): Promise<ToolResult>;
  /** Records the result of a tool that the harness ran itself. */
  report(result: ToolResult, options?: CallOptions): Promise<void>;
  /** Records accounting as given; pass the usage that `model` returned. */
  usage(usage: Usage, options?: CallOptions): Promise<void>;
  /**
   * Records that the harness sends models another beginning of the conversation from here on, as LIFECYCLE BASELINE: `account` is
   * the harness's own, by which its later turns build the same beginning (`baselineAccount` reads it). What it replaces stays in the
   * journal. Absent where the harness does not run in the host's own process.
   */
  baseline?(account: string, options?: BaselineOptions): Promise<void>;
}

/** Options of a baseline. */
export interface BaselineOptions extends CallOptions {
  /** What it makes smaller, for whoever watches; kept beside the record, outside the chain. */
  readonly compaction?: Compaction | undefined;
}

/** How much smaller a conversation becomes. */
export interface Compaction {
  /** What is left out at last; `summary` where the beginning is replaced by one, which the next model call makes. */
  readonly level: "tool_results" | "thinking" | "summary";
  /** Messages that a model is sent. */
  readonly messagesBefore: number;
  readonly messagesAfter: number;
  /** What a request takes in tokens, by the harness's estimate; a summary that is still to be made is not counted. */
  readonly tokensBefore: number;
  readonly tokensAfter: number;
}
