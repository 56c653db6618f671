/**
 * The sink as an author of a harness uses it: what the host can know is filled in.
 *
 * Invariants:
 * - What is filled in depends on the turn and on nothing else, so that a turn that is run again asks for the same.
 * - A park that a call unwound with is remembered, so that a run that swallows it does not pass for completed.
 */

import type { JsonObject } from "@bufbuild/protobuf";
import { HoldfastError } from "../base/errors.ts";
import { ApprovalParkedError } from "../spi/faults.ts";
import type { CallOptions, EventSink, Start } from "../spi/harness.ts";
import type { ModelResponse } from "../spi/model.ts";
import type { Mediation, Message, ToolChoice, ToolResult, ToolSpec, Usage } from "../spi/wire.ts";
import { toolDefinition, toolResult, type ToolOffer, type ToolResultInit } from "./messages.ts";

/** One model call. */
export interface ModelAsk {
  /** The model's id. Default: the session's model. */
  readonly model?: string | undefined;
  /** The whole context that is sent, in order. */
  readonly messages: readonly Message[];
  /** Provider options as strings: `temperature`, `max_tokens` … */
  readonly params?: Readonly<Record<string, string>> | undefined;
  /** The tools offered on this call; their order counts. */
  readonly tools?: readonly ToolOffer[] | undefined;
  readonly toolChoice?: ToolChoice | undefined;
}

/** One call of a tool that the host runs. */
export interface ToolAsk {
  readonly tool: string;
  readonly args?: JsonObject | undefined;
  /** Unique in the session. Default: the execution's id and the number of the call, the same whenever the turn is run again. */
  readonly id?: string | undefined;
  /** Keeps a call that is made again after a crash from acting twice. Default: the id. */
  readonly idempotencyKey?: string | undefined;
  /** Who runs it. Default: what the harness declares for the tool. */
  readonly mediation?: Mediation | undefined;
}

/** What one model call consumed. */
export type UsageInit = Partial<Omit<Usage, "$typeName" | "$unknown">>;

/** A harness's handle for everything that is to happen and be recorded. */
export interface TurnSink {
  /** Calls a model, or serves the recorded completion. The completion is recorded by the host; do not output it again. */
  model(ask: ModelAsk, options?: CallOptions): Promise<ModelResponse>;
  /** Records text that the harness itself produced. */
  output(text: string, options?: CallOptions): Promise<void>;
  /**
   * Asks the host to run a tool and waits for its result. Where the call has to be approved and nobody has decided yet, it throws what
   * unwinds the run: let it pass, and the turn goes on from here once it is decided.
   */
  toolCall(ask: ToolAsk, options?: CallOptions): Promise<ToolResult>;
  /** Records the result of a tool that the harness ran itself. */
  report(result: ToolResultInit | ToolResult, options?: CallOptions): Promise<void>;
  /** Records what a model call consumed: pass the usage that `model` returned. */
  usage(usage: UsageInit | Usage, options?: CallOptions): Promise<void>;
}

/** Fills in what an author leaves out. */
export class AuthorSink implements TurnSink {
  readonly #sink: EventSink;
  readonly #start: Start;
  readonly #tools: readonly ToolSpec[];
  #calls = 0;
  #hasParked = false;

  constructor(sink: EventSink, start: Start, tools: readonly ToolSpec[]) {
    this.#sink = sink;
    this.#start = start;
    this.#tools = tools;
  }

  /** Throws where a call was parked: a run that comes here has swallowed that. */
  refuseSwallowedPark(): void {
    if (!this.#hasParked) return;
    throw new HoldfastError("failed_precondition", "harness: it went on although its call was parked; it must let the park pass");
  }

  model(ask: ModelAsk, options?: CallOptions): Promise<ModelResponse> {
    const { model = this.#start.model, messages, params, tools, toolChoice } = ask;
    return this.#sink.model({ model, messages, params, tools: tools?.map(toolDefinition), toolChoice }, options);
  }

  output(text: string, options?: CallOptions): Promise<void> {
    return this.#sink.output(text, options);
  }

  async toolCall(ask: ToolAsk, options?: CallOptions): Promise<ToolResult> {
    this.#calls += 1;
    const { tool, args, id = `${this.#start.executionId}-${this.#calls}`, idempotencyKey = id } = ask;
    // A call that a model made says 0, which is nothing.
    const mediation = ask.mediation || this.#tools.find(({ name }) => name === tool)?.mediation;
    if (mediation === undefined) throw undeclared(tool);
    const given = args === undefined ? {} : { args };
    try {
      return await this.#sink.toolCall({ $typeName: "agentsessions.v1.ToolCall", id, tool, ...given, mediation, idempotencyKey }, options);
    } catch (error) {
      if (error instanceof ApprovalParkedError) this.#hasParked = true;
      throw error;
    }
  }

  report(result: ToolResultInit | ToolResult, options?: CallOptions): Promise<void> {
    return this.#sink.report("$typeName" in result ? result : toolResult(result), options);
  }

  usage(usage: UsageInit | Usage, options?: CallOptions): Promise<void> {
    const { model = "", inputTokens = 0n, outputTokens = 0n, reasoningTokens = 0n } = usage;
    return this.#sink.usage({ $typeName: "agentsessions.v1.Usage", model, inputTokens, outputTokens, reasoningTokens }, options);
  }
}

/** A model may have made the name up: only what can be a tool's name is repeated. */
function undeclared(tool: string): HoldfastError {
  const named = /^[A-Za-z0-9_.-]{1,64}$/.test(tool) ? `tool "${tool}"` : "tool: it";
  const message = `${named} is not declared by the harness; add it to its tools, or pass mediation`;
  return new HoldfastError("invalid_argument", message, { field: "tool" });
}
