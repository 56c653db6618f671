/** What the controller is asked and what it answers: the types of its public face. */

import type { HostId, Seq, SessionUid, ExecutionId } from "../base/ids.ts";
import type { HoldfastError } from "../base/errors.ts";
import type { Log, Ports } from "../base/ports.ts";
import type { EndState, JournalStore, SessionRow, SessionSeed, StoredRecord } from "../journal/index.ts";
import type {
  ApprovalRef,
  Delta,
  HarnessCatalog,
  HarnessDescriptor,
  HarnessEntry,
  IdentityRef,
  Message,
  ModelCatalog,
  SessionBlobs,
  TokenIssuer,
  ToolExecutor,
  TurnTools,
} from "../spi/index.ts";
import type { Approval } from "./approve.ts";
import type { BudgetConfig } from "./budgets.ts";
import type { ForkInvocation } from "./fork.ts";
import type { IdlePolicy } from "./idle.ts";
import type { ControllerLimits } from "./limits.ts";
import type { PartialCompletion } from "./partials.ts";
import type { PolicyRule } from "./policy.ts";
import type { Settlement } from "./settle-call.ts";

/** What a controller is made of. */
export interface ControllerOptions {
  readonly journal: JournalStore;
  readonly harnesses: HarnessCatalog;
  readonly models: ModelCatalog;
  /** Default: no tools, so mediated calls are FAILED_PRECONDITION. */
  readonly tools?: ToolExecutor | undefined;
  /** The tools that single turns have of their own. Default: none. */
  readonly turnTools?: TurnTools | undefined;
  /** Takes outputs of tools that are too large for a record. Default: they are cut, and the rest is lost. */
  readonly outputs?: SessionBlobs | undefined;
  /** What the host says of tool calls itself: the first rule that matches. Default: nothing. */
  readonly policies?: readonly PolicyRule[] | undefined;
  /** How much may be spent. Default: anything. */
  readonly budgets?: BudgetConfig | undefined;
  readonly ports: Ports;
  readonly log: Log;
  /** This process's name in leases; new at every start. */
  readonly hostId: HostId;
  readonly limits?: Partial<ControllerLimits> | undefined;
  /** Mints tokens for harnesses; undefined for a host without a key. */
  readonly tokens?: TokenIssuer | undefined;
  /** When idle sessions are put to sleep; default never. */
  readonly idle?: IdlePolicy | undefined;
}

/** One turn as a caller asks for it. */
export interface ExecInvocation {
  readonly inputs: readonly Message[];
  /** Recorded as the actor of the inputs. */
  readonly caller: IdentityRef | undefined;
  /** "" means the session's harness. */
  readonly harness: string;
  readonly config: Uint8Array;
  readonly resumeFromSeq: bigint;
  /** Set: the first append happens only at this head, otherwise ABORTED. */
  readonly expectedLastSeq: Seq | undefined;
  /** Milliseconds since the epoch; undefined for none. */
  readonly deadlineMs: number | undefined;
}

/** An invocation that was found valid: nothing has been written yet. */
export interface TurnPlan {
  readonly seed: SessionSeed;
  readonly invocation: ExecInvocation;
  readonly harness: HarnessEntry;
  readonly descriptor: HarnessDescriptor;
  /** An approval call of the session has no receipt: this invocation does what Resume does. */
  readonly continues: boolean;
}

/** A turn that has begun: its EXECUTION_START and INPUTs are durable. It goes on whether or not anybody watches. */
export interface RunningTurn {
  readonly session: SessionUid;
  readonly executionId: ExecutionId;
  /** The seq of its first record: watch from here. */
  readonly startSeq: Seq;
  /** Settles when the turn does; never rejects. */
  readonly outcome: Promise<TurnOutcome>;
}

/** How a host stops. */
export interface ShutdownOptions {
  /** How long running turns may go on. */
  readonly graceMs: number;
  /**
   * Resolves when a turn of the session waits for its client, who is not there, and when the signal fires in any case. Such a turn gets no grace:
   * only a later host can give it its client.
   */
  readonly untilClientIsMissed?: ((session: SessionUid, signal: AbortSignal) => Promise<void>) | undefined;
}

/** How a turn left the host. `lastSeq` is its last record. */
export type TurnOutcome =
  | { readonly kind: "ended"; readonly state: EndState; readonly lastSeq: Seq }
  | { readonly kind: "parked"; readonly ref: ApprovalRef; readonly lastSeq: Seq }
  /** It has no END and can be resumed; `error` says why it stopped. */
  | { readonly kind: "interrupted"; readonly error: HoldfastError; readonly lastSeq: Seq };

/** A message for a turn that runs. */
export interface Steering {
  readonly session: SessionUid;
  /** Of the user's, with text, data and files. */
  readonly message: Message | undefined;
  readonly from: IdentityRef | undefined;
}

/** Why a turn is cancelled, as LIFECYCLE CANCEL records it. */
export type CancelReason = "USER" | "TIMEOUT" | "INTERNAL";

/** One item of a live stream. */
export type LiveItem = { readonly kind: "record"; readonly record: StoredRecord } | { readonly kind: "delta"; readonly delta: Delta };

/** One item of what follows a session closely. */
export type FollowItem =
  | { readonly kind: "record"; readonly record: StoredRecord }
  | { readonly kind: "partial"; readonly partial: PartialCompletion };

