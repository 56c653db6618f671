/**
 * What an agent is: its instructions, its model, the tools that it may use and its limits. Written as JSON, as YAML, or as an object in a
 * program; every form has the same keys.
 */

import { invalidArgument } from "../../base/errors.ts";
import type { Digest } from "../../base/ports.ts";
import { countOf, fieldsOf, flagOf, listOf, pathOf, recordOf, textOf, type Field } from "./fields.ts";

/** An agent as it is written; every key is optional. */
export interface AgentDefinition {
  /** Stands before the conversation as a system message. */
  readonly system_prompt?: string | undefined;
  /** Asked instead of the session's model. */
  readonly model?: string | undefined;
  /** Provider options of every call. */
  readonly params?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** Which of the host's tools the agent is offered. Default: none. */
  readonly tools?: AgentTools | undefined;
  /** How often the model may be asked in one turn with tools on offer. Default 50. */
  readonly max_steps?: number | undefined;
  readonly context?: { readonly max_tokens?: number | undefined } | undefined;
  /** Whether messages that come while a turn runs are taken into it. Default false. */
  readonly steering?: boolean | undefined;
  /**
   * A JSON Schema that the agent's answers fit. The model is told of it, an answer that does not fit is asked for once more, and a
   * second one ends the turn FAILED. Not in a turn's config: what checks it runs in the host.
   */
  readonly answer?: { readonly schema: Readonly<Record<string, unknown>> } | undefined;
  /** How the agent acts on what is outside; see `AgentMode`. Absent: all its tools are alike. */
  readonly mode?: AgentMode | undefined;
  /** The tool that says how things stand, called before the model is asked in mode `ooda_re_act`, which needs it. */
  readonly observation?: { readonly tool: string } | undefined;
  /** The caller's own, which the agent passes over: a JSON object. */
  readonly client?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * `react`: tools that are pure are on offer, and no others. `ooda_re_act`: all are; the model is shown a fresh observation each time that it
 * is asked, and of tools that are not pure one runs at a time.
 */
export type AgentMode = "react" | "ooda_re_act";

/**
 * Tools by name, or by the start of a name and `*`. Of what fits a name the longest decides about `free`, `ask` and `blocked`; where several
 * have that, `blocked` goes before `ask`, and `ask` before `free`.
 */
export interface AgentTools {
  /** Run at once. */
  readonly free?: readonly string[] | undefined;
  /** Run when a person has approved the call. */
  readonly ask?: readonly string[] | undefined;
  /** Not on offer; a model that calls one is told why, and nobody is asked. */
  readonly blocked?: readonly { readonly tool: string; readonly reason?: string | undefined }[] | undefined;
  /** Those that change nothing outside, for agents with a mode; every other one is physical. */
  readonly pure?: readonly string[] | undefined;
}

/** An agent as it was read: whole. */
export interface Agent {
  /** "" for none. */
  readonly systemPrompt: string;
  /** "" for the session's. */
  readonly model: string;
  readonly params: Readonly<Record<string, string>>;
  readonly tools: {
    readonly free: readonly string[];
    readonly ask: readonly string[];
    readonly blocked: readonly BlockedTools[];
    readonly pure: readonly string[];
  };
  readonly maxSteps: number;
  /** The largest request, in estimated tokens. */
  readonly contextTokensMax: number;
  readonly steering: boolean;
  /** Undefined for answers of any form. */
  readonly answer: AnswerForm | undefined;
  /** Undefined for an agent whose tools are all alike. */
  readonly mode: AgentMode | undefined;
  /** The tool that observes; "" for none. */
  readonly observationTool: string;
  /** As JSON; "" for nothing. */
  readonly client: string;
}

/** Tools that are not on offer. */
export interface BlockedTools {
  readonly pattern: string;
  /** "" for none. */
  readonly reason: string;
}

/** The form that answers have. */
export interface AnswerForm {
  readonly schema: Readonly<Record<string, unknown>>;
  /** What is wrong with an answer's value, in words for the model; undefined when nothing is. */
  readonly check: (value: unknown) => string | undefined;
}

/** Makes checks by JSON Schemas. Throws INVALID_ARGUMENT that names `field` for what is no schema. */
export type SchemaCompiler = (schema: Readonly<Record<string, unknown>>, field: string) => AnswerForm["check"];

const STEPS = { min: 1, max: 1_000, otherwise: 50 };
const TOKENS = { min: 1_000, max: 100_000_000, otherwise: 100_000 };
const PATTERNS_MAX = 1_000;
const REASON_CHARS_MAX = 1_024;
/** A tool's name as every provider takes it, or the start of one; `*` alone is every tool. */
const PATTERN = /^[A-Za-z0-9_.-]{0,64}\*$|^[A-Za-z0-9_.-]{1,64}$/;
const NAME = /^[A-Za-z0-9_.-]{1,64}$/;
const MODES: readonly AgentMode[] = ["react", "ooda_re_act"];

const KEYS = [
  "system_prompt",
  "model",
  "params",
  "tools",
  "max_steps",
  "context",
  "steering",
  "answer",
  "mode",
  "observation",
  "client",
] as const;

/**
 * Reads an agent. Throws INVALID_ARGUMENT that names the path of the key which is wrong, beginning with `at`. Without a compiler of schemas
 * it may not name a form of its answers.
 */
export function parseAgent(value: unknown, at: string, compile?: SchemaCompiler): Agent {
  const fields = fieldsOf({ at, value }, KEYS);
  const { max_tokens } = fieldsOf(fields.context, ["max_tokens"]);
  return {
    systemPrompt: textOf(fields.system_prompt),
    model: textOf(fields.model),
    params: paramsOf(fields.params),
    tools: toolsOf(fields.tools),
    maxSteps: countOf(fields.max_steps, STEPS),
    contextTokensMax: countOf(max_tokens, TOKENS),
    steering: flagOf(fields.steering),
    answer: answerOf(fields.answer, compile),
    mode: modeOf(fields.mode),
    observationTool: observationOf(fields.observation),
    client: clientOf(fields.client),
  };
}

/** What one turn's config may change of an agent that the host defines: who is asked, and how. What it may do is the host's to say. */
export function parseTurnChange(value: unknown, at: string): Pick<Agent, "model" | "params"> {
  const fields = fieldsOf({ at, value }, ["model", "params"]);
  return { model: textOf(fields.model), params: paramsOf(fields.params) };
}

const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** The JSON value of a config; an empty one is the empty object. */
export function configValue(config: Uint8Array): unknown {
  if (config.byteLength === 0) return {};
  try {
    return JSON.parse(UTF8.decode(config));
  } catch (error) {
    throw invalidArgument("config", "must be a JSON object in UTF-8", { cause: error });
  }
}

/** What tells an agent from every other one: a changed word makes another agent, and a turn is resumed by the same agent only. */
export function agentDigest(agent: Agent, digest: Digest): string {
  const params = Object.entries(agent.params).toSorted(([left], [right]) => (left < right ? -1 : 1));
  const { systemPrompt, model, tools, maxSteps, contextTokensMax, steering, answer, mode, observationTool, client } = agent;
  const written = [systemPrompt, model, params, tools.free, tools.ask, maxSteps, contextTokensMax, steering, answer?.schema];
  // An agent that has none of these is called what it was called before they were known.
  const later = [mode ?? "", observationTool, client, tools.blocked, tools.pure];
  return digest.sha256Hex(JSON.stringify(later.every((value) => value.length === 0) ? written : [...written, later]));
}

function paramsOf(params: Field): Readonly<Record<string, string>> {
  const entries = Object.entries(recordOf(params)).map(([name, value]): [string, string] => {
    const text = typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
    if (text === undefined || !text.isWellFormed() || !name.isWellFormed()) {
      throw invalidArgument(pathOf(params.at, name), "must be a text, a number or a boolean");
    }
    return [name, text];
  });
  return Object.fromEntries(entries);
}

function answerOf(answer: Field, compile: SchemaCompiler | undefined): AnswerForm | undefined {
  if (answer.value === undefined) return undefined;
  if (compile === undefined) throw invalidArgument(answer.at, "belongs to an agent that the host defines");
  const { schema: field } = fieldsOf(answer, ["schema"]);
  if (field.value === undefined) throw invalidArgument(field.at, "must be a JSON Schema");
  const schema = recordOf(field);
  return { schema, check: compile(schema, field.at) };
}

function toolsOf(tools: Field): Agent["tools"] {
  const fields = fieldsOf(tools, ["free", "ask", "blocked", "pure"]);
  return {
    free: patternsOf(fields.free),
    ask: patternsOf(fields.ask),
    blocked: listOf(fields.blocked, PATTERNS_MAX).map(blockedOf),
    pure: patternsOf(fields.pure),
  };
}

function patternsOf(patterns: Field): readonly string[] {
  return listOf(patterns, PATTERNS_MAX).map(patternOf);
}

function patternOf({ at, value }: Field): string {
  if (typeof value === "string" && PATTERN.test(value)) return value;
  throw invalidArgument(at, "must be a tool's name, or the start of one and *");
}

function blockedOf(blocked: Field): BlockedTools {
  const { tool, reason } = fieldsOf(blocked, ["tool", "reason"]);
  const text = textOf(reason);
  if (text.length > REASON_CHARS_MAX) throw invalidArgument(reason.at, `must have at most ${REASON_CHARS_MAX} characters`);
  return { pattern: patternOf(tool), reason: text };
}

function modeOf({ at, value }: Field): AgentMode | undefined {
  const mode = MODES.find((known) => known === value);
  if (mode === undefined && value !== undefined) throw invalidArgument(at, `must be ${MODES.join(" or ")}`);
  return mode;
}

function observationOf(observation: Field): string {
  if (observation.value === undefined) return "";
  const { tool } = fieldsOf(observation, ["tool"]);
  if (typeof tool.value === "string" && NAME.test(tool.value)) return tool.value;
  throw invalidArgument(tool.at, "must be a tool's name");
}

function clientOf(client: Field): string {
  if (client.value === undefined) return "";
  try {
    return JSON.stringify(recordOf(client));
  } catch (error) {
    throw invalidArgument(client.at, "must be a JSON object", { cause: error });
  }
}
