/** The runtime SPI: where a harness lives, and how its memory is kept. Runtimes are interchangeable behind it. */

import type { Fence, SessionUid } from "../base/ids.ts";
import type { CallOptions, Harness } from "./harness.ts";
import type { ComputeState, IdentityRef, RuntimeCapabilities, SnapshotRef } from "./wire.ts";

/** What a runtime needs to know to start a sandbox for a session. */
export interface SessionSpec {
  readonly sessionUid: SessionUid;
  /** The harness's registered name. */
  readonly harness: string;
  /** The image or bundle to start, where the runtime has such a thing. */
  readonly image?: string | undefined;
  readonly identity?: IdentityRef | undefined;
  /** The token that the journal minted for this incarnation. */
  readonly fence: Fence;
}

/** One live sandbox of a session. */
export interface Incarnation {
  readonly id: string;
  /** The runtime's name. */
  readonly runtime: string;
  /** The process, pod or worker that holds it. */
  readonly worker: string;
  /** The token that appends on its behalf carry. */
  readonly fence: Fence;
  /** Where its harness listens, where it has an address. */
  readonly address?: string | undefined;
  /** Metadata that every call to that address must carry. It is routing, not authentication. */
  readonly callMetadata?: Readonly<Record<string, string>> | undefined;
  /** Runtime-specific facts, shown as `Session.compute.attributes`. */
  readonly attributes?: Readonly<Record<string, string>> | undefined;
}

/** `local` keeps the state warm on the node; `external` goes cold: state in storage, compute released. */
export type SnapshotKind = "local" | "external";

/** What a new incarnation of an existing session is bound to. */
export interface IncarnationOptions extends CallOptions {
  readonly sessionUid: SessionUid;
  readonly fence: Fence;
}

/** A compute backend. */
export interface Runtime {
  /** The name under which config and `Session.compute.runtime` know it. */
  readonly name: string;
  /** Starts a cold sandbox. */
  create(spec: SessionSpec, options?: CallOptions): Promise<Incarnation>;
  /** The harness inside an incarnation; its `run` drives turns there. */
  attach(incarnation: Incarnation, options?: CallOptions): Promise<Harness>;
  /** Captures state; `external` also releases the compute, keeping what restore needs. */
  snapshot(incarnation: Incarnation, kind: SnapshotKind, options?: CallOptions): Promise<SnapshotRef>;
  /** Brings a session back from a snapshot. */
  restore(snapshot: SnapshotRef, options: IncarnationOptions): Promise<Incarnation>;
  /** Starts a child from a parent's snapshot. Rejects with SnapshotSupersededError; leaves no half-made child behind. */
  fork(snapshot: SnapshotRef, options: IncarnationOptions): Promise<Incarnation>;
  /** Destroys an incarnation. A snapshot may not be restorable after it. */
  stop(incarnation: Incarnation, options?: CallOptions): Promise<void>;
  /** The compute state of an incarnation. */
  status(incarnation: Incarnation, options?: CallOptions): Promise<ComputeState>;
  /** What this backend can do, as it is. */
  capabilities(): RuntimeCapabilities;
}
