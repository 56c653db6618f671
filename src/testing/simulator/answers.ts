/**
 * Which errors a client may be answered with, by what it asked and the state that it met. Everything else is a violation: a code that
 * does not say what happened sends a caller the wrong way.
 */

import { HoldfastError, InvariantError, type ErrorCode, type SessionUid } from "../../base/index.ts";
import type { SimHost } from "./sim-host.ts";

/** What a client can ask. */
export type CallKind = "create" | "exec" | "resume" | "cancel" | "suspend" | "delete" | "fork" | "list" | "watch" | "approve";

/** What a request says that decides about its answer. */
export interface Given {
  /** The name of no harness. */
  readonly unknownHarness?: boolean | undefined;
  readonly deadline?: boolean | undefined;
  readonly named?: boolean | undefined;
  readonly expectedLastSeq?: number | undefined;
  readonly executionId?: string | undefined;
  readonly atSeq?: number | undefined;
  /** The reference of a request that was open when the call began. */
  readonly isOpenRequest?: boolean | undefined;
  readonly inputs?: number | undefined;
}

/** What a call met. */
export interface CallFacts {
  readonly kind: CallKind;
  readonly session: SessionUid | undefined;
  readonly host: SimHost;
  readonly given: Given;
  /** The session was there when it began and when it was answered. */
  readonly existed: boolean;
  /** The session's last seq when it began and when it was answered. */
  readonly lastSeqs: readonly [before: number, after: number];
  /** Somebody held, ran or changed the session while it was under way. */
  readonly contested: boolean;
  /** How often somebody changed it meanwhile. */
  readonly changes: number;
  /** By the time of the answer. */
  readonly deleted: boolean;
  /** The open turn may not go on: its start marker does not add up, or another version of its harness recorded it. */
  readonly stuck: boolean;
  /** An approval call of the session's own had no receipt at some moment from the call's beginning to its answer. */
  readonly waits: boolean;
  /** The host runs as many turns as it may. */
  readonly full: boolean;
}

const ALWAYS: readonly CallKind[] = ["create", "exec", "resume", "cancel", "suspend", "delete", "fork", "list", "watch", "approve"];
const WRITES: readonly CallKind[] = ["create", "exec", "resume", "cancel", "suspend", "delete", "fork", "approve"];
/** How many lost races in a row are reason enough to give up. */
const RACES_MAX = 16;

const TURNS: readonly CallKind[] = ["exec", "resume"];

/** When each code is right. A code that is not here never is. */
const RIGHT: Partial<Readonly<Record<ErrorCode, { readonly kinds: readonly CallKind[]; readonly when: (facts: CallFacts) => boolean }>>> = {
  unavailable: { kinds: ALWAYS, when: isFaulty },
  resource_exhausted: { kinds: WRITES, when: (facts) => isFaulty(facts) || (facts.full && TURNS.includes(facts.kind)) },
  not_found: { kinds: WRITES, when: ({ existed }) => !existed },
  already_exists: { kinds: ["create", "fork"], when: ({ given }) => given.named === true },
  invalid_argument: { kinds: ["exec"], when: ({ given }) => given.unknownHarness === true },
  deadline_exceeded: { kinds: ["exec"], when: ({ given }) => given.deadline === true },
  aborted: {
    kinds: ["exec", "resume", "cancel", "suspend", "delete", "watch", "approve"],
    // A turn that runs somewhere is no reason not to cancel it: only losing every race is.
    when: ({ kind, contested, changes, given, lastSeqs, deleted }) => {
      // Whoever watches a session while its storage is reclaimed is told so.
      if (kind === "watch") return deleted;
      if (kind === "cancel" || kind === "delete") return changes >= RACES_MAX;
      return contested || lastSeqs.some((lastSeq) => lastSeq !== (given.expectedLastSeq ?? lastSeq));
    },
  },
  failed_precondition: { kinds: WRITES, when: forbids },
};

function isFaulty({ host }: CallFacts): boolean {
  return host.road.faults > 0 || !host.isUp;
}

/** Whether the state forbids what was asked. */
function forbids({ kind, deleted, stuck, waits, given, changes, lastSeqs: [lastSeq] }: CallFacts): boolean {
  switch (kind) {
    case "exec":
      return deleted || (waits && (stuck || (given.inputs ?? 0) > 0));
    case "approve":
      return deleted || given.isOpenRequest !== true || changes > 0;
    case "suspend":
      return deleted;
    case "resume":
      return deleted || stuck;
    case "cancel":
      return given.executionId !== undefined && given.executionId !== "";
    case "fork":
      return deleted || lastSeq === 0 || (given.atSeq ?? 0) > lastSeq;
    case "create":
    case "delete":
    case "list":
    case "watch":
      return false;
  }
}

/** Why `error` is no right answer to a call; undefined where it is one. */
export function wrongAnswer(error: unknown, facts: CallFacts): string | undefined {
  if (error instanceof InvariantError) return `an internal check failed: ${String(error.details?.["invariant"])}`;
  if (!(error instanceof HoldfastError)) return `it was answered with ${String(error)}`;
  const right = RIGHT[error.code];
  if (right !== undefined && right.kinds.includes(facts.kind) && right.when(facts)) return undefined;
  return `it was answered ${error.code} ("${error.message}"), which nothing here gives a reason for`;
}

/** What a turn is told whose session was deleted, and reclaimed, by somebody else. */
const GONE: readonly ErrorCode[] = ["failed_precondition", "not_found"];
const INTERRUPTIONS: readonly ErrorCode[] = ["aborted", "cancelled", "internal", "invalid_argument", "resource_exhausted", "unavailable"];

/** Why a turn may not be interrupted with `error`; undefined where it may. */
export function wrongInterruption(error: HoldfastError, deleted: boolean): string | undefined {
  if (error instanceof InvariantError) return `an internal check failed: ${String(error.details?.["invariant"])}`;
  if (INTERRUPTIONS.includes(error.code) || (GONE.includes(error.code) && deleted)) return undefined;
  return `a turn was interrupted with ${error.code} ("${error.message}")`;
}
