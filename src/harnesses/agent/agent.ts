/**
 * The agent harness: a model, its tools, and the loop between them.
 *
 * - A turn asks the model with the whole conversation of the session, has the tools run that it asks for, all at once, and asks again
 *   with their results, until the model asks for none. That message is the answer.
 * - A model that still asks for tools after `max_steps` calls is asked once more without them, for its last words; the turn then ends
 *   FAILED, since what it was to do is not done. Its next turn goes on from there.
 * - In mode ooda_re_act each asking has an observation before it. One that is missing or comes to nothing ends the turn FAILED, and so do
 *   physical calls that are refused again and again because their observation was too old; see `ooda.ts`.
 * - Messages that come meanwhile are asked for after each answer of the model, and go before its next one.
 * - An answer that is not of the form that the definition names is asked for once more; a second one ends the turn FAILED.
 * - A request that would be too large begins at a new baseline, which is recorded before it holds; see `compaction.ts`.
 * - It keeps nothing but what it would read again: what it does follows from the journal, its definition and the tools that were recorded with the turn.
 */

import { create } from "@bufbuild/protobuf";
import { isSameBytes } from "../../base/bytes.ts";
import { HoldfastError, invalidArgument } from "../../base/errors.ts";
import type { Digest } from "../../base/ports.ts";
import { ToolChoiceSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { describeHarness, Resumability, ToolChoiceMode, type Harness, type Start } from "../../spi/index.ts";
import {
  agentDigest,
  configValue,
  parseAgent,
  parseTurnChange,
  type Agent,
  type AgentDefinition,
  type AnswerForm,
  type SchemaCompiler,
} from "./definition.ts";
import { AgentTurn } from "./agent-turn.ts";
import { HistoryFolds } from "./history-folds.ts";
import { answerFault, reminderOf } from "./answer.ts";
import { failure } from "./failure.ts";

/** Changes whenever the same journal, definition and tools would lead to another request. */
const VERSION = "2";

const NO_TOOLS = create(ToolChoiceSchema, { mode: ToolChoiceMode.NONE });

/** The built-in agent: each turn's config defines it. */
export function createAgentHarness(): Harness {
  return harnessOf(
    "agent",
    VERSION,
    remembered((config) => parseAgent(configValue(config), "config")),
  );
}

/** What an agent is made with. */
export interface DefinedAgentOptions {
  readonly digest: Digest;
  /** The path of the definition, for errors. */
  readonly at: string;
  /** Makes checks of answers; without it a definition may not name a form of them. */
  readonly compile?: SchemaCompiler | undefined;
}

/**
 * The agent of a definition, under a name. A turn's config may change its model and params. Its version names the definition, so a turn is
 * resumed by the same agent only. Throws INVALID_ARGUMENT that names the key's path, beginning with `at`.
 */
export function createDefinedAgent(name: string, definition: AgentDefinition, options: DefinedAgentOptions): Harness {
  const agent = parseAgent(definition, options.at, options.compile);
  if (agent.mode === "ooda_re_act" && agent.observationTool === "") {
    throw invalidArgument(`${options.at}.observation.tool`, "must name the tool that observes; the mode ooda_re_act needs one");
  }
  const version = `${VERSION}-${agentDigest(agent, options.digest).slice(0, 16)}`;
  return harnessOf(name, version, (config) => {
    const change = parseTurnChange(configValue(config), "config");
    return { ...agent, model: change.model || agent.model, params: { ...agent.params, ...change.params } };
  });
}

/** What the last config came to is remembered: most turns have the same one. */
function remembered(read: (config: Uint8Array) => Agent): (config: Uint8Array) => Agent {
  let last: { readonly config: Uint8Array; readonly agent: Agent } | undefined;
  return (config) => {
    if (last === undefined || !isSameBytes(last.config, config)) last = { config: new Uint8Array(config), agent: read(config) };
    return last.agent;
  };
}

function harnessOf(id: string, version: string, agentFor: (config: Uint8Array) => Agent): Harness {
  const capabilities = { resumability: Resumability.STATELESS_REPLAY, forkSafe: true, streaming: true, reasoningReplay: true };
  const descriptor = describeHarness({ id, version, capabilities });
  const folds = new HistoryFolds();
  return {
    readsOnly: true,
    describe: async () => descriptor,
    run: async (start, sink, { signal }) => {
      const agent = settled(start, agentFor);
      const turn = await AgentTurn.begin(start, { agent, folds, sink, signal });
      if (!turn.isUnanswered) return;
      for (let step = 1; step <= agent.maxSteps; step += 1) {
        const calls = await turn.ask();
        if (calls.length > 0) await turn.runTools(calls);
        const isSteered = agent.steering && (await turn.takeMessages());
        if (calls.length === 0 && !isSteered) return settleAnswer(turn, agent.answer);
      }
      const calls = await turn.ask({ toolChoice: NO_TOOLS });
      await turn.refuse(calls, "the turn has reached its limit of steps; the tool was not run");
      throw failure(
        "resource_exhausted",
        `max_steps: the turn was not done after ${agent.maxSteps} calls of the model; a further turn goes on from here`,
      );
    },
  };
}

/** Has an answer that is not of its form made once more. A second one ends the turn. */
async function settleAnswer(turn: AgentTurn, form: AnswerForm | undefined): Promise<void> {
  const fault = form === undefined ? undefined : answerFault(turn.answer, form);
  if (form === undefined || fault === undefined) return;
  await turn.refuse(await turn.ask({ toolChoice: NO_TOOLS, reminder: reminderOf(fault) }), "the answer is asked for; the tool was not run");
  if (answerFault(turn.answer, form) === undefined) return;
  throw failure("failed_precondition", "answer: it does not fit the agent's schema, not even after the model was told what is wrong");
}

/** The agent of a turn with its model. A config that cannot be read and a missing model end the turn FAILED: no later try would go better. */
function settled(start: Start, agentFor: (config: Uint8Array) => Agent): Agent {
  const agent = readAgent(start, agentFor);
  const model = agent.model || start.model;
  if (model !== "") return { ...agent, model };
  throw failure("failed_precondition", "model: none is set; set the session's model, the agent's, or model in the turn's config");
}

function readAgent(start: Start, agentFor: (config: Uint8Array) => Agent): Agent {
  try {
    return agentFor(start.config);
  } catch (error) {
    if (error instanceof HoldfastError) throw failure(error.code, error.message);
    throw error;
  }
}