/** What to watch of a session. */
export interface WatchRequest {
  readonly session: SessionUid;
  /** The first seq to deliver; one past the head waits for it. */
  readonly fromSeq: Seq;
  /** Also ephemeral deltas. Default true. */
  readonly deltas?: boolean | undefined;
  /** The stream ends after the record with the seq that this resolves to (at once when that was delivered already). */
  readonly until?: Promise<Seq> | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Where a turn runs on a host that runs as many as it may. */
export interface SeatOptions {
  /**
   * A session whose turn on this host waits for the one that is to run: its place is taken where there is no other, by one at a time. So
   * what waits for its own sub-agents never keeps them from running.
   */
  readonly lentBy?: SessionUid | undefined;
}

/** The single writer of the sessions of a host. */
export interface Controller extends AsyncDisposable {
  /**
   * Checks an invocation against the session (or the seed of one that is to be created) and resolves its harness. Writes nothing.
   * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, DEADLINE_EXCEEDED, UNAVAILABLE while shutting down.
   */
  plan(session: SessionRow | SessionSeed, invocation: ExecInvocation): Promise<TurnPlan>;
  /**
   * Begins a turn: resolves once its start and inputs are durable (I7). Errors: ABORTED when another turn runs or the head is not
   * where it was expected, NOT_FOUND, FAILED_PRECONDITION for a deleted session, RESOURCE_EXHAUSTED where the host has no room or a
   * budget is used up. A plan that `continues` takes the open turn up
   * instead; where nothing was decided yet, its outcome is `parked` at once.
   */
  begin(session: SessionUid, plan: TurnPlan, options?: SeatOptions): Promise<RunningTurn>;
  /** Whether a turn could begin now without meeting the limit of turns that run at once. */
  hasRoom(options?: SeatOptions): boolean;
  /**
   * Cancels the session's open turn, whoever runs it, and resolves once its END is durable. A session without an open turn is
   * returned as it is; `executionId`, when not empty, must be the open turn's (FAILED_PRECONDITION).
   */
  cancel(request: { readonly session: SessionUid; readonly executionId: string; readonly reason: CancelReason }): Promise<SessionRow>;
  /** Records the intent to delete, after cancelling an open turn. Repeating it changes nothing. */
  delete(session: SessionUid, actor: IdentityRef | undefined): Promise<SessionRow>;
  /**
   * Records the intent to delete a session without a record that nobody is about to begin. False where it has one, where a host has it, or
   * where there is no such session: nothing is written then.
   */
  deleteUnbegun(session: SessionUid): Promise<boolean>;
  /**
   * Frees a session's compute: LIFECYCLE SUSPEND, COMPUTE_COLD. Suspended already: nothing changes. ABORTED while a turn runs.
   */
  suspend(session: SessionUid, actor: IdentityRef | undefined): Promise<SessionRow>;
  /**
   * Brings a suspended session back and lets its interrupted turn go on: recorded effects are served, what follows is live. Resolves
   * once that turn has begun again; nothing to do changes nothing. FAILED_PRECONDITION where the turn may not go on here.
   */
  resume(
    session: SessionUid,
    actor: IdentityRef | undefined,
    options?: SeatOptions,
  ): Promise<{ readonly row: SessionRow; readonly turn: RunningTurn | undefined }>;
  /**
   * Commits a decision on an approval call and does nothing else. An exact retry resolves with the same record. FAILED_PRECONDITION for
   * another decision on the same request, and for a reference that is wrong, stale or a parent's.
   */
  approve(approval: Approval): Promise<{ readonly row: SessionRow; readonly decision: StoredRecord }>;
  /**
   * Settles a call whose outcome is not known, as a person says. FAILED_PRECONDITION where there is nothing to settle, ABORTED while a
   * turn runs.
   */
  settle(settlement: Settlement): Promise<SessionRow>;
  /**
   * Gives a message to the turn that this host runs for a session. Resolves with the seq of the record that has it once its harness has
   * asked for it. FAILED_PRECONDITION where no turn runs here, and where the turn ends without asking; nothing is left of it then.
   */
  steer(
    steering: Steering,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<{ readonly executionId: ExecutionId; readonly seq: Seq }>;
  /** Forks a session into children that share its prefix by reference; all of them or none. */
  fork(invocation: ForkInvocation): Promise<readonly SessionRow[]>;
  /** Committed records in order, each once, and deltas as they come. A slow consumer loses deltas, never records. */
  watch(request: WatchRequest): AsyncGenerator<LiveItem, void, undefined>;
  /**
   * Committed records in order, each once, and between them the completion in progress, each time that more of it has come: as it is
   * then, so that a slow consumer is told less often and misses nothing.
   */
  follow(request: Omit<WatchRequest, "deltas">): AsyncGenerator<FollowItem, void, undefined>;
  /** The turn that this host runs for a session. */
  running(session: SessionUid): RunningTurn | undefined;
  /** Fires when the host begins to shut down and takes no new turns; its reason is the HoldfastError that these get. */
  readonly closing: AbortSignal;
  /**
   * Takes no new turns, waits up to `graceMs` for the running ones and interrupts the rest, which can then be resumed.
   */
  shutdown(options: ShutdownOptions): Promise<void>;
}
