/** How the controller finds a harness by name, wherever it lives, and what it asks of the place where it lives. */

import type { ExecutionId, Fence, SessionUid } from "../base/ids.ts";
import type { CallOptions, Harness } from "./harness.ts";
import type { SnapshotKind } from "./runtime.ts";
import type { ComputeRef, HarnessDescriptor, IdentityRef, RuntimeCapabilities, SnapshotRef } from "./wire.ts";

/** A harness that this host serves under a name. */
export interface HarnessEntry {
  /** The resolved name, as EXECUTION_START records it. */
  readonly name: string;
  /** `static` comes with the host or its config; a session on a `registered` one is pinned to it. */
  readonly source: "static" | "registered";
  /** False once it was retired: sessions that have it go on, new ones are refused. */
  readonly open: boolean;
  /** The runtime under it, as it is. */
  readonly runtime: { readonly name: string; readonly capabilities: RuntimeCapabilities };
  /** Whether a session has a sandbox of its own, which lives from turn to turn; false for what is shared, or in this process. */
  readonly sandboxed: boolean;
  /**
   * What it says of itself; asked once and kept. Throws FAILED_PRECONDITION where the runtime under it has not what the harness needs:
   * the message names what is missing.
   */
  describe(options?: CallOptions): Promise<HarnessDescriptor>;
  /** The fence that the session's incarnation here was minted; undefined where none lives. A turn of it goes on under that fence. */
  fenceOf(session: SessionUid): Fence | undefined;
  /** Brings the session's sandbox back without a turn; resolves with what the row tells. */
  wake(options: WakeOptions): Promise<ComputeRef | undefined>;
  /**
   * Makes the session's harness ready for a turn, as `attach` would, and resolves with what it says of itself: where it was replaced since it
   * was described, that is another version. Whoever plans a turn with it attaches it next. Absent where nothing has to be made ready.
   */
  readonly ready?: ((options: WakeOptions) => Promise<HarnessDescriptor>) | undefined;
  /** The harness for one session's turn: the incarnation that lives here, or one that is started, restored or forked. */
  attach(options: AttachOptions): Promise<AttachedHarness>;
  /**
   * The harness apart from any session, in a fresh sandbox of its own where its runtime has such a thing: for replays. Whoever asked
   * disposes of it.
   */
  rehearse(options: CallOptions): Promise<RehearsedHarness>;
  /**
   * The session's turn has run to its end, which is about to be recorded. A harness that keeps state in memory is captured, so that the
   * turn survives the process that holds it; resolves with what the session's row tells of its compute, or undefined where there
   * is nothing to tell. A turn that is not settled leaves no trace in memory: the next one starts from the capture before it. Rejects with
   * UNAVAILABLE where memory should be captured and the turn's sandbox is gone.
   */
  settle(options: SettleOptions): Promise<ComputeRef | undefined>;
  /**
   * Captures the session's state. `local` keeps it warm on this node; `external` also frees what it holds here. Resolves with the
   * snapshot that SUSPEND records, and with what the row tells. Throws FAILED_PRECONDITION where memory should be captured and is not here,
   * ABORTED where the session went on under a newer fence.
   */
  suspend(options: SuspendOptions): Promise<SuspendedSession>;
  /**
   * What the rows of children tell that begin with the memory of a suspended session, of which `compute` is what its row tells. All that is
   * stored of it counts as new from now on, since they are about to name it.
   */
  shared(compute: ComputeRef | undefined): Promise<SharedMemory>;
  /**
   * Removes what is stored of a session's memory before its newest settled turn: `before` is what its row told until now, and no other row
   * names it; `now` is what the row tells. What is a parent's, or another harness's, stays.
   */
  discard(before: ComputeRef, now: ComputeRef): Promise<void>;
  /** Destroys what the session holds here; nothing to destroy does nothing. */
  release(session: SessionUid): Promise<void>;
}

/** Which session is meant. */
export interface ResidenceOptions {
  readonly sessionUid: SessionUid;
  /** What the session's row tells of its compute. */
  readonly compute: ComputeRef | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Which session's turn has run to its end. */
export interface SettleOptions extends ResidenceOptions {
  /** The fence that the turn wrote under. */
  readonly fence: Fence;
}

/** Which session's state is captured, and how. */
export interface SuspendOptions extends ResidenceOptions {
  readonly kind: SnapshotKind;
  /** The session's newest fence. What lives here under an older one is not its state any more, and is destroyed. */
  readonly fence: Fence;
}

/** Which session's sandbox is brought back. */
export interface WakeOptions {
  readonly sessionUid: SessionUid;
  /** The fence that the journal minted; a new incarnation is bound to it. */
  readonly fence: Fence;
  readonly identity: IdentityRef | undefined;
  /** What the session's row tells of its compute: the snapshot to restore from, where there is one. */
  readonly compute: ComputeRef | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Which session's turn a harness is attached for; the turn writes under `fence`. */
export interface AttachOptions extends WakeOptions {
  readonly executionId: ExecutionId;
  /** What the turn was planned with; another one now is FAILED_PRECONDITION. */
  readonly descriptor: HarnessDescriptor;
  readonly signal: AbortSignal;
}

/** A harness in its place. */
export interface AttachedHarness {
  readonly harness: Harness;
  /** Where it runs, as `Session.compute` tells it; absent for a harness in this process. */
  readonly compute?: ComputeRef | undefined;
}

/** A harness apart from any session. */
export interface RehearsedHarness extends AsyncDisposable {
  readonly harness: Harness;
}

/** A session whose state was captured. */
export interface SuspendedSession {
  readonly snapshot: SnapshotRef;
  /** What the row tells; absent where it has nothing to tell. */
  readonly compute?: ComputeRef | undefined;
}

/** What children begin with. */
export type SharedMemory =
  /** Their records alone. */
  | { readonly kind: "none" }
  /** A memory that is whole; their rows tell this. */
  | { readonly kind: "whole"; readonly child: ComputeRef }
  /** A memory that has lost the named part. */
  | { readonly kind: "missing"; readonly part: string };

/** The harnesses of this host. */
export interface HarnessCatalog {
  /** The entry under `name`; undefined for an unknown one. */
  find(name: string): HarnessEntry | undefined;
  /** The names that new sessions may use, in order. */
  names(): readonly string[];
}
