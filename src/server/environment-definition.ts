/**
 * Reading environments, in the config file's words and in those of the API, which differ in how two words are joined.
 *
 * Invariants:
 * - What could never do what it says is refused: an agent where no agent runs, a key of the agent that the environment states itself.
 * - The whole of an environment is small beside the config of a turn, which it goes into.
 */

import { invalidArgument } from "../base/index.ts";
import { parseAgent } from "../harnesses/index.ts";
import { AGENT_HARNESS, CONTEXT_TOKENS_MAX, CONTEXT_TOKENS_MIN, environmentId, plainEnvironment } from "../service/index.ts";
import type { Environment, EnvironmentHost, EnvironmentTools, ObservationSource, PermissionRule, PresencePolicy } from "../spi/index.ts";
import { fieldsOf } from "./config-fields.ts";
import { choiceOf, entriesOf, listOf, textOf, type ConfigValue } from "./config-value.ts";

/** How keys of several words are written. */
export interface KeyWords {
  readonly maxAgeMs: string;
  readonly maxContextTokens: string;
}

/** In the config file, and in a program's objects. */
export const CONFIG_WORDS: KeyWords = { maxAgeMs: "maxAgeMs", maxContextTokens: "maxContextTokens" };
/** In the API, whose errors name fields by them. */
export const API_WORDS: KeyWords = { maxAgeMs: "max_age_ms", maxContextTokens: "max_context_tokens" };

/** The largest environment, as JSON. A turn's config, which has its instructions, may have four times as much. */
export const ENVIRONMENT_BYTES_MAX = 64 * 1024;
const DESCRIPTION_CHARS_MAX = 1_024;
const REASON_CHARS_MAX = 256;
const NAME_CHARS_MAX = 256;
const PERMISSIONS_MAX = 256;
const PATTERNS_MAX = 256;
const MODELS_MAX = 32;
const HOSTS_MAX = 64;
const LABELS_MAX = 16;
const AGE_MS_MAX = 60 * 60 * 1_000;
const AGE_MS_DEFAULT = 30_000;

const LEVELS = ["full", "mini", "hidden"] as const;
const POLICIES = ["allow", "require_confirmation", "block"] as const;
const CATEGORIES = ["physical", "pure"] as const;

/** Keys of an agent's definition that an environment has words of its own for, and where these stand. */
const STATED_ELSEWHERE: Readonly<Record<string, string>> = {
  model: "as model of the environment",
  tools: "as tools and permissions of the environment",
  context: "as the environment's largest context",
  mode: "in each message of a client",
  observation: "as observation of the environment",
  client: "in what a client says",
};

/** The environment of a definition. Throws INVALID_ARGUMENT that names the path of the key. */
export function environmentOf(id: string, definition: ConfigValue, words: KeyWords): Environment {
  const plain = plainEnvironment(environmentId(id, words === API_WORDS ? `${definition.at}.id` : definition.at));
  const keys = ["description", "harness", "agent", "model", "models", "permissions", "observation", "tools", "hosts", "presence"];
  const fields = fieldsOf(definition, [...keys, words.maxContextTokens], []);
  const environment: Environment = {
    ...plain,
    description: fields.optional("description", (value) => plainTextOf(value, DESCRIPTION_CHARS_MAX)) ?? "",
    harness: fields.optional("harness", nameOf) ?? plain.harness,
    agent: fields.optional("agent", agentOf) ?? {},
    model: fields.optional("model", (value) => plainTextOf(value, NAME_CHARS_MAX)) ?? "",
    models: fields.optional("models", modelsOf) ?? {},
    permissions: fields.optional("permissions", (value) => listOf(value, PERMISSIONS_MAX).map(permissionOf)) ?? [],
    observation: fields.optional("observation", (value) => observationOf(value, words)),
    tools: fields.optional("tools", toolsOf) ?? plain.tools,
    hosts: fields.optional("hosts", (value) => hostsOf(value, words)) ?? {},
    presence: fields.optional("presence", (value) => presenceOf(value, plain.presence)) ?? plain.presence,
    maxContextTokens: fields.optional(words.maxContextTokens, (value) => numberOf(value, CONTEXT_TOKENS_MIN, CONTEXT_TOKENS_MAX)),
  };
  refuseIdle(environment, definition.at);
  const bytes = new TextEncoder().encode(JSON.stringify(environment)).length;
  if (bytes > ENVIRONMENT_BYTES_MAX) throw invalidArgument(definition.at, `must take at most ${ENVIRONMENT_BYTES_MAX} bytes as JSON`);
  return environment;
}

/** What only an agent heeds is refused where there is none: a tool that seems to be blocked would not be. */
function refuseIdle({ harness, hosts, agent, permissions, observation, tools }: Environment, at: string): void {
  const harnesses = [harness, ...Object.values(hosts).map((host) => host.harness ?? harness)];
  if (harnesses.includes(AGENT_HARNESS)) return;
  const said = {
    agent: Object.keys(agent).length > 0,
    permissions: permissions.length > 0,
    observation: observation !== undefined,
    tools: JSON.stringify(tools) !== JSON.stringify(plainEnvironment().tools),
  };
  const idle = Object.entries(said).find(([, isSaid]) => isSaid)?.[0];
  if (idle === undefined) return;
  throw invalidArgument(`${at}.${idle}`, `is for the harness ${AGENT_HARNESS}; tools of another one are ruled by the host's policies`);
}

