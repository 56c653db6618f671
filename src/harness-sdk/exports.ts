/** What a harness is written with, wherever it runs. */

export { HoldfastError, type ErrorCode } from "../base/errors.ts";
export { Mediation, ToolChoice_Mode as ToolChoiceMode, EventKind } from "../gen/agentsessions/v1/common_pb.ts";
export { Resumability } from "../gen/agentsessions/v1/harness_pb.ts";
export { ApprovalParkedError, HarnessFailure, isParkUnwind } from "../spi/faults.ts";
export type { CallOptions, Harness, History, HistoryPage, IdentityContext, Start, TokenMinter } from "../spi/harness.ts";
export type { ModelResponse } from "../spi/model.ts";
export type {
  ApprovalRef,
  Capabilities,
  Event,
  HarnessDescriptor,
  IdentityRef,
  Message,
  Part,
  ToolCall,
  ToolChoice,
  ToolDefinition,
  ToolResult,
  Usage,
} from "../spi/wire.ts";
export type { ModelAsk, ToolAsk, TurnSink, UsageInit } from "./author-sink.ts";
export { defineHarness, type DeclaredTool, type HarnessDefinition, type TurnContext } from "./define.ts";
export {
  messageText,
  textMessage,
  textPart,
  toolCallsOf,
  toolDefinition,
  toolResult,
  toolResultMessage,
  type ToolOffer,
  type ToolResultInit,
} from "./messages.ts";
export type { ServedHarness, ServeOptions } from "./serving.ts";
