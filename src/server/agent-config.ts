/**
 * The agents of the config file: each a definition of its own, in YAML or JSON, or in the file itself.
 *
 * Invariant: nothing of a definition's text is in an error.
 */

import { parseDocument } from "yaml";
import { invalidArgument, type Digest } from "../base/index.ts";
import { createDefinedAgent, type AgentDefinition } from "../harnesses/index.ts";
import { harnessName } from "../placement/index.ts";
import type { Harness } from "../spi/index.ts";
import { compileSchema, type SchemaCheck } from "../tools/index.ts";
import { fileText, type ConfigSurroundings } from "./config-fields.ts";
import { entriesOf, keyPath, type ConfigValue } from "./config-value.ts";

const AGENTS_MAX = 256;
const DEFINITION_CHARS_MAX = 1024 * 1024;
/** What an alias stands for is not spread without end. */
const ALIASES_MAX = 100;

const ANSWER = { unfit: "it does not fit the schema", whole: "it" };
const compile = (schema: Readonly<Record<string, unknown>>, field: string): SchemaCheck => compileSchema(schema, field, ANSWER);

/** The definitions by the names of their agents; what is in them is looked at when the agents are made. */
export function agentConfigs(agents: ConfigValue | undefined, around: ConfigSurroundings): Readonly<Record<string, AgentDefinition>> {
  if (agents === undefined) return {};
  const entries = [...entriesOf(agents)];
  if (entries.length > AGENTS_MAX) throw invalidArgument(agents.at, `must have at most ${AGENTS_MAX} agents`);
  return Object.fromEntries(entries.map(([name, value]) => [name, definitionOf(value, around)]));
}

/** The harnesses of definitions, by name. Throws INVALID_ARGUMENT that names the path of the key, and for a name that is in `taken`. */
export function agentHarnesses(
  agents: Readonly<Record<string, AgentDefinition>>,
  { digest, taken }: { readonly digest: Digest; readonly taken: readonly string[] },
): Readonly<Record<string, Harness>> {
  const made = Object.entries(agents).map(([name, definition]): [string, Harness] => {
    const at = keyPath("agents", name);
    if (taken.includes(harnessName(name, at))) throw invalidArgument(at, "is the name of another harness of this host");
    return [name, createDefinedAgent(name, definition, { digest, at, compile })];
  });
  return Object.fromEntries(made);
}

/** A definition that stands here, or in a file that is named here. */
export function definitionOf(agent: ConfigValue, around: ConfigSurroundings): AgentDefinition {
  const value: unknown = typeof agent.value === "string" ? parsed(fileText(agent, around), agent.at) : agent.value;
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw invalidArgument(agent.at, "must be a definition, or name a file of one in YAML or JSON");
}

function parsed(text: string, at: string): unknown {
  if (text.length > DEFINITION_CHARS_MAX) throw invalidArgument(at, `must name a file of at most ${DEFINITION_CHARS_MAX} characters`);
  const document = parseDocument(text, { strict: true, uniqueKeys: true, prettyErrors: false });
  const [error] = document.errors;
  if (error === undefined) return document.toJS({ maxAliasCount: ALIASES_MAX });
  // The parser's message quotes the text; where it is wrong is all that is told on.
  const line = text.slice(0, error.pos[0]).split("\n").length;
  throw invalidArgument(at, `must name a file of YAML or JSON; this one is neither, see its line ${line}`, { cause: error });
}
