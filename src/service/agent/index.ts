/** The interactive door. */

export { ClientDoor, type AgentServiceOptions, type ClientDoorOptions } from "./agent-service.ts";
export { createFeedbackService, type FeedbackServiceOptions } from "./feedback.ts";
export { AGENT_LIMITS, type AgentLimits } from "./limits.ts";
