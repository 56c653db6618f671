/**
 * The runtime SPI: where a harness lives, and how its memory is kept. Runtimes are interchangeable behind it; one conformance suite
 * (`holdfast/testing`) holds all of them to it.
 *
 * Invariants:
 * - One incarnation of a session lives at a time; it is bound to the fence that the journal minted for it.
 * - A snapshot that was returned is durable for as long as its kind says: `external` outlives this process, `local` the incarnation's.
 * - Capabilities are reported as they are. A runtime without memory snapshots answers `snapshot` with a reference to the session itself.
 * - A call that fails leaves nothing half-made behind.
 * - A snapshot names stored blobs only after it renewed them, so that a sweep of what no row names (`src/controller/capture-sweep.ts`) never
 *   meets it on its way into a row.
 */

import type { Fence, SessionUid } from "../base/ids.ts";
import type { CallOptions, Harness } from "./harness.ts";
import type { ComputeState, IdentityRef, RuntimeCapabilities, SnapshotRef } from "./wire.ts";

/** What a runtime needs to know to start a sandbox for a session. */
export interface SessionSpec {
  readonly sessionUid: SessionUid;
  /** The harness's name on this host. */
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
  readonly sessionUid: SessionUid;
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

/** A compute backend, configured for one harness. */
export interface Runtime extends AsyncDisposable {
  /** The kind of backend, as `Session.compute.runtime` has it: `local`, `process`, `remote`, `quickjs`, `gvisor`. */
  readonly name: string;
  /** Starts a cold sandbox. */
  create(spec: SessionSpec, options?: CallOptions): Promise<Incarnation>;
  /**
   * The harness inside an incarnation; its `run` drives turns there. Calling it again gives the same harness. A sandbox that was
   * paused by a `local` snapshot goes on. Rejects with UNAVAILABLE where the sandbox is gone.
   */
  attach(incarnation: Incarnation, options?: CallOptions): Promise<Harness>;
  /** What the harness says of itself, without a session: of a sandbox that is started for this and destroyed, where need be. */
  describe(options?: CallOptions): ReturnType<Harness["describe"]>;
  /**
   * Captures state; `local` keeps the sandbox, paused where the runtime can pause; `external` releases the compute, keeping what restore
   * needs. Never during a turn (ABORTED).
   */
  snapshot(incarnation: Incarnation, kind: SnapshotKind, options?: CallOptions): Promise<SnapshotRef>;
  /**
   * Captures state as durably as `external` and keeps the sandbox running: what makes a turn of a memory-snapshot harness survive the
   * host. Absent where the runtime captures no memory.
   */
  checkpoint?(incarnation: Incarnation, options?: CallOptions): Promise<SnapshotRef>;
  /** Brings a session back from a snapshot. */
  restore(snapshot: SnapshotRef, options: IncarnationOptions): Promise<Incarnation>;
  /** Starts a child from a parent's snapshot. Rejects with SnapshotSupersededError; leaves no half-made child behind. */
  fork(snapshot: SnapshotRef, options: IncarnationOptions): Promise<Incarnation>;
  /** Destroys an incarnation; doing it again does nothing. A snapshot may not be restorable after it. */
  stop(incarnation: Incarnation, options?: CallOptions): Promise<void>;
  /** The compute state of an incarnation: LIVE, WARM (paused), TERMINATED (it died or was stopped). */
  status(incarnation: Incarnation, options?: CallOptions): Promise<ComputeState>;
  /** What this backend can do, as it is. */
  capabilities(): RuntimeCapabilities;
  /**
   * Makes all that is stored of a snapshot count as new, so that no sweep takes it before a row names it. Resolves with what is missing of
   * it, as a name of the store; undefined where it is whole, or is no stored one. Rejects with DATA_LOSS where it cannot be told. Absent
   * where nothing is stored.
   */
  renew?(snapshot: SnapshotRef, options?: CallOptions): Promise<string | undefined>;
  /**
   * Removes what of a snapshot a newer one of the same session does not need; only what nothing else refers to may be discarded. What is gone
   * already is passed over; of what cannot be read nothing is removed, and it rejects. Absent where nothing is stored.
   */
  discard?(snapshot: SnapshotRef, newer: SnapshotRef, options?: CallOptions): Promise<void>;
}
