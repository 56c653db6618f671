/** The environments of the config file, as they are written there; what is in them is looked at when the server starts. */

import { invalidArgument } from "../base/index.ts";
import type { AgentDefinition } from "../harnesses/index.ts";
import type { EnvironmentTools, ObservationSource, PermissionRule, PresencePolicy } from "../spi/index.ts";
import { definitionOf } from "./agent-config.ts";
import type { ConfigSurroundings } from "./config-fields.ts";
import { entriesOf, type ConfigValue } from "./config-value.ts";

/** What an observation is by, and how old it may be. */
export type ObservationDefinition = Pick<ObservationSource, "tool"> & Partial<ObservationSource>;

/** An environment as it is written; every key is optional, and `Environment` says what each means. */
export interface EnvironmentDefinition {
  readonly description?: string | undefined;
  /** Default `agent`. */
  readonly harness?: string | undefined;
  /** What the environment does not say in its own words. */
  readonly agent?: Pick<AgentDefinition, "system_prompt" | "params" | "max_steps" | "steering"> | undefined;
  readonly model?: string | undefined;
  readonly models?: Readonly<Record<string, string>> | undefined;
  readonly permissions?: readonly PermissionRule[] | undefined;
  readonly observation?: ObservationDefinition | undefined;
  /** Default: all, and each acts on the world. */
  readonly tools?: Partial<EnvironmentTools> | undefined;
  readonly hosts?: Readonly<Record<string, EnvironmentHostDefinition>> | undefined;
  /** Default: `full` while a tool runs that acts on the world, `mini` while anything else does, `hidden` otherwise. */
  readonly presence?: Partial<PresencePolicy> | undefined;
  readonly maxContextTokens?: number | undefined;
}

/** A host of an environment as it is written. */
export interface EnvironmentHostDefinition {
  readonly harness?: string | undefined;
  readonly tools?: readonly string[] | undefined;
  readonly observation?: ObservationDefinition | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** Environments of one config file. */
const ENVIRONMENTS_MAX = 256;

/** The definitions by their ids, each with its agent in it, which may stand in a file of its own. */
export function environmentConfigs(
  environments: ConfigValue | undefined,
  around: ConfigSurroundings,
): Readonly<Record<string, EnvironmentDefinition>> {
  if (environments === undefined) return {};
  const entries = [...entriesOf(environments)];
  if (entries.length > ENVIRONMENTS_MAX) throw invalidArgument(environments.at, `must have at most ${ENVIRONMENTS_MAX} environments`);
  return Object.fromEntries(entries.map(([id, value]) => [id, withAgent(value, around)]));
}

function withAgent(environment: ConfigValue, around: ConfigSurroundings): EnvironmentDefinition {
  const entries = entriesOf(environment);
  const agent = entries.get("agent");
  const written = Object.fromEntries([...entries].map(([key, { value }]) => [key, value]));
  return agent === undefined ? written : { ...written, agent: definitionOf(agent, around) };
}
