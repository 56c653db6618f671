/**
 * The ledger: everything that happened outside the journal, or was told to somebody. It is kept by observers beside the world that
 * is tested (`observed-journal.ts`, `observed-harness.ts`, `counted-model.ts`), never by what is tested.
 *
 * Entries are in the order of their happening. A host is named by one life of it: a host that was started again is another one.
 */

import type { Event, Message } from "../../spi/index.ts";
import type { ExecutionId, Fence, Seq, SessionUid } from "../../base/index.ts";
import type { TurnCheck } from "../../controller/index.ts";
import type { AppendOutcome, EndState, StoredRecord, Writer } from "../../journal/index.ts";
import type { Violation } from "./violation.ts";

/** One append, as it reached the store. */
export interface SeenAppend {
  readonly session: SessionUid;
  readonly host: string;
  readonly writer: Writer;
  readonly expectedLastSeq: Seq | undefined;
  readonly events: readonly Event[];
  /** `pending` for as long as the store has not answered; for ever, when it died before. */
  answer: AppendOutcome["kind"] | "pending" | "threw";
  /** What an acknowledged append was told. */
  records: readonly StoredRecord[];
  fence: Fence | undefined;
}

/** One fork, as it reached the store. */
export interface SeenFork {
  readonly parent: SessionUid;
  readonly atSeq: Seq;
  readonly children: readonly SessionUid[];
  answer: "pending" | "forked" | "refused" | "threw";
}

/** One run of a harness. */
export interface Run {
  readonly session: SessionUid;
  readonly host: string;
  /** `replay` for a run that is served from the record only. */
  readonly fence: Fence | "replay";
  readonly executionId: ExecutionId;
}

/** What a run was started with. */
export interface SeenStart extends Run {
  readonly lastSeq: Seq;
  readonly inputs: readonly Message[];
  readonly config: Uint8Array;
  readonly resumeFromSeq: bigint;
  /** The pages of history that it read so far. */
  readonly pages: { readonly firstSeq: Seq; readonly events: readonly Event[] }[];
}

/** One request that reached a model. */
export interface RealCall extends Run {
  readonly inputHash: string;
  /** The MODEL_CALL that was durable for it when it was made; undefined when there was none. */
  readonly callSeq: Seq | undefined;
  /** What the model answered; undefined while it has not, and when it failed. */
  response: Message | undefined;
}

/** One call that reached a tool. */
export interface RealToolRun extends Run {
  readonly tool: string;
  readonly toolCallId: string;
  readonly key: string;
  readonly idempotent: boolean;
  /** The TOOL_CALL that was durable for it in the session's own records when it ran; undefined when there was none. */
  readonly callSeq: Seq | undefined;
  /** Names this very run in the tool's output. */
  readonly nonce: number;
}

/** A completion as a harness got it. */
export interface ServedCompletion extends Run {
  readonly inputHash: string;
  readonly message: Message;
  /** The session's last durable seq at that moment. */
  readonly durableSeq: Seq;
  /** The harness runs tools itself, so it can act on what it was given without the host. */
  readonly actsItself: boolean;
}

/** A run that learnt that it had diverged. */
export interface SeenDivergence extends Run {
  /** How many calls were in the ledger then. */
  readonly callsBefore: number;
}

/** What one watcher saw, reconnections included: it is told each record from `fromSeq` on, once. */
export interface SeenStream {
  readonly session: SessionUid;
  readonly fromSeq: Seq;
  readonly records: { readonly seq: Seq; readonly contentHash: string }[];
}

/** What a client was told of a turn. */
export type Told =
  | { readonly kind: "begun"; readonly session: SessionUid; readonly executionId: ExecutionId; readonly seq: Seq }
  | {
      readonly kind: "ended";
      readonly session: SessionUid;
      readonly executionId: ExecutionId;
      readonly seq: Seq;
      readonly state: EndState;
    };

/** One replay of a session. */
export interface SeenReplay {
  readonly session: SessionUid;
  readonly checks: readonly TurnCheck[];
  /** Requests that reached a model meanwhile. */
  readonly calls: number;
}

/** The ledger of one world. */
export class Ledger {
  readonly appends: SeenAppend[] = [];
  readonly forks: SeenFork[] = [];
  readonly starts: SeenStart[] = [];
  readonly calls: RealCall[] = [];
  readonly toolRuns: RealToolRun[] = [];
  readonly served: ServedCompletion[] = [];
  readonly divergences: SeenDivergence[] = [];
  readonly streams: SeenStream[] = [];
  readonly told: Told[] = [];
  readonly replays: SeenReplay[] = [];
  /** What observers found broken when it happened. */
  readonly found: Violation[] = [];
}
