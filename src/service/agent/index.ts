/** The interactive door. */

export { ClientDoor, type AgentServiceOptions, type ClientDoorOptions } from "./agent-service.ts";
export { AGENT_LIMITS, type AgentLimits } from "./limits.ts";
