/** The services: the contract's calls as transport-free handlers over a journal and a controller. */

export { ALLOW_ALL } from "./access.ts";
export * from "./agent/index.ts";
export type {
  AgentResponse,
  AgentService,
  CallContext,
  EnvironmentsService,
  HarnessHostService,
  Incoming,
  JournalService,
  SessionsService,
  StreamContext,
  StreamItem,
  ToolCallsService,
  TurnsService,
} from "./contract.ts";
export type { SessionDefaults } from "./creation.ts";
export {
  createHarnessRegistryService,
  REGISTRY_LIMITS,
  type HarnessRegistryOptions,
  type HarnessRegistryService,
  type RegistryLimits,
} from "./harness-registry.ts";
export { createHarnessHostService } from "./harness-host.ts";
export { createJournalService, type JournalServiceOptions } from "./journal.ts";
export { SERVICE_LIMITS, type ServiceLimits } from "./limits.ts";
export * from "./team/index.ts";
export { createSessionsService, type ServiceOptions } from "./sessions.ts";
export { createTurnsService, type TurnsServiceOptions } from "./turns.ts";
export { createToolCallsService, type ToolCallsServiceOptions } from "./tool-calls.ts";
export { TRANSFER_LIMITS, type TransferLimits } from "./transfer.ts";
export {
  ApprovalFeed,
  approvalNewsOf,
  approvalNewsSince,
  type ApprovalListener,
  type ApprovalNews,
  type ApprovalNote,
} from "./approval-feed.ts";
export {
  AGENT_HARNESS,
  agentDefinition,
  CONTEXT_TOKENS_MAX,
  CONTEXT_TOKENS_MIN,
  createEnvironmentsService,
  environmentId,
  ENVIRONMENTS_MAX,
  openEnvironmentLibrary,
  permissionFor,
  permissionRules,
  plainEnvironment,
  resolveContextTokens,
  resolveHost,
  resolveModel,
  turnConfig,
  TURN_TOOLS_MAX,
  type ClientTool,
  type EnvironmentLibrary,
  type EnvironmentsServiceOptions,
  type EnvironmentTurn,
  type ResolvedHost,
  type TurnMode,
} from "./environment/index.ts";
