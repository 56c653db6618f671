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
}

/** Tools by name, or by the start of a name and `*`. Of what fits a name the longest decides; where both lists have that, `ask` does. */
export interface AgentTools {
  /** Run at once. */
  readonly free?: readonly string[] | undefined;
  /** Run when a person has approved the call. */
  readonly ask?: readonly string[] | undefined;
}

/** An agent as it was read: whole. */
export interface Agent {
  /** "" for none. */
  readonly systemPrompt: string;
  /** "" for the session's. */
  readonly model: string;
  readonly params: Readonly<Record<string, string>>;
  readonly tools: { readonly free: readonly string[]; readonly ask: readonly string[] };
  readonly maxSteps: number;
  /** The largest request, in estimated tokens. */
  readonly contextTokensMax: number;
  readonly steering: boolean;
  /** Undefined for answers of any form. */
  readonly answer: AnswerForm | undefined;
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
/** A tool's name as every provider takes it, or the start of one; `*` alone is every tool. */
const PATTERN = /^[A-Za-z0-9_.-]{0,64}\*$|^[A-Za-z0-9_.-]{1,64}$/;

const KEYS = ["system_prompt", "model", "params", "tools", "max_steps", "context", "steering", "answer"] as const;

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
  };
}

/** What one turn's config may change of an agent that the host defines: who is asked, and how. What it may do is the host's to say. */
export function parseTurnChange(value: unknown, at: string): Pick<Agent, "model" | "params"> {
  const fields = fieldsOf({ at, value }, ["model", "params"]);
  return { model: textOf(fields.model), params: paramsOf(fields.params) };
}

/** The JSON value of a config; an empty one is the empty object. */
export function configValue(config: Uint8Array): unknown {
  if (config.byteLength === 0) return {};
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(config));
  } catch (error) {
    throw invalidArgument("config", "must be a JSON object in UTF-8", { cause: error });
  }
}

/** What tells an agent from every other one: a changed word makes another agent, and a turn is resumed by the same agent only. */
export function agentDigest(agent: Agent, digest: Digest): string {
  const params = Object.entries(agent.params).toSorted(([left], [right]) => (left < right ? -1 : 1));
  const { systemPrompt, model, tools, maxSteps, contextTokensMax, steering, answer } = agent;
  const written = [systemPrompt, model, params, tools.free, tools.ask, maxSteps, contextTokensMax, steering, answer?.schema];
  return digest.sha256Hex(JSON.stringify(written));
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
  const fields = fieldsOf(tools, ["free", "ask"]);
  return { free: patternsOf(fields.free), ask: patternsOf(fields.ask) };
}

function patternsOf(patterns: Field): readonly string[] {
  return listOf(patterns, PATTERNS_MAX).map(({ at, value }) => {
    if (typeof value === "string" && PATTERN.test(value)) return value;
    throw invalidArgument(at, "must be a tool's name, or the start of one and *");
  });
}
