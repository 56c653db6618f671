/**
 * The policies of the config file, and what it says of requests for a decision.
 *
 * Invariant: a rule that could never do what it says is refused, not passed over.
 */

import { invalidArgument } from "../base/index.ts";
import type { ApprovalExpiry, ArgumentTest, PolicyRule } from "../controller/index.ts";
import { fieldsOf, type ConfigSurroundings } from "./config-fields.ts";
import { choiceOf, durationMsOf, entriesOf, flagOf, listOf, textOf, type ConfigValue } from "./config-value.ts";
import { webhooksConfig, type WebhookConfig } from "./webhook-config.ts";

/** What the config file says of requests that wait for a person. */
export interface ApprovalsConfig {
  /** What becomes of a request that nobody answers, where its rule says nothing. */
  readonly expiry: ApprovalExpiry;
  /** Whether a turn goes on by itself after its last open request has expired. */
  readonly resume: boolean;
  /** Who is told of requests and decisions. */
  readonly webhooks: readonly WebhookConfig[];
}

/** Requests wait for ever, and nobody is told. */
export const NO_APPROVALS: ApprovalsConfig = { expiry: { afterMs: undefined, answer: "deny" }, resume: false, webhooks: [] };

const RULES_MAX = 1_024;
const ARGUMENTS_MAX = 32;
const TEXT_CHARS_MAX = 1_024;
const EXPIRY_DAYS_MAX = 3_650;
const WORDS = ["allow", "deny", "ask"] as const;
const ANSWERS = ["allow", "deny"] as const;

/** The rules in the value under `policies`, in order. Throws INVALID_ARGUMENT that names the path of the key. */
export function policiesConfig(policies: ConfigValue | undefined): readonly PolicyRule[] {
  if (policies === undefined) return [];
  const rules = listOf(policies, RULES_MAX).map(ruleOf);
  const names = new Map<string, string>();
  for (const { name, at } of rules) {
    const earlier = names.get(name);
    if (earlier !== undefined) throw invalidArgument(`${at}.name`, `must be a name of its own: ${earlier} has it`);
    names.set(name, at);
  }
  return rules.map(({ rule }) => rule);
}

interface ReadRule {
  readonly rule: PolicyRule;
  readonly name: string;
  readonly at: string;
}

function ruleOf(value: ConfigValue): ReadRule {
  const { at } = value;
  const fields = fieldsOf(value, ["name", "tool", "args", "do", "reason", "expireAfter", "then"], []);
  const what = fields.required("do", (word) => choiceOf(word, WORDS));
  const after = fields.optional("expireAfter", expiryMsOf);
  const answer = fields.optional("then", (word) => choiceOf(word, ANSWERS));
  if (what !== "ask" && (after !== undefined || answer !== undefined)) {
    throw invalidArgument(`${at}.${after === undefined ? "then" : "expireAfter"}`, "is for rules that ask");
  }
  if (after === undefined && answer !== undefined) throw invalidArgument(`${at}.then`, "must be given with expireAfter");
  const name = fields.optional("name", nameOf) ?? at;
  const rule: PolicyRule = {
    name,
    tool: fields.required("tool", shortTextOf),
    args: fields.optional("args", argumentsOf) ?? {},
    do: what,
    reason: fields.optional("reason", shortTextOf) ?? "",
    expiry: after === undefined ? undefined : { afterMs: after.ms, answer: answer ?? "deny" },
  };
  return { rule, name, at };
}

function nameOf(value: ConfigValue): string {
  if (typeof value.value === "string" && /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(value.value)) return value.value;
  throw invalidArgument(value.at, "must have 1 to 64 letters, digits, points, hyphens and underscores");
}

function argumentsOf(value: ConfigValue): PolicyRule["args"] {
  const entries = [...entriesOf(value)];
  if (entries.length > ARGUMENTS_MAX) throw invalidArgument(value.at, `must have at most ${ARGUMENTS_MAX} arguments`);
  return Object.fromEntries(entries.map(([name, test]) => [name, testOf(test)]));
}

function testOf(value: ConfigValue): ArgumentTest {
  const fields = fieldsOf(value, ["equals", "prefix", "glob", "under"], []);
  const equals = fields.optional("equals", scalarOf);
  const given = {
    ...(equals === undefined ? {} : { equals: equals.value }),
    prefix: fields.optional("prefix", shortTextOf),
    glob: fields.optional("glob", shortTextOf),
    under: fields.optional("under", folderOf),
  };
  if (Object.values(given).every((test) => test === undefined)) {
    throw invalidArgument(value.at, "must have one of the keys equals, prefix, glob and under");
  }
  return given;
}

function scalarOf({ at, value }: ConfigValue): { readonly value: string | number | boolean | null } {
  if (value === null || typeof value === "string" || typeof value === "number" || typeof value === "boolean") return { value };
  throw invalidArgument(at, "must be a text, a number, true, false or null");
}

function folderOf(value: ConfigValue): string {
  const folder = shortTextOf(value);
  if (folder.split("/").includes("..") || folder.includes("\\"))
    throw invalidArgument(value.at, "must be a folder without .. and backslashes");
  return folder;
}

function shortTextOf(value: ConfigValue): string {
  const text = textOf(value);
  if (text.length <= TEXT_CHARS_MAX && text.isWellFormed()) return text;
  throw invalidArgument(value.at, `must have at most ${TEXT_CHARS_MAX} characters, without lone surrogates`);
}

/** What stands under `approvals`. Throws INVALID_ARGUMENT that names the path of the key. */
export function approvalsConfig(approvals: ConfigValue | undefined, around: ConfigSurroundings): ApprovalsConfig {
  if (approvals === undefined) return NO_APPROVALS;
  const fields = fieldsOf(approvals, ["expireAfter", "then", "resume", "webhooks"], []);
  const afterMs = fields.optional("expireAfter", expiryMsOf)?.ms;
  const answer = fields.optional("then", (word) => choiceOf(word, ANSWERS)) ?? "deny";
  const webhooks = fields.optional("webhooks", (value) => webhooksConfig(value, around)) ?? [];
  return { expiry: { afterMs, answer }, resume: fields.optional("resume", flagOf) ?? false, webhooks };
}

function expiryMsOf(value: ConfigValue): { readonly ms: number | undefined } {
  if (value.value === "never") return { ms: undefined };
  return { ms: durationMsOf(value, EXPIRY_DAYS_MAX, " or never") };
}
