/** The built-in agent: the tool loop over any model. */

export { createAgentHarness, createDefinedAgent } from "./agent.ts";
export type { AgentDefinition, AgentMode, AgentTools, SchemaCompiler } from "./definition.ts";
