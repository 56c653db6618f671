/** What a turn is made of. */

import type { HoldfastError } from "../base/errors.ts";
import type { ExecutionId, Seq } from "../base/ids.ts";
import type { Log, Ports } from "../base/ports.ts";
import type { Head, JournalStore, NewEvent, SessionSeed } from "../journal/index.ts";
import type {
  ComputeRef,
  HarnessDescriptor,
  HarnessEntry,
  ModelCatalog,
  SessionBlobs,
  TokenIssuer,
  ToolDefinition,
  ToolExecutor,
} from "../spi/index.ts";
import type { ExecInvocation, TurnPlan } from "./contract.ts";
import type { Meter } from "./budgets.ts";
import type { DeltaHub } from "./deltas.ts";
import { executionStartEvent, inputEvent, type EventStamp } from "./events.ts";
import type { CommittedEvents, HistoryCache } from "./history.ts";
import type { LastRequests } from "./last-requests.ts";
import type { ControllerLimits } from "./limits.ts";
import type { Partials } from "./partials.ts";
import type { PolicyRule } from "./policy.ts";
import type { MessageOrigins } from "./request-sketch.ts";
import type { Tape } from "./tape.ts";
import type { TurnPosition } from "./turn-journal.ts";

/** What turns of one controller share. */
export interface TurnContext {
  readonly store: JournalStore;
  readonly models: ModelCatalog;
  readonly deltas: DeltaHub;
  readonly partials: Partials;
  readonly history: HistoryCache;
  readonly origins: MessageOrigins;
  readonly requests: LastRequests;
  readonly ports: Ports;
  readonly log: Log;
  readonly limits: ControllerLimits;
  readonly policies: readonly PolicyRule[];
  /** Absent on a host that keeps no large outputs of tools. */
  readonly outputs: SessionBlobs | undefined;
  /** Absent on a host without a key. */
  readonly tokens: TokenIssuer | undefined;
}

/** A turn whose start is durable. */
export interface TurnStart {
  /** What the harness is told. */
  readonly executionId: ExecutionId;
  /** What events carry; "" in a journal without execution ids. */
  readonly recordedId?: "" | undefined;
  readonly seed: SessionSeed;
  readonly invocation: ExecInvocation;
  readonly harness: HarnessEntry;
  readonly descriptor: HarnessDescriptor;
  /** What the session's row told of its compute when the turn began. */
  readonly compute: ComputeRef | undefined;
  /** The seq of its EXECUTION_START. */
  readonly startSeq: Seq;
  /** The seq of the first record of its first append here: RESUME may come before the start. */
  readonly firstSeq?: Seq | undefined;
  readonly position: TurnPosition;
  /** The last record before its first append here, and what that append recorded; absent for a turn that is taken up again. */
  readonly head?: Head | undefined;
  readonly started?: CommittedEvents | undefined;
  /** What runs its tools; undefined where there are none. */
  readonly executor: ToolExecutor | undefined;
  /** The tools as they are kept beside its start. */
  readonly tools: readonly ToolDefinition[] | undefined;
  /** Absent on a host without budgets. The turn closes it. */
  readonly meter?: Meter | undefined;
  /** What it has recorded already; empty for a new turn. */
  readonly tape: Tape;
  /** Why its harness cannot be had, where that is known already: the turn is interrupted with it. */
  readonly unready?: HoldfastError | undefined;
}

/** The events of a turn's start; `offered` is kept beside the first one. */
export function startEvents(stamp: EventStamp, plan: TurnPlan, offered: Uint8Array | undefined): readonly NewEvent[] {
  const { invocation, harness, descriptor, seed } = plan;
  const start = { invocation, harness: harness.name, harnessVersion: descriptor.version };
  return [
    { ...executionStartEvent(stamp, start, seed.identity), aside: offered },
    ...invocation.inputs.map((message) => inputEvent(stamp, message, invocation.caller)),
  ];
}
