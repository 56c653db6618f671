/**
 * What the records of a session say to its client, and what of a completion in progress. Pure: items in, responses out.
 *
 * Invariants:
 * - Every response of a turn comes before its TurnComplete, and a turn that is over has one.
 * - The cursor of a response says which records its reader has seen all of. Who goes on from any cursor is told the same from there.
 * - What stands up to the cursor that it begins with is read and not told.
 */

import { create } from "@bufbuild/protobuf";
import type { Seq } from "../../base/ids.ts";
import type { PartialCompletion } from "../../controller/index.ts";
import type { CompactionFacts, ModelFacts } from "../../gen/holdfast/v1/beside_pb.ts";
import { ContextCompactedSchema, TextDeltaSchema, ThinkingDeltaSchema, TurnCompleteSchema } from "../../gen/roz/v1/agent_pb.ts";
import { EventKind, messageText, type Event, type HarnessEnd, type Message } from "../../spi/index.ts";
import { codeOfGrpcStatus } from "../../base/errors.ts";
import { agentError, modelError, sessionError, type Said } from "./session-error.ts";
import { stopReasonOf, type StopReason } from "./stop-reason.ts";
import { slicesOf } from "./text-slices.ts";
import type { FreshText } from "./told-completion.ts";
import { uint32 } from "./turn-usage.ts";
import { TurnView } from "./turn-view.ts";

/** A record as a transcript takes it, with what is kept beside it. */
export interface TranscriptRecord {
  readonly seq: Seq;
  readonly event: Event;
  readonly modelFacts?: ModelFacts | undefined;
  readonly compactionFacts?: CompactionFacts | undefined;
}

/** A response, and the cursor that goes with it. */
export interface Told {
  /** Undefined where there is nothing to say but the cursor. */
  readonly said: Said | undefined;
  readonly seq: Seq;
}

export interface TranscriptOptions {
  /** The cursor to begin with. */
  readonly after: Seq;
  /** Characters of one delta. */
  readonly deltaCharsMax: number;
  /** The message that a turn answers whose config cannot say it. */
  readonly messageIdOf?: ((startSeq: Seq) => string | undefined) | undefined;
}

export class Transcript {
  readonly #options: TranscriptOptions;
  #seq: Seq;
  #turn: TurnView | undefined;

  constructor(options: TranscriptOptions) {
    this.#options = options;
    this.#seq = options.after;
  }

  /** The cursor: up to which record everything was told. */
  get seq(): Seq {
    return this.#seq;
  }

  /** The turn that is not over. */
  get turn(): TurnView | undefined {
    return this.#turn;
  }

  /** Takes the next record. */
  record(record: TranscriptRecord): Told[] {
    const said = this.#saidOf(record);
    if (record.seq <= this.#options.after) return [];
    // What an error comes to is told once it is known that the turn does not go on.
    return this.#turn?.fault === undefined ? this.#tell(said, record.seq) : [];
  }

