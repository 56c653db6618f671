/**
 * The sink of a harness whose host is at the other end of a line.
 *
 * Outputs, reports and usages resolve when the line has taken them. What the host could only refuse is refused here, so that the author
 * hears of it where it happens; a refusal that comes later is thrown by the next call, and the run cannot complete.
 */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { HoldfastError, invalidArgument } from "../base/errors.ts";
import { EventKind, type EventSchema } from "../gen/agentsessions/v1/common_pb.ts";
import type { CallOptions, EventSink } from "../spi/harness.ts";
import type { ModelRequest, ModelResponse } from "../spi/model.ts";
import type { ToolCall, ToolResult, Usage } from "../spi/wire.ts";
import type { CallTable } from "./call-table.ts";
import type { HarnessFrameBody } from "./harness-end.ts";

type EventBody = NonNullable<MessageInitShape<typeof EventSchema>["body"]>;

/** What a sink sends with. */
export interface WireSinkContext {
  readonly executionId: string;
  readonly calls: CallTable;
  readonly send: (body: HarnessFrameBody) => Promise<void>;
  /** Fires when the turn is cancelled or not waited for any longer. */
  readonly signal: AbortSignal;
}

/** Sends effects to the host. */
export class WireSink implements EventSink {
  readonly #context: WireSinkContext;
  /** The ids of calls that the host runs, or has run. */
  readonly #hostCalls = new Set<string>();

  constructor(context: WireSinkContext) {
    this.#context = context;
  }

  async model(request: ModelRequest, options: CallOptions = {}): Promise<ModelResponse> {
    const { calls } = this.#context;
    calls.enter(options);
    const id = calls.newModelCallId();
    const { model, messages, params = {}, tools = [], toolChoice } = request;
    const value = { id, model, messages: [...messages], params: { ...params }, tools: [...tools], toolChoice };
    return calls.model(id, () => this.event({ case: "model", value }, EventKind.EVENT_MODEL_CALL), this.#options(options));
  }

  async output(text: string, options: CallOptions = {}): Promise<void> {
    this.#context.calls.enter(options);
    if (!text.isWellFormed()) throw invalidArgument("output", "must have no lone surrogates");
    const message = { role: "assistant", parts: [{ part: { case: "text", value: { text } } } as const] };
    await this.#record({ case: "message", value: message }, EventKind.EVENT_OUTPUT);
  }

  async toolCall(call: ToolCall, options: CallOptions = {}): Promise<ToolResult> {
    const { calls } = this.#context;
    calls.enter(options);
    const result = calls.tool(call.id, () => this.event({ case: "tool", value: call }, EventKind.EVENT_TOOL_CALL), this.#options(options));
    if (this.#hostCalls.has(call.id)) return result;
    this.#hostCalls.add(call.id);
    return result.catch((error: unknown) => {
      // What the host has refused it does not run: its result is the harness's to report.
      if (error instanceof HoldfastError) this.#hostCalls.delete(call.id);
      throw error;
    });
  }

  async report(result: ToolResult, options: CallOptions = {}): Promise<void> {
    this.#context.calls.enter(options);
    if (result.id === "") throw invalidArgument("result.id", "must be the id of the call that it answers");
    if (isSet(result.approvalRequestSeq) || isSet(result.approvalDecisionSeq)) {
      throw invalidArgument("result", "must leave approval_request_seq and approval_decision_seq to the host");
    }
    if (this.#hostCalls.has(result.id)) throw invalidArgument("result.id", "must not be that of a call which the host runs");
    await this.#record({ case: "result", value: result }, EventKind.EVENT_TOOL_RESULT);
  }

  async usage(usage: Usage, options: CallOptions = {}): Promise<void> {
    this.#context.calls.enter(options);
    await this.#record({ case: "usage", value: usage }, EventKind.EVENT_USAGE);
  }

  /** Asks for a token of the session's principal. */
  async mintToken(audience: readonly string[], options: CallOptions = {}): Promise<string> {
    const { calls, send } = this.#context;
    calls.enter(options);
    const asked = (request: number): Promise<void> => send({ case: "mintToken", value: { request, audience: [...audience] } });
    return calls.token(asked, this.#options(options));
  }

  /** Sends an event of this execution. */
  event(body: EventBody, kind: EventKind): Promise<void> {
    const { executionId, send } = this.#context;
    return send({ case: "event", value: { executionId, schemaVersion: 1, kind, body } });
  }

  #record(body: EventBody, kind: EventKind): Promise<void> {
    return this.#context.calls.record(() => this.event(body, kind));
  }

  /** The turn's own signal settles every call by itself. */
  #options(options: CallOptions): CallOptions {
    return options.signal === this.#context.signal ? {} : options;
  }
}

/** An author's plain object may leave a field out. */
function isSet(seq: bigint | undefined): boolean {
  return seq !== undefined && seq !== 0n;
}
