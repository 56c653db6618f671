/** Environments: what they come to for a client, a tool and a turn. */

export { ENVIRONMENT_ANNOTATION, HOST_ANNOTATION, isTask, KIND_ANNOTATION } from "./annotations.ts";
export { AGENT_HARNESS, plainEnvironment } from "./defaults.ts";
export { environmentId } from "./id.ts";
export { resolveHost, type ResolvedHost } from "./hosts.ts";
export {
  ENVIRONMENTS_MAX,
  openEnvironmentLibrary,
  type EnvironmentLibrary,
  type EnvironmentLibraryOptions,
  type KnownEnvironment,
  type ReadBefore,
} from "./library.ts";
export { CONTEXT_TOKENS_MAX, CONTEXT_TOKENS_MIN, resolveContextTokens, resolveModel } from "./models.ts";
export { TURN_TOOLS_MAX } from "./offered.ts";
export { permissionFor, permissionRules, type CategorisedTool, type Permission } from "./permissions.ts";
export { agentDefinition, turnConfig, type ClientTool, type EnvironmentTurn, type TurnDefinition, type TurnMode } from "./turn-config.ts";
export { createEnvironmentsService, type EnvironmentsServiceOptions } from "./service.ts";
