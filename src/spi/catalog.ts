/** How the controller finds a harness by name, wherever it lives. */

import type { Fence, SessionUid } from "../base/ids.ts";
import type { CallOptions, Harness } from "./harness.ts";
import type { ComputeRef, HarnessDescriptor } from "./wire.ts";

/** A harness that this host serves under a name. */
export interface HarnessEntry {
  /** The resolved name, as EXECUTION_START records it. */
  readonly name: string;
  /** `static` comes with the host or its config; a session on a `registered` one is pinned to it. */
  readonly source: "static" | "registered";
  /** False once it was retired: sessions that have it go on, new ones are refused. */
  readonly open: boolean;
  /** What it says of itself; asked once and kept. */
  describe(options?: CallOptions): Promise<HarnessDescriptor>;
  /** The harness for one session's turn: placed, started or restored as its runtime does. */
  attach(options: AttachOptions): Promise<AttachedHarness>;
}

/** Which session a harness is attached for. */
export interface AttachOptions {
  readonly sessionUid: SessionUid;
  /** The fence under which the turn writes, bound to the incarnation. */
  readonly fence: Fence;
  readonly signal: AbortSignal;
}

/** A harness in its place. */
export interface AttachedHarness {
  readonly harness: Harness;
  /** Where it runs, as `Session.compute` tells it; absent for a harness in this process. */
  readonly compute?: ComputeRef | undefined;
}

/** The harnesses of this host. */
export interface HarnessCatalog {
  /** The entry under `name`; undefined for an unknown one. */
  find(name: string): HarnessEntry | undefined;
}
