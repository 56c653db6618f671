/**
 * Where a host keeps the harnesses that its operator registered.
 *
 * Invariants:
 * - A name is given once. Its spec never changes, and neither does its uid; a registration is retired, never removed.
 * - What a store acknowledged is there after a crash.
 */

import type { HarnessSpec } from "../gen/agentsessions/v1/harness_registry_pb.ts";

/** A harness that was registered. */
export interface RegisteredHarness {
  readonly name: string;
  readonly uid: string;
  /** Counts its changes, from 1. */
  readonly version: number;
  readonly spec: HarnessSpec;
  /** The spec's content address, `sha256:` and hex. */
  readonly specDigest: string;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
  /** Absent for one that new sessions may use. */
  readonly retired: { readonly timeMs: number; readonly reason: string } | undefined;
}

/** What became of an insertion; `row` is what the store has now. */
export type InsertOutcome = { readonly kind: "inserted" | "taken"; readonly row: RegisteredHarness };

/** What became of a change; `row` is what the store has now. */
export type ReplaceOutcome =
  | { readonly kind: "replaced" | "conflict"; readonly row: RegisteredHarness }
  /** No registration has the name. */
  | { readonly kind: "unknown" };

/** Keeps registrations. Faults are HoldfastErrors. */
export interface RegistrationStore extends AsyncDisposable {
  /** All of them, by name. */
  load(): Promise<readonly RegisteredHarness[]>;
  /** Adds one, if its name is free. Of two at once under one name, one is inserted. */
  insert(row: RegisteredHarness): Promise<InsertOutcome>;
  /** Replaces what the name has, if that is the version before `row.version`. */
  replace(row: RegisteredHarness): Promise<ReplaceOutcome>;
}
