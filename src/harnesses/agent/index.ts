/** The built-in agent: the tool loop over any model. */

export { createAgentHarness, createDefinedAgent } from "./agent.ts";
export { parseAgent } from "./definition.ts";
export type { AgentDefinition, AgentMode, AgentTools, SchemaCompiler } from "./definition.ts";
