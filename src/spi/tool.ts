/**
 * The tool SPI: how the host runs a mediated tool.
 *
 * Invariants:
 * - A call is executed only after its intent is durable (I7), and never again once its result is recorded (I3).
 * - The idempotency key of a call, together with the session's uid, names one effect. An executor that says `idempotent` of a tool
 *   promises that calling it again under the same pair has no further effect; only such a call is ever driven again after a crash.
 */

import type { SessionUid } from "../base/ids.ts";
import type { BlobStore } from "./blob.ts";
import type { ToolCall, ToolDefinition, ToolResult } from "./wire.ts";

/** A tool that this host can run. */
export interface HostTool {
  readonly definition: ToolDefinition;
  /** True when a second call under the same idempotency key has no further effect, so a crashed call may be driven again (I3). */
  readonly idempotent: boolean;
}

/** What a tool is told of the call that it runs. */
export interface ToolRun {
  /** The session; with the call's idempotency key it names the effect. */
  readonly session: SessionUid;
  /** Fires when the turn is cancelled or its host shuts down. What the tool does then is its own; nobody waits for it. */
  readonly signal: AbortSignal;
  /** Says how far the tool has come. Never journaled. */
  readonly progress?: ((detail: string) => void) | undefined;
  /**
   * Where an executor puts what is too large for a record, before it answers with its address: the session's own blobs, which go with the
   * session. Absent on a host without such a place.
   */
  readonly blobs?: BlobStore | undefined;
}

/** Runs tools for the host. */
export interface ToolExecutor {
  /** The tools on offer now, in a stable order. */
  list(): readonly HostTool[];
  /** The tool of this name; undefined where there is none. */
  find(name: string): HostTool | undefined;
  /**
   * What is wrong with a call's arguments by its tool's JSON Schema, in words for whoever made the call; undefined when nothing is.
   * Asked before the intent is recorded.
   */
  check(call: ToolCall): string | undefined;
  /**
   * Runs one call whose intent is durable. A tool that fails resolves with `is_error`. A rejection is the executor's own failure: it is
   * recorded as EXECUTOR_ERROR, with the message of a HoldfastError and without that of any other error; the call then counts as one
   * that took no effect. Where that is not known (a time-out, a line that broke) and the tool is not idempotent, it resolves with
   * `unknownOutcome`: the receipt then says so, nothing is run again under the call's key, and a person settles it. A rejection with
   * InterruptedCallError records nothing and interrupts the turn.
   */
  execute(call: ToolCall, run: ToolRun): Promise<ToolResult>;
}

/** A turn whose own tools are asked for. */
export interface TurnToolsRequest {
  readonly session: SessionUid;
  /** The turn's config as it is journaled: what tells the turn's own tools must follow from it. */
  readonly config: Uint8Array;
  /** What the turn was offered when it started; absent for a turn that starts now. */
  readonly offered?: readonly ToolDefinition[] | undefined;
}

/**
 * The tools that a turn has of its own beside those of its host, such as those of a client that runs them itself; undefined for none. They go
 * before the host's, and of two under one name the turn's own is run. It is asked when a turn starts and when one is taken up again, and must
 * not throw.
 */
export type TurnTools = (turn: TurnToolsRequest) => ToolExecutor | undefined;
