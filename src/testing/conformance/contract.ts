/** The terms of the suite: what a case is, what it may need of a server, and how it came out. */

import type { Transport } from "../../client/index.ts";
import type { Bench } from "./bench.ts";

/** What only the owner of a server knows: harnesses of it that do what a case needs. A case whose need is not met is skipped. */
export interface Abilities {
  /** A harness that ends its turns COMPLETED, with text inputs or without. Default: the server's own. */
  readonly harness?: string | undefined;
  /** A harness whose turn goes on until it is cancelled. */
  readonly waitingHarness?: string | undefined;
  /** A harness that ends its turns FAILED. */
  readonly failingHarness?: string | undefined;
  /**
   * A harness that asks a model, then throws when it runs a turn for the first time; run again for the same turn it does the same and completes.
   */
  readonly flakyHarness?: string | undefined;
  /** A harness whose turn makes a mediated call that succeeds and then one whose executor fails, and completes. */
  readonly toolHarness?: string | undefined;
  /** A harness whose turn makes one call that needs approval, says how it went, and completes. */
  readonly approvalHarness?: string | undefined;
  /** A harness whose turn makes three such calls at once, and completes. */
  readonly parallelApprovalHarness?: string | undefined;
}

/** The abilities that a case can need. The plain harness is always there. */
export type Need = "waitingHarness" | "failingHarness" | "flakyHarness" | "toolHarness" | "approvalHarness" | "parallelApprovalHarness";

/** One promise of the contract as a case. */
export interface ContractCase {
  /** `group/name`, the same for ever. */
  readonly id: string;
  /** The promise that it rests on, in a sentence, with the invariant's number where it has one. */
  readonly promise: string;
  readonly needs: readonly Need[];
  readonly run: (bench: Bench) => Promise<void>;
}

/** The cases of one group, by name. */
export type CaseTable = Readonly<Record<string, Omit<ContractCase, "id" | "needs"> & { readonly needs?: readonly Need[] }>>;

/** How a case came out. */
export type CaseResult = { readonly id: string; readonly promise: string; readonly durationMs: number } & (
  | { readonly outcome: "passed" }
  /** `reason` says what was expected and what was found. */
  | { readonly outcome: "failed"; readonly reason: string }
  /** `reason` says what the server, or what is known of it, lacks. */
  | { readonly outcome: "skipped"; readonly reason: string }
);

/** What to run, and against what. */
export interface ConformanceOptions {
  /** Opens a transport to the server; it is disposed of at the end. */
  readonly connect: () => Transport | Promise<Transport>;
  readonly abilities?: Abilities | undefined;
  /** Only these groups (`fork`) or cases (`fork/prefix`). Default: all. */
  readonly only?: readonly string[] | undefined;
  /** How long one case may take. Default 60,000. */
  readonly caseTimeoutMs?: number | undefined;
  /** Called after each case, in the order of the cases. */
  readonly onResult?: ((result: CaseResult) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** How the suite came out. */
export interface ConformanceReport {
  readonly results: readonly CaseResult[];
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** A promise that was not kept. Its message says what was expected and what was found. */
export class BrokenPromise extends Error {
  override readonly name = "BrokenPromise";
}

/** Something that the server does not have and need not have. */
export class NotServed extends Error {
  override readonly name = "NotServed";
}