function agentOf({ at, value }: ConfigValue): Environment["agent"] {
  const entries = entriesOf({ at, value });
  for (const [key, { at: path }] of entries) {
    const elsewhere = Object.hasOwn(STATED_ELSEWHERE, key) ? STATED_ELSEWHERE[key] : undefined;
    if (elsewhere !== undefined) throw invalidArgument(path, `does not stand here; it stands ${elsewhere}`);
  }
  parseAgent(value, at);
  return Object.fromEntries([...entries].map(([key, entry]) => [key, entry.value]));
}

function modelsOf(models: ConfigValue): Environment["models"] {
  const entries = [...entriesOf(models)];
  if (entries.length > MODELS_MAX) throw invalidArgument(models.at, `must have at most ${MODELS_MAX} tiers`);
  return Object.fromEntries(entries.map(([tier, model]) => [plainKey(tier, model.at), nameOf(model)]));
}

function permissionOf(rule: ConfigValue): PermissionRule {
  const fields = fieldsOf(rule, ["tool", "policy", "category", "reason"], []);
  const category = fields.optional("category", (value) => choiceOf(value, CATEGORIES));
  const reason = fields.optional("reason", (value) => plainTextOf(value, REASON_CHARS_MAX));
  return {
    tool: fields.required("tool", patternOf),
    policy: fields.required("policy", (value) => choiceOf(value, POLICIES)),
    ...(category === undefined ? {} : { category }),
    ...(reason === undefined ? {} : { reason }),
  };
}

function observationOf(observation: ConfigValue, words: KeyWords): ObservationSource {
  const fields = fieldsOf(observation, ["tool", words.maxAgeMs], []);
  return {
    tool: fields.required("tool", toolNameOf),
    maxAgeMs: fields.optional(words.maxAgeMs, (value) => numberOf(value, 1, AGE_MS_MAX)) ?? AGE_MS_DEFAULT,
  };
}

function toolsOf(tools: ConfigValue): EnvironmentTools {
  const fields = fieldsOf(tools, ["pure", "physical"], []);
  return { pure: fields.optional("pure", patternsOf) ?? [], physical: fields.optional("physical", patternsOf) ?? [] };
}

function hostsOf(hosts: ConfigValue, words: KeyWords): Environment["hosts"] {
  const entries = [...entriesOf(hosts)];
  if (entries.length > HOSTS_MAX) throw invalidArgument(hosts.at, `must have at most ${HOSTS_MAX} hosts`);
  return Object.fromEntries(entries.map(([id, host]) => [plainKey(id, host.at), hostOf(host, words)]));
}

function hostOf(host: ConfigValue, words: KeyWords): EnvironmentHost {
  const fields = fieldsOf(host, ["harness", "tools", "observation", "labels"], []);
  return {
    harness: fields.optional("harness", nameOf),
    tools: fields.optional("tools", somePatternsOf),
    observation: fields.optional("observation", (value) => observationOf(value, words)),
    labels: fields.optional("labels", labelsOf) ?? {},
  };
}

function labelsOf(labels: ConfigValue): EnvironmentHost["labels"] {
  const entries = [...entriesOf(labels)];
  if (entries.length > LABELS_MAX) throw invalidArgument(labels.at, `must have at most ${LABELS_MAX} labels`);
  return Object.fromEntries(entries.map(([key, { at, value }]) => [plainKey(key, at), plainKey(value, at, "have a value")]));
}

function presenceOf(presence: ConfigValue, plain: PresencePolicy): PresencePolicy {
  const fields = fieldsOf(presence, ["physical", "pure", "idle"], []);
  const levelOf = (when: keyof PresencePolicy) => fields.optional(when, (value) => choiceOf(value, LEVELS)) ?? plain[when];
  return { physical: levelOf("physical"), pure: levelOf("pure"), idle: levelOf("idle") };
}

function patternsOf(patterns: ConfigValue): readonly string[] {
  return listOf(patterns, PATTERNS_MAX).map(patternOf);
}

/** An empty list could be taken for none of the tools, and for no word about them. */
function somePatternsOf(patterns: ConfigValue): readonly string[] {
  const list = patternsOf(patterns);
  if (list.length > 0) return list;
  throw invalidArgument(patterns.at, "must have one pattern at least, or be left out for all of the environment's tools");
}

function patternOf({ at, value }: ConfigValue): string {
  if (typeof value === "string" && /^[A-Za-z0-9_.*-]{1,128}$/.test(value)) return value;
  throw invalidArgument(at, "must be a tool's name, in which * stands for any characters");
}

function toolNameOf({ at, value }: ConfigValue): string {
  if (typeof value === "string" && /^[A-Za-z0-9_.-]{1,64}$/.test(value)) return value;
  throw invalidArgument(at, "must be a tool's name");
}

/** What is chosen by, and so stands between commas and equals signs. */
function plainKey(text: unknown, at: string, what = "have a name"): string {
  if (typeof text === "string" && /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$/.test(text)) return text;
  throw invalidArgument(at, `must ${what} of at most 128 letters, digits and . _ : / -`);
}

/** The name of a harness or a model. */
function nameOf(value: ConfigValue): string {
  return textOf({ at: value.at, value: plainTextOf(value, NAME_CHARS_MAX) });
}

function plainTextOf({ at, value }: ConfigValue, charsMax: number): string {
  if (typeof value === "string" && value.length <= charsMax && value.isWellFormed() && !value.includes("\u0000")) return value;
  throw invalidArgument(at, `must be a text of at most ${charsMax} characters`);
}

function numberOf({ at, value }: ConfigValue, min: number, max: number): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw invalidArgument(at, `must be a whole number from ${min} to ${max}`);
}
