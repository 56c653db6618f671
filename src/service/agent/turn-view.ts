/**
 * A turn as its client is to see it, folded from its records. Pure.
 *
 * Invariant: it follows from the records alone, so a stream that comes late sees what one saw that was there all the time.
 */

import { codeOfGrpcStatus, type ErrorCode } from "../../base/errors.ts";
import type { Seq } from "../../base/ids.ts";
import type { CompactionFacts, ModelFacts } from "../../gen/holdfast/v1/beside_pb.ts";
import { INBOX_TOOL, Mediation, type Event, type ExecutionStart, type ToolCall, type ToolResult } from "../../spi/index.ts";
import { isAnswered } from "./client-result.ts";
import { ToldCompletion } from "./told-completion.ts";
import { categoryIn, turnFactsOf, type TurnFacts } from "./turn-facts.ts";
import { TurnUsage } from "./turn-usage.ts";

/** The harness whose turns bring a conversation: nobody waits for their end. */
export const HISTORY_HARNESS = "history";

/** A tool call of a turn. */
export interface CallView {
  readonly id: string;
  readonly tool: string;
  readonly category: "physical" | "pure";
  /** Whether a person has to be asked. */
  readonly isGated: boolean;
  /** Set once the person was asked. */
  readonly requestSeq?: Seq | undefined;
  readonly approved?: boolean | undefined;
  /** Set once it has its result: who gave it. */
  readonly resultOf?: "client" | "host" | undefined;
}

/** Why the last record of a turn is an ERROR. */
export interface TurnFault {
  readonly of: "model" | "agent";
  readonly code: ErrorCode;
}

export class TurnView {
  readonly executionId: string;
  readonly startSeq: Seq;
  readonly messageId: string;
  readonly facts: TurnFacts;
  readonly isHidden: boolean;
  readonly usage = new TurnUsage();
  readonly #calls = new Map<string, CallView>();
  /** What was told of the completion that is being made. */
  told = new ToldCompletion();
  /** A model was asked and has not answered. */
  isAsking = false;
  /** A compaction whose summary is being made. */
  summarising: CompactionFacts | undefined;
  fault: TurnFault | undefined;
  #stopWord = "";

  constructor(place: { readonly executionId: string; readonly startSeq: Seq }, start: ExecutionStart, messageId: string | undefined) {
    this.executionId = place.executionId;
    this.startSeq = place.startSeq;
    this.facts = turnFactsOf(start.config);
    this.messageId = this.facts.messageId || messageId || place.executionId;
    this.isHidden = start.harness === HISTORY_HARNESS;
  }

  /** Why the last completion ended, in its provider's word. */
  get stopWord(): string {
    return this.#stopWord;
  }

  /** The calls, in the order in which they were made. */
  get calls(): IterableIterator<CallView> {
    return this.#calls.values();
  }

  call(id: string): CallView | undefined {
    return this.#calls.get(id);
  }

  /** The oldest question that nobody has answered. */
  get question(): CallView | undefined {
    for (const call of this.#calls.values()) if (isAsked(call)) return call;
    return undefined;
  }

  /** The calls that run now, those that wait for an answer apart. */
  get running(): readonly CallView[] {
    return [...this.#calls.values()].filter((call) => call.resultOf === undefined && (!call.isGated || call.approved === true));
  }

  /** Whether every question has its answer, and some call waits to go on. */
  get isDecided(): boolean {
    const open = [...this.#calls.values()].filter(
      ({ isGated, resultOf, requestSeq }) => isGated && resultOf === undefined && requestSeq !== undefined,
    );
    return open.length > 0 && open.every(({ approved }) => approved !== undefined);
  }

  /** A model was asked. */
  asked(): void {
    this.isAsking = true;
    this.told = new ToldCompletion();
    this.usage.asked();
  }

  /** A model answered. */
  completed(facts: ModelFacts | undefined): void {
    this.isAsking = false;
    this.usage.completed(facts);
    if (facts !== undefined) this.#stopWord = facts.stopReason;
  }

  called({ id, tool, mediation }: ToolCall): void {
    if (tool === INBOX_TOOL) return;
    this.#calls.set(id, { id, tool, category: categoryIn(this.facts, tool), isGated: mediation === Mediation.REQUIRES_APPROVAL });
  }

  asksFor(id: string, requestSeq: Seq): void {
    this.#change(id, { requestSeq });
  }

  decided(id: string, approved: boolean): void {
    this.#change(id, { approved });
  }

  resulted(result: ToolResult): void {
    this.#change(result.id, { resultOf: isAnswered(result) ? "client" : "host" });
  }

  failed(event: Extract<Event["body"], { readonly case: "error" }>["value"]): void {
    this.fault = { of: this.isAsking ? "model" : "agent", code: codeOfGrpcStatus(event.code) ?? "internal" };
    this.isAsking = false;
  }

  #change(id: string, change: Partial<CallView>): void {
    const call = this.#calls.get(id);
    if (call !== undefined) this.#calls.set(id, { ...call, ...change });
  }
}

function isAsked({ requestSeq, approved, resultOf }: CallView): boolean {
  return requestSeq !== undefined && approved === undefined && resultOf === undefined;
}
