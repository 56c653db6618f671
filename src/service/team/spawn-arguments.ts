/** The tool `spawn` as models are told of it, and its arguments, checked. */

import { create, type JsonObject } from "@bufbuild/protobuf";
import { HoldfastError } from "../../base/errors.ts";
import { ToolDefinitionSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import type { ToolDefinition } from "../../spi/index.ts";
import { SERVICE_LIMITS } from "../limits.ts";
import { nameText } from "../text.ts";
import { SPAWN_TOOL } from "./spawn-call.ts";

/** What a call of `spawn` asks for. */
export interface SpawnArguments {
  readonly agent: string;
  readonly prompt: string;
  /** "" for a worker without a name. */
  readonly name: string;
}

const DESCRIPTION =
  "Gives a task to a sub-agent and waits for its answer. The sub-agent has a session of its own and sees nothing of this conversation, so the " +
  "prompt must say everything that it needs to know. Several calls in one message run at the same time.";
const KEYS: readonly string[] = ["agent", "prompt", "name"];

/** The tool's definition for a host with these agents. */
export function spawnDefinition(agents: readonly string[]): ToolDefinition {
  const properties = {
    agent: { type: "string", enum: [...agents], description: "Which agent does it." },
    prompt: { type: "string", minLength: 1, description: "The task, in full." },
    name: { type: "string", description: "A name for the sub-agent's session that no other has." },
  };
  const inputSchema: JsonObject = {
    type: "object",
    properties,
    required: agents.length === 1 ? ["prompt"] : ["agent", "prompt"],
    additionalProperties: false,
  };
  return create(ToolDefinitionSchema, { name: SPAWN_TOOL, description: DESCRIPTION, inputSchema });
}

/** What is wrong with the arguments of a call, for whoever made it; undefined when nothing is. */
export function spawnFault(args: JsonObject, agents: readonly string[]): string | undefined {
  const { agent, prompt, name } = args;
  const unknown = Object.keys(args).find((key) => !KEYS.includes(key));
  if (unknown !== undefined) return `must have no other keys than ${KEYS.join(", ")}`;
  if (agent === undefined ? agents.length !== 1 : typeof agent !== "string" || !agents.includes(agent)) {
    return `agent must be one of ${agents.join(", ")}`;
  }
  if (typeof prompt !== "string" || prompt === "") return "prompt must be a text that is not empty";
  if (name === undefined) return undefined;
  return typeof name === "string" ? nameFault(name) : "name must be a text";
}

function nameFault(name: string): string | undefined {
  try {
    nameText(name, "name", SERVICE_LIMITS.nameCharsMax);
    return undefined;
  } catch (error) {
    if (error instanceof HoldfastError) return error.message;
    throw error;
  }
}

/** The arguments of a call that has no fault. */
export function spawnArguments(args: JsonObject, agents: readonly string[]): SpawnArguments {
  const { agent, prompt, name } = args;
  return { agent: textOr(agent, agents[0] ?? ""), prompt: textOr(prompt, ""), name: textOr(name, "") };
}

function textOr(value: JsonObject[string] | undefined, other: string): string {
  return typeof value === "string" ? value : other;
}
