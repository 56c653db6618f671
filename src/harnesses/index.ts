/** The harnesses that run in the host's own process. */

export {
  createAgentHarness,
  createDefinedAgent,
  parseAgent,
  type AgentDefinition,
  type AgentMode,
  type AgentTools,
} from "./agent/index.ts";
export { createChatHarness } from "./chat.ts";
export { parseChatConfig, type ChatConfig } from "./chat-config.ts";
export { Conversation, conversationOf } from "./conversation.ts";
export { createEchoHarness } from "./echo.ts";
export { createHistoryHarness } from "./history.ts";
