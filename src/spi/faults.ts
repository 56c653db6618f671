/** The typed unwinds that pass between host and harness. */

import { HoldfastError } from "../base/errors.ts";
import type { ApprovalRef } from "./wire.ts";

/**
 * Thrown by a harness that ends its turn FAILED for good: the host records END FAILED with this code and description.
 * The description is the harness author's words and is journaled, so it is no place for secrets.
 */
export class HarnessFailure extends Error {
  override readonly name = "HarnessFailure";
  /** A gRPC status code of an error, 1 to 16, as END's error carries it. */
  readonly grpcCode: number;

  /** Any other number than those of errors becomes 2, UNKNOWN; the description stays. */
  constructor(grpcCode: number, description: string, options: { readonly cause?: unknown } = {}) {
    super(description, options);
    this.grpcCode = failureStatusOf(grpcCode);
  }
}

/**
 * The gRPC status that a failure with `code` has: 2, UNKNOWN, for a number that is no error's, as gRPC itself takes it. A failed turn so
 * never reads as OK, and a caller never meets a number that its library does not know.
 */
export function failureStatusOf(code: number): number {
  return Number.isInteger(code) && code >= 1 && code <= 16 ? code : 2;
}

/** Unwinds a run whose tool call waits for a decision. It commits nothing; the journal holds the approval's state. */
export class ApprovalParkedError extends Error {
  override readonly name = "ApprovalParkedError";
  readonly ref: ApprovalRef;

  constructor(ref: ApprovalRef) {
    super("the turn is parked until its approval request is decided");
    this.ref = ref;
  }
}

/**
 * Thrown by a tool executor that cannot say now what becomes of a call, because the host is shutting down or lacks what the call needs.
 * Nothing of the call is recorded: once nothing else of its turn runs, the turn is interrupted with `fault`. Resume drives the call again
 * where its tool is idempotent; of any other it records that the outcome is unknown (I3).
 */
export class InterruptedCallError extends Error {
  override readonly name = "InterruptedCallError";
  readonly fault: HoldfastError;

  constructor(fault: HoldfastError) {
    super(fault.message, { cause: fault });
    this.fault = fault;
  }
}

/**
 * Whether `error` is nothing but parks for `ref`, however wrapped: every leaf of its tree of causes and aggregated errors
 * is an ApprovalParkedError for that request. An independent failure anywhere in the tree makes it false.
 */
export function isParkUnwind(error: unknown, ref: ApprovalRef): boolean {
  return isParkUnwindOfAny(error, [ref]);
}

/** The same for a turn that parks at several requests at once: every leaf is an ApprovalParkedError for one of them. */
export function isParkUnwindOfAny(error: unknown, refs: readonly ApprovalRef[]): boolean {
  if (error instanceof ApprovalParkedError) return refs.some((ref) => isSameRequest(error.ref, ref));
  if (error instanceof AggregateError) {
    return error.errors.length > 0 && error.errors.every((inner) => isParkUnwindOfAny(inner, refs));
  }
  return error instanceof Error && error.cause !== undefined && isParkUnwindOfAny(error.cause, refs);
}

function isSameRequest(left: ApprovalRef, right: ApprovalRef): boolean {
  return left.executionId === right.executionId && left.toolCallId === right.toolCallId && left.requestSeq === right.requestSeq;
}

/** The snapshot that a fork was to clone is no longer the one the parent holds; retry the fork at the parent's new head. */
export class SnapshotSupersededError extends HoldfastError {
  constructor() {
    super("aborted", "session: its snapshot was superseded while the fork was under way; read the session and retry");
  }
}

/**
 * What a harness threw, made safe to look at. JavaScript can throw anything: a proxy whose every trap throws, an error whose message is a
 * symbol or a getter that throws. An error that can be read is returned as it is, so its class and its identity hold; of anything else
 * nothing is left but that it was thrown.
 */
export function readableThrow(thrown: unknown): unknown {
  try {
    if (thrown instanceof AggregateError && !isReadable(thrown, thrown.errors)) return unreadable();
    if (thrown instanceof Error) return isReadable(thrown, [thrown.cause]) ? thrown : unreadable();
    return (typeof thrown === "object" && thrown !== null) || typeof thrown === "function" ? unreadable() : thrown;
  } catch {
    return unreadable();
  }
}

/** Whether an error's own words are text, and those of the errors in it too. May throw, which is an answer. */
function isReadable(error: Error, inner: readonly unknown[]): boolean {
  const { name, message, stack } = error;
  if (typeof name !== "string" || typeof message !== "string" || (stack !== undefined && typeof stack !== "string")) return false;
  // A cause may be anything; only errors in it are ever looked into.
  return inner.every((each) => !(each instanceof Error) || readableThrow(each) === each);
}

function unreadable(): Error {
  return new Error("what was thrown cannot be read");
}
