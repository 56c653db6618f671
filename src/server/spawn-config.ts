/** What the config file says of spawning: which harnesses, how deep, how many. Pure. */

import { invalidArgument } from "../base/index.ts";
import { harnessName } from "../placement/index.ts";
import { SPAWN_LIMITS, type SpawnLimits } from "../service/index.ts";
import type { HarnessCatalog } from "../spi/index.ts";
import { fieldsOf } from "./config-fields.ts";
import { countOf, listOf, textOf, type ConfigValue } from "./config-value.ts";

/** What sessions may spawn. */
export interface SpawnConfig {
  /** The harnesses that workers may run, by name; one at least. */
  readonly agents: readonly string[];
  readonly limits: SpawnLimits;
}

const AGENTS_MAX = 64;
const DEPTH_MAX = 16;
const CHILDREN_MAX = 1_000;
const PROMPT_BYTES_MAX = 1024 * 1024;
/** It still fits into a record beside what names the worker. */
const ANSWER_BYTES_MAX = 384 * 1024;
/** What a timer of Node can count to is a little more. */
const TIMEOUT_MS_MAX = 24 * 86_400_000;

/** What stands under `spawn`; undefined where nothing is spawned. Throws INVALID_ARGUMENT that names the path of the key. */
export function spawnConfig(spawn: ConfigValue | undefined): SpawnConfig | undefined {
  if (spawn === undefined) return undefined;
  const fields = fieldsOf(spawn, ["agents", "depthMax", "childrenMax", "promptBytesMax", "answerBytesMax", "timeoutMs"], []);
  const count = (key: Exclude<keyof SpawnLimits, "timeoutMs">, max: number): number =>
    fields.optional(key, (value) => countOf(value, max)) ?? SPAWN_LIMITS[key];
  return {
    agents: fields.required("agents", agentsOf),
    limits: {
      depthMax: count("depthMax", DEPTH_MAX),
      childrenMax: count("childrenMax", CHILDREN_MAX),
      promptBytesMax: count("promptBytesMax", PROMPT_BYTES_MAX),
      answerBytesMax: count("answerBytesMax", ANSWER_BYTES_MAX),
      timeoutMs: fields.optional("timeoutMs", (value) => countOf(value, TIMEOUT_MS_MAX)),
    },
  };
}

function agentsOf(agents: ConfigValue): readonly string[] {
  const names = listOf(agents, AGENTS_MAX).map((agent) => harnessName(textOf(agent), agent.at));
  if (names.length === 0) throw invalidArgument(agents.at, "must name one harness at least");
  if (new Set(names).size < names.length) throw invalidArgument(agents.at, "must name each harness once");
  return names;
}

/** Throws INVALID_ARGUMENT unless the host has every harness that may be spawned. */
export function refuseUnknownAgents(catalog: HarnessCatalog, { agents }: SpawnConfig): void {
  const unknown = agents.findIndex((name) => catalog.find(name) === undefined);
  if (unknown >= 0) throw invalidArgument(`spawn.agents[${unknown}]`, "must name a harness that this server has");
}