  /** Passes over a record that says nothing. */
  pass(seq: Seq): void {
    if (seq > this.#seq) this.#seq = seq;
  }

  /** Takes a completion as far as it has come, a delta at a time: none when all of it was told. */
  partial({ executionId, pieces }: PartialCompletion): Told[] {
    const turn = this.#turn;
    if (turn === undefined || turn.isHidden || turn.summarising !== undefined || turn.executionId !== executionId) return [];
    return this.#deltas(turn, turn.told.partial(pieces, this.#options.deltaCharsMax)).map((said) => ({ said, seq: this.#seq }));
  }

  /**
   * The open turn does not go on from `seq`, its last record: its client is told why, and that it is over. Without a reason it is the error that
   * the turn ended with, which who has seen that record was told before.
   */
  conclude(seq: Seq, why?: Said): Told[] {
    const turn = this.#turn;
    if (turn === undefined) return [];
    this.#turn = undefined;
    if (turn.isHidden || (why === undefined && seq <= this.#options.after)) return [];
    const { of, code } = turn.fault ?? { of: "agent", code: "internal" };
    const error = why ?? (of === "model" ? modelError(code) : agentError(code));
    return this.#tell([error, completeOf(turn, "error")], seq);
  }

  /** The open turn is nobody's any more: it counts as over, and nothing is said of it. */
  leave(): void {
    this.#turn = undefined;
  }

  /** Only with the last response of a record all of it was told. */
  #tell(said: readonly Said[], seq: Seq): Told[] {
    const before = this.#seq;
    this.pass(seq);
    return said.map((each, index) => ({ said: each, seq: index === said.length - 1 ? this.#seq : before }));
  }

  #saidOf(record: TranscriptRecord): Said[] {
    const { seq, event } = record;
    const { body } = event;
    const turn = this.#turn;
    if (body.case === "executionStart") return this.#begin(seq, event);
    if (turn === undefined) return [];
    // Whatever follows an error says that the turn went on.
    turn.fault = undefined;
    switch (body.case) {
      case "message":
        return event.kind === EventKind.EVENT_OUTPUT ? this.#output(turn, body.value, record.modelFacts) : [];
      case "model":
        turn.asked();
        return [];
      case "usage":
        turn.usage.reported(body.value);
        return [];
      case "tool":
        turn.called(body.value);
        return [];
      case "result":
        turn.resulted(body.value);
        return [];
      case "approval":
        turn.asksFor(body.value.toolCallId, seq);
        return [];
      case "approvalResult":
        turn.decided(body.value.toolCallId, body.value.approved);
        return [];
      case "lifecycle":
        return record.compactionFacts === undefined ? [] : this.#compaction(turn, record.compactionFacts);
      case "error":
        turn.failed(body.value);
        return [];
      case "end":
        this.#turn = undefined;
        return turn.isHidden ? [] : endOf(turn, body.value);
      case "parked":
      case undefined:
        return [];
    }
  }

  /** A turn begins. One that was open is abandoned. */
  #begin(seq: Seq, { executionId, body }: Event): Said[] {
    const abandoned = this.#turn;
    if (body.case !== "executionStart") return [];
    this.#turn = new TurnView({ executionId, startSeq: seq }, body.value, this.#options.messageIdOf?.(seq));
    return abandoned === undefined || abandoned.isHidden ? [] : [completeOf(abandoned, "interrupted")];
  }

  #output(turn: TurnView, message: Message, facts: ModelFacts | undefined): Said[] {
    const { summarising, isAsking } = turn;
    if (!isAsking) return turn.isHidden ? [] : this.#deltas(turn, [{ kind: "text", text: messageText(message) }]);
    turn.completed(facts);
    if (turn.isHidden) return [];
    if (summarising === undefined) return this.#deltas(turn, turn.told.whole(message));
    turn.summarising = undefined;
    const tokensAfter = summarising.tokensAfter + (facts?.outputTokens ?? 0n);
    return [compactedOf({ ...summarising, tokensAfter }, messageText(message))];
  }

  #compaction(turn: TurnView, facts: CompactionFacts): Said[] {
    if (facts.level !== SUMMARY) return turn.isHidden ? [] : [compactedOf(facts, undefined)];
    turn.summarising = facts;
    return [];
  }

  #deltas({ messageId }: TurnView, fresh: readonly FreshText[]): Said[] {
    return fresh.flatMap(({ kind, text }) =>
      Array.from(slicesOf(text, this.#options.deltaCharsMax), (content) =>
        kind === "text"
          ? { case: "textDelta", value: create(TextDeltaSchema, { messageId, content }) }
          : { case: "thinkingDelta", value: create(ThinkingDeltaSchema, { messageId, content }) },
      ),
    );
  }
}

/** The level of a compaction that is told once its summary is there. */
const SUMMARY = "summary";

function compactedOf(facts: CompactionFacts, summary: string | undefined): Said {
  const { level, messagesBefore, messagesAfter, tokensBefore, tokensAfter } = facts;
  const value = create(ContextCompactedSchema, {
    level,
    messagesBefore: uint32(Number(messagesBefore)),
    messagesAfter: uint32(Number(messagesAfter)),
    tokensBefore: uint32(Number(tokensBefore)),
    tokensAfter: uint32(Number(tokensAfter)),
    ...(summary === undefined ? {} : { summary }),
  });
  return { case: "contextCompacted", value };
}

function completeOf({ messageId, usage }: TurnView, stopReason: StopReason): Said {
  return { case: "turnComplete", value: create(TurnCompleteSchema, { messageId, usage: usage.sums, stopReason }) };
}

function endOf(turn: TurnView, { state, error }: HarnessEnd): Said[] {
  switch (state) {
    case "COMPLETED":
      return [completeOf(turn, stopReasonOf(turn.stopWord))];
    case "CANCELED":
      return [completeOf(turn, "cancelled")];
    default: {
      if (error?.description.startsWith(STEPS_FAULT) === true) return [STEPS_REACHED, completeOf(turn, "max_steps")];
      return [agentError(codeOfGrpcStatus(error?.code ?? 0) ?? "internal"), completeOf(turn, "error")];
    }
  }
}

/** How the built-in agent's error begins that has asked its model as often as it may. */
const STEPS_FAULT = "max_steps:";
const STEPS_REACHED = sessionError(
  "agent_error",
  "agent: the turn was not done after as many calls of the model as it may make; a further message goes on from here",
);
