/**
 * The wire types of `agentsessions.v1` under the names that the SPI gives them. They are the generated types themselves:
 * there is no second hierarchy and nothing to map. `docs/spi.md` has the table of every name and why it differs.
 */

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { CapabilitiesSchema, HarnessDescriptorSchema, Resumability, type HarnessDescriptor } from "../gen/agentsessions/v1/harness_pb.ts";
import { MessageSchema, PartSchema, type Message } from "../gen/agentsessions/v1/common_pb.ts";

export {
  EventKind,
  Lifecycle_Kind as LifecycleKind,
  Mediation,
  ToolChoice_Mode as ToolChoiceMode,
  ToolResult_Code as ToolResultCode,
} from "../gen/agentsessions/v1/common_pb.ts";
export type {
  ApprovalRef,
  ApprovalRequest,
  ApprovalResult,
  Error as EventError,
  Event,
  ExecutionStart,
  FilePart,
  HarnessEnd,
  IdentityRef,
  Lifecycle,
  LogRecord,
  Message,
  ModelCall,
  Origin,
  Part,
  ReasoningPart,
  TextPart,
  ToolCall,
  ToolChoice,
  ToolDefinition,
  ToolResult,
  Usage,
} from "../gen/agentsessions/v1/common_pb.ts";
export { HoldfastError, type ErrorCode } from "../base/errors.ts";
export {
  ComputeState,
  DeletionState,
  ExecState,
  type ApproveRequest as ApprovalDecision,
  type ComputeRef,
  type Delta,
  type RuntimeCapabilities,
  type Session,
  type SnapshotRef,
} from "../gen/agentsessions/v1/session_pb.ts";
export { Resumability, type Capabilities, type HarnessDescriptor, type ToolSpec } from "../gen/agentsessions/v1/harness_pb.ts";

/**
 * A descriptor with its defaults: no tools and, unless capabilities are given, replayed from history alone and safe to fork. `version` is recorded with
 * every turn, and an interrupted turn is resumed by the same version only.
 */
export function describeHarness(
  init: { readonly id: string; readonly version: string } & MessageInitShape<typeof HarnessDescriptorSchema>,
): HarnessDescriptor {
  const descriptor = create(HarnessDescriptorSchema, init);
  descriptor.capabilities ??= create(CapabilitiesSchema, { resumability: Resumability.STATELESS_REPLAY, forkSafe: true });
  return descriptor;
}

/** A message with one text part. */
export function textMessage(role: "system" | "user" | "assistant" | "tool", text: string): Message {
  return create(MessageSchema, {
    role,
    parts: [create(PartSchema, { part: { case: "text", value: { text } } })],
  });
}

/** The text parts of a message, joined; other parts are passed over. */
export function messageText(message: Message): string {
  let text = "";
  for (const part of message.parts) {
    if (part.part.case === "text") text += part.part.value.text;
  }
  return text;
}
