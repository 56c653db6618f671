/** The host's side of the probe harness's plays: a start, a sink that keeps what it is asked, and how a run came out. */

import { create } from "@bufbuild/protobuf";
import { executionIdOf, HoldfastError, invalidArgument, sessionUidOf, type Seq } from "../../base/index.ts";
import { ApprovalRefSchema, EventSchema, IdentityRefSchema, ToolResultSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import {
  ApprovalParkedError,
  EventKind,
  HarnessFailure,
  isParkUnwind,
  messageText,
  textMessage,
  type Event,
  type EventSink,
  type Harness,
  type History,
  type Start,
} from "../../spi/index.ts";
import { textResponse } from "../host.ts";

/** A history of `count` inputs, in pages of `pageEvents`. */
export function inputHistory(count: number, pageEvents = 7, textLength = 0): History {
  return {
    lastSeq: count as Seq,
    async *read({ fromSeq = 1, toSeq = count } = {}) {
      const last = Math.min(toSeq, count);
      for (let first = Math.max(fromSeq, 1); first <= last; first += pageEvents) {
        const length = Math.min(pageEvents, last - first + 1);
        yield { firstSeq: first as Seq, events: Array.from({ length }, (_, index) => inputEvent(first + index, textLength)) };
      }
    },
  };
}

function inputEvent(seq: number, textLength: number): Event {
  const message = textMessage("user", `event ${seq} ${"x".repeat(textLength)}`.trimEnd());
  const body = { case: "message", value: message } as const;
  return create(EventSchema, { executionId: "earlier", schemaVersion: 1, kind: EventKind.EVENT_INPUT, body });
}

/** The start of a turn that plays `play`. */
export function probeStart(play: string, init: Partial<Start> = {}): Start {
  return {
    executionId: executionIdOf("turn-1"),
    sessionUid: sessionUidOf("session-1"),
    config: new TextEncoder().encode(play),
    history: inputHistory(40),
    inputs: [textMessage("user", "hello"), textMessage("user", "there")],
    identity: { principal: create(IdentityRefSchema, { principal: "ada" }), mintToken: mint },
    resumeFromSeq: -7n,
    model: "test",
    ...init,
  };
}

async function mint(audience: readonly string[]): Promise<string> {
  if (audience.includes("secrets")) throw new HoldfastError("permission_denied", "audience: secrets is not allowed");
  return `token for ${audience.join(" and ")}`;
}

/** A sink that answers the plays and keeps what it was asked, in the order asked. */
export class ProbeSink implements EventSink {
  readonly asked: string[] = [];
  readonly #ran = new Set<string>();

  async model(request: Parameters<EventSink["model"]>[0]): ReturnType<EventSink["model"]> {
    this.asked.push(`model ${request.model} ${request.messages.map(messageText).join(",")} ${JSON.stringify(request.params ?? {})}`);
    if (request.model === "none") throw new HoldfastError("unavailable", "model: nobody serves it now");
    return textResponse("hi");
  }

  async output(text: string): Promise<void> {
    if (!text.isWellFormed()) throw invalidArgument("output", "must have no lone surrogates");
    this.asked.push(`output ${text}`);
    await Promise.resolve();
    if (text === "refuse me") throw new HoldfastError("resource_exhausted", "output: there is no room");
  }

  async toolCall(call: Parameters<EventSink["toolCall"]>[0]): ReturnType<EventSink["toolCall"]> {
    this.asked.push(`tool ${call.tool} ${call.id} ${call.idempotencyKey} ${call.mediation} ${JSON.stringify(call.args)}`);
    if (call.id === "park") throw new ApprovalParkedError(PARK);
    if (call.id === "refuse") throw new HoldfastError("failed_precondition", "tool: it is not run here");
    this.#ran.add(call.id);
    // The first of several takes longest: results come in another order than the calls.
    for (let turn = call.id === "a" ? 20 : 1; turn > 0; turn--) await Promise.resolve();
    return create(ToolResultSchema, { id: call.id, output: { answer: call.id } });
  }

  async report(result: Parameters<EventSink["report"]>[0]): Promise<void> {
    if (result.approvalRequestSeq !== 0n) {
      throw invalidArgument("result", "must leave approval_request_seq and approval_decision_seq to the host");
    }
    if (this.#ran.has(result.id)) throw invalidArgument("result.id", "must not be that of a call which the host runs");
    this.asked.push(`report ${result.id} ${result.isError} ${result.error} ${JSON.stringify(result.output)}`);
  }

  async usage(usage: Parameters<EventSink["usage"]>[0]): Promise<void> {
    this.asked.push(`usage ${usage.model} ${usage.inputTokens} ${usage.outputTokens} ${usage.reasoningTokens}`);
  }
}

/** The request that the play's call waits for. */
export const PARK = create(ApprovalRefSchema, { executionId: "turn-1", toolCallId: "park", requestSeq: 12n });

/** What a run asked for and how it came out, as words. */
export interface Played {
  readonly asked: readonly string[];
  readonly outcome: string;
}

/** Plays once. */
export async function playOnce(harness: Harness, start: Start, signal: AbortSignal): Promise<Played> {
  const sink = new ProbeSink();
  const outcome = await harness.run(start, sink, { signal }).then(() => "completed", outcomeOf);
  return { asked: sink.asked, outcome };
}

/** What a run rejected with, as a controller tells apart. */
export function outcomeOf(error: unknown): string {
  if (isParkUnwind(error, PARK)) return "parked";
  if (error instanceof HarnessFailure) return `failed ${error.grpcCode} ${error.message}`;
  return error instanceof HoldfastError ? `threw ${error.code} ${error.message}` : "threw";
}
