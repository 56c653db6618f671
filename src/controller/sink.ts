/**
 * The live sink: how a harness's effects happen and are recorded.
 *
 * Invariants:
 * - An intent is durable before its effect starts (I7). A result is durable before the harness gets it, unless the harness can
 *   act through the host only; then it may be served while its commit is under way, because whatever follows commits after it.
 * - Effects are serialised in the order asked: OUTPUT carries no call id, so nothing may come between a MODEL_CALL and its OUTPUT.
 * - What the harness gets is what was recorded, as a copy: changing it later changes no record.
 */

import { clone, create, toBinary } from "@bufbuild/protobuf";
import { HoldfastError, invalidArgument, toHoldfastError } from "../base/errors.ts";
import type { ExecutionId } from "../base/ids.ts";
import type { Ports } from "../base/ports.ts";
import { inputHash, wellFormedMessage } from "../canon/index.ts";
import { MessageSchema, ToolResultSchema, UsageSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { DeltaSchema } from "../gen/agentsessions/v1/session_pb.ts";
import { ModelFactsSchema } from "../gen/holdfast/v1/model_facts_pb.ts";
import type { NewEvent } from "../journal/index.ts";
import type {
  CallOptions,
  EventSink,
  IdentityRef,
  ModelCatalog,
  ModelFacts,
  ModelRequest,
  ModelResponse,
  ToolCall,
  ToolResult,
  Usage,
} from "../spi/index.ts";
import type { DeltaHub } from "./deltas.ts";
import { errorEvent, modelCallEvent, outputEvent, textOutputEvent, toolResultEvent, usageEvent, type EventStamp } from "./events.ts";
import type { Gate } from "./gate.ts";
import { Lane } from "./lane.ts";
import type { TurnJournal } from "./turn-journal.ts";

/** What a sink needs of its turn. */
export interface SinkContext {
  readonly executionId: ExecutionId;
  readonly journal: TurnJournal;
  readonly gate: Gate;
  readonly models: ModelCatalog;
  readonly deltas: DeltaHub;
  readonly ports: Ports;
  /** The session's principal: the actor of every effect. */
  readonly principal: IdentityRef | undefined;
  /** Results may be served while their commit is under way: the harness acts through the host only. */
  readonly earlyServing: boolean;
  /** Throws when the turn has no room for `count` more records. */
  readonly admit: (count: number) => void;
}

/** Performs and records the effects of one live turn. */
export class LiveSink implements EventSink {
  readonly #context: SinkContext;
  readonly #stamp: EventStamp;
  readonly #lane = new Lane();
  #recordedFault: HoldfastError | undefined;

  constructor(context: SinkContext) {
    this.#context = context;
    this.#stamp = { executionId: context.executionId, clock: context.ports.clock };
  }

  /** The last fault that this sink recorded as ERROR, so that it is not recorded again when the harness lets it pass. */
  get recordedFault(): HoldfastError | undefined {
    return this.#recordedFault;
  }

  model(request: ModelRequest, options: CallOptions = {}): Promise<ModelResponse> {
    return this.#lane.run(() => this.#model(request, options));
  }

  output(text: string, options: CallOptions = {}): Promise<void> {
    return this.#lane.run(async () => {
      this.#enter(options, 1);
      if (!text.isWellFormed()) throw invalidArgument("output", "must have no lone surrogates");
      await this.#context.journal.issue([textOutputEvent(this.#stamp, text, this.#context.principal)]);
    });
  }

  toolCall(call: ToolCall, options: CallOptions = {}): Promise<ToolResult> {
    return this.#lane.run(async () => {
      this.#enter(options, 0);
      throw new HoldfastError("failed_precondition", `tool: ${refusedTool(call)}`);
    });
  }

  report(result: ToolResult, options: CallOptions = {}): Promise<void> {
    return this.#lane.run(async () => {
      this.#enter(options, 1);
      if (result.id === "") throw invalidArgument("result.id", "must be the id of the call that it answers");
      if (result.approvalRequestSeq !== 0n || result.approvalDecisionSeq !== 0n) {
        throw invalidArgument("result", "must leave approval_request_seq and approval_decision_seq to the host");
      }
      await this.#context.journal.issue([toolResultEvent(this.#stamp, clone(ToolResultSchema, result), this.#context.principal)]);
    });
  }

  usage(usage: Usage, options: CallOptions = {}): Promise<void> {
    return this.#lane.run(async () => {
      this.#enter(options, 1);
      await this.#context.journal.issue([usageEvent(this.#stamp, clone(UsageSchema, usage), this.#context.principal)]);
    });
  }

  #enter(options: CallOptions, records: number): void {
    this.#context.gate.pass();
    options.signal?.throwIfAborted();
    this.#context.admit(records);
  }

  async #model(request: ModelRequest, options: CallOptions): Promise<ModelResponse> {
    const { journal, ports, principal } = this.#context;
    this.#enter(options, 2);
    if (request.model === "") throw invalidArgument("model", "must name a model");
    const call = { request, inputHash: inputHash(request, ports.digest), id: this.#newCallId() };
    await journal.commit([modelCallEvent(this.#stamp, call, principal)]);
    this.#context.gate.pass();
    const { response, facts } = await this.#complete(request, options);
    const message = wellFormedMessage(response.message);
    const output: NewEvent = { ...outputEvent(this.#stamp, message, principal), aside: encodedFacts(facts) };
    await this.#record(output);
    const { body } = output.event;
    const recorded = body.case === "message" ? body.value : message;
    return { message: clone(MessageSchema, recorded), usage: response.usage };
  }

  async #record(event: NewEvent): Promise<void> {
    this.#context.gate.pass();
    if (this.#context.earlyServing) await this.#context.journal.issue([event]);
    else await this.#context.journal.commit([event]);
  }

  /** Runs the provider. A call that failed for good is recorded as ERROR before the harness learns of it. */
  async #complete(request: ModelRequest, options: CallOptions): Promise<{ response: ModelResponse; facts: ModelFacts }> {
    const { gate } = this.#context;
    const signal = options.signal === undefined ? gate.signal : AbortSignal.any([gate.signal, options.signal]);
    try {
      return await this.#stream(request, signal);
    } catch (error) {
      gate.pass();
      const fault =
        options.signal?.aborted === true
          ? new HoldfastError("cancelled", "model: the harness cancelled the call", { cause: error })
          : toHoldfastError(error);
      await this.#context.journal.commit([errorEvent(this.#stamp, fault.facts.grpc, fault.message, this.#context.principal)]);
      this.#recordedFault = fault;
      throw fault;
    }
  }

  async #stream(request: ModelRequest, signal: AbortSignal): Promise<{ response: ModelResponse; facts: ModelFacts }> {
    const provider = this.#context.models.providerOf(request.model);
    if (provider === undefined) {
      throw new HoldfastError("failed_precondition", "model: no provider of this host serves it; name a model that one does");
    }
    for await (const chunk of provider.complete(request, { signal })) {
      signal.throwIfAborted();
      if (chunk.kind === "completed") {
        this.#publish(0, "", true);
        return { response: chunk.response, facts: chunk.facts };
      }
      if (chunk.kind === "text") this.#publish(chunk.partIndex, chunk.text, false);
    }
    throw new HoldfastError("unavailable", "model: the provider's stream ended before its completion was whole");
  }

  #publish(partIndex: number, chunk: string, done: boolean): void {
    const { deltas, journal, executionId } = this.#context;
    if (!deltas.watched(journal.session)) return;
    deltas.publish(journal.session, create(DeltaSchema, { executionId, partIndex, chunk: chunk.toWellFormed(), done }));
  }

  #newCallId(): string {
    let id = "";
    for (const byte of this.#context.ports.random.bytes(8)) id += byte.toString(16).padStart(2, "0");
    return id;
  }
}

function refusedTool(call: ToolCall): string {
  return call.id === "" || call.idempotencyKey === ""
    ? "a mediated call needs an id and an idempotency key"
    : "this host has no tool executor, so it runs no mediated tools";
}

function encodedFacts(facts: ModelFacts): Uint8Array {
  const message = create(ModelFactsSchema, { stopReason: facts.stopReason ?? "", attempts: facts.attempts ?? 0 });
  if (facts.cachedInputTokens !== undefined) message.cachedInputTokens = BigInt(facts.cachedInputTokens);
  if (facts.cacheWriteTokens !== undefined) message.cacheWriteTokens = BigInt(facts.cacheWriteTokens);
  if (facts.latencyMs !== undefined) message.latencyMs = BigInt(Math.max(0, Math.round(facts.latencyMs)));
  return toBinary(ModelFactsSchema, message);
}
