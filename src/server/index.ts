/** `holdfast/server`: a Holdfast server inside a program, and as a process. */

export { DEFAULT_CONFIG, readConfig, type Environment, type Flags, type ServerConfig } from "./config.ts";
export type { AgentDefinition, AgentMode, AgentTools } from "../harnesses/index.ts";
export type { HarnessConfig, GvisorHarness, ProcessHarness, QuickjsHarness, RemoteHarness, RemoteTls } from "./harness-config.ts";
export { createScriptedModel, parseScript, type Script } from "../models/index.ts";
export { joinTools } from "../spi/index.ts";
export { serve, type ServeOptions } from "./serve.ts";
export { SETTINGS, type Setting, type SettingName } from "./settings.ts";
export {
  createFunctionTools,
  type FunctionTool,
  type FunctionToolOutput,
  type FunctionToolRun,
  type McpServerOptions,
} from "../tools/index.ts";
export type { SpawnConfig } from "./spawn-config.ts";
export type { ToolsConfig } from "./tool-config.ts";
export { startServer, type RunningServer, type ServerOptions } from "./start.ts";
