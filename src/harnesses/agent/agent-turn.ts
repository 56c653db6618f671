/** One turn of an agent: its conversation so far, and what can be done next. */

import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "../../base/errors.ts";
import { ToolCallSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import {
  INBOX_TOOL,
  Mediation,
  messageText,
  observationCallId,
  textMessage,
  type EventSink,
  type Message,
  type ModelRequest,
  type Start,
  type ToolChoice,
  type ToolDefinition,
  type ToolResult,
} from "../../spi/index.ts";
import { accountOf, type Baseline } from "../baseline.ts";
import type { CallSlot, Conversation } from "../conversation.ts";
import { recordUsage } from "../usage.ts";
import { formOf } from "./answer.ts";
import { compactionOf } from "./compacted.ts";
import { nextBaseline, type RequestSizes } from "./compaction.ts";
import { isUnanswered, lastWordOf, unseenFrom } from "./context.ts";
import type { Agent } from "./definition.ts";
import { messageTokens, NO_SIZE, textTokens, toolsTokens } from "./estimate.ts";
import type { HistoryFold, HistoryFolds } from "./history-folds.ts";
import { offeredTools, type OfferedTools } from "./offered-tools.ts";
import { checkObserver, OODA_RULES, StaleCalls, unobserved } from "./ooda.ts";
import type { RequestContext } from "./request-context.ts";
import { summaryRequest } from "./summary.ts";
import { firstPhysical, refuseAll, toolResults, type ToolRound } from "./tool-round.ts";

/** So much room is made for an observation, as a share of the one before it. */
const OBSERVATION_SHARE = 1.25;

/** What a turn is driven with. */
export interface TurnDrive {
  /** With the model that is asked. */
  readonly agent: Agent;
  readonly folds: HistoryFolds;
  readonly sink: EventSink;
  readonly signal: AbortSignal;
}

/** How the model is asked. */
export interface Asking {
  readonly toolChoice?: ToolChoice | undefined;
  /** Said to the model after everything else, this time only. */
  readonly reminder?: string | undefined;
}

export class AgentTurn {
  readonly #drive: TurnDrive;
  readonly #round: ToolRound;
  readonly #tools: OfferedTools;
  readonly #hostTools: readonly ToolDefinition[];
  readonly #conversation: Conversation;
  readonly #context: RequestContext;
  /** The first entry of this turn. */
  readonly #inputsFrom: number;
  readonly #stale = new StaleCalls();
  /** Whether anybody waits for an answer. */
  readonly isUnanswered: boolean;
  readonly #fixedTokens: number;
  #answer: Message | undefined;

  private constructor(start: Start, drive: TurnDrive, { conversation, context }: HistoryFold) {
    const { agent, sink, signal } = drive;
    this.#drive = drive;
    this.#conversation = conversation;
    this.#context = context;
    this.#inputsFrom = conversation.entries.length;
    conversation.beginTurn();
    for (const input of start.inputs) conversation.addInput(input);
    this.isUnanswered = isUnanswered(conversation, this.#inputsFrom);
    this.#hostTools = start.tools ?? [];
    this.#tools = offeredTools(this.#hostTools, agent);
    this.#round = { sink, signal, executionId: start.executionId, tools: this.#tools };
    const systemTokens = context.system === undefined ? 0 : messageTokens(context.system);
    this.#fixedTokens = systemTokens + toolsTokens(this.#tools.definitions);
  }

  /** Reads what was said before, and this turn's inputs. */
  static async begin(start: Start, drive: TurnDrive): Promise<AgentTurn> {
    const { agent, folds, signal } = drive;
    return new AgentTurn(start, drive, await folds.read(start, { system: systemOf(agent), signal }));
  }

  /** Asks the model; the calls that it makes. */
  async ask({ toolChoice, reminder }: Asking = {}): Promise<readonly CallSlot[]> {
    const { mode, params } = this.#drive.agent;
    if (mode === "ooda_re_act") await this.#observe();
    if (!this.#hasRoom(0)) await this.#makeRoom(0);
    const { definitions } = this.#tools;
    this.#context.update(this.#conversation);
    const messages = [...this.#context.messages];
    if (reminder !== undefined) messages.push(textMessage("user", reminder));
    const offer = definitions.length === 0 ? {} : { tools: definitions, ...(toolChoice === undefined ? {} : { toolChoice }) };
    this.#answer = await this.#model({ messages, params, ...offer });
    return this.#conversation.addOutput(this.#answer);
  }

  /** What the model said last; "" where it said nothing yet. */
  get answer(): string {
    return this.#answer === undefined ? "" : messageText(this.#answer);
  }

  /** Has calls made and keeps their results. Ends the turn where physical ones come too late again and again. */
  async runTools(calls: readonly CallSlot[]): Promise<void> {
    for (const result of await toolResults(calls, this.#round)) this.#conversation.addResult(result);
    const acted = firstPhysical(calls, this.#tools)?.result;
    if (acted !== undefined) this.#stale.take(acted);
  }

  /** Asks for what has come for the turn meanwhile. Whether anything has. */
  async takeMessages(): Promise<boolean> {
    return this.#conversation.addResult(await this.#callFor({ id: this.#conversation.nameInboxCall(), tool: INBOX_TOOL }));
  }

  /** Reports that none of the calls was made. */
  refuse(calls: readonly CallSlot[], why: string): Promise<void> {
    return refuseAll(calls, why, this.#round);
  }

  /**
   * Puts before the model how things stand. Ends the turn where nobody can say. A summary takes its time, so room for what will be observed is
   * made before that.
   */
  async #observe(): Promise<void> {
    const tool = this.#drive.agent.observationTool;
    checkObserver(tool, this.#hostTools);
    const last = this.#conversation.entries.findLast(({ isObservation }) => isObservation);
    const tokens = last === undefined ? 0 : Math.ceil(messageTokens(last.message) * OBSERVATION_SHARE);
    if (!this.#hasRoom(tokens)) await this.#makeRoom(tokens);
    const id = this.#conversation.nameObservationCall(observationCallId(this.#round.executionId));
    const result = await this.#callFor({ id, tool, args: {} });
    if (!this.#conversation.addResult(result)) throw unobserved(tool, result);
  }

  /** The result of a call that the agent makes for itself, whatever its model may call. */
  #callFor(asked: { readonly id: string; readonly tool: string; readonly args?: Record<string, never> }): Promise<ToolResult> {
    const { sink, signal, executionId } = this.#round;
    const call = { ...asked, mediation: Mediation.CONTROLLER_MEDIATED, idempotencyKey: `${executionId}/${asked.id}` };
    return sink.toolCall(create(ToolCallSchema, call), { signal, unfit: "answer" });
  }

  /** Whether the next request is within its limit with `reservedTokens` more. */
  #hasRoom(reservedTokens: number): boolean {
    this.#context.update(this.#conversation);
    const tokens = this.#fixedTokens + reservedTokens + textTokens(this.#conversation.summary) + this.#context.tokens;
    return tokens <= this.#drive.agent.contextTokensMax;
  }

  /** Goes on from a new baseline, where there is one that leaves room for `reservedTokens` more. */
  async #makeRoom(reservedTokens: number): Promise<void> {
    const limit = this.#drive.agent.contextTokensMax;
    const { baseline: current } = this.#conversation;
    const next = nextBaseline(this.#sizesNow(reservedTokens), current, limit);
    if (next === undefined) return;
    await this.#record(next, current);
    const request = next.summary > current.summary ? summaryRequest(this.#conversation, next.summary, limit) : undefined;
    this.#conversation.addBaseline(next);
    if (request !== undefined) this.#conversation.addOutput(await this.#model({ messages: request }));
  }

  async #record(next: Baseline, current: Baseline): Promise<void> {
    const { sink, signal } = this.#drive;
    if (sink.baseline === undefined) throw new HoldfastError("unimplemented", "agent: it runs only where the host records its baselines");
    await sink.baseline(accountOf(next), { signal, compaction: compactionOf(this.#conversation, this.#sizesNow(0), { next, current }) });
  }

  async #model(request: Omit<ModelRequest, "model">): Promise<Message> {
    const { agent, sink, signal } = this.#drive;
    const response = await sink.model({ model: agent.model, ...request }, { signal });
    await recordUsage(sink, response, signal);
    return response.message;
  }

  #sizesNow(reservedTokens: number): RequestSizes {
    const { entries, summary, baseline } = this.#conversation;
    const sizedFrom = Math.min(baseline.summary, baseline.system);
    // Agents without a mode are sent what they were sent before there were any.
    const hasMode = this.#drive.agent.mode !== undefined;
    return {
      fixed: this.#fixedTokens + reservedTokens,
      summary: textTokens(summary),
      entries: this.#context.sizes.map((size, index) => (index < sizedFrom ? NO_SIZE : size)),
      lastWord: lastWordOf(entries),
      unseen: hasMode ? unseenFrom(entries) : entries.length - 1,
      system: hasMode ? this.#inputsFrom : entries.length,
    };
  }
}

/** What stands before everything else: the agent's instructions, and what its mode and its answers ask for. */
function systemOf({ systemPrompt, mode, answer }: Agent): string {
  const rules = mode === "ooda_re_act" ? OODA_RULES : "";
  const form = answer === undefined ? "" : formOf(answer);
  return [systemPrompt, rules, form].filter((text) => text !== "").join("\n\n");
}
