/**
 * The client of Holdfast. This entry runs anywhere JavaScript does; `holdfast/client/node` has the transport for Node.
 *
 * @example
 * ```ts
 * import { createClient } from "holdfast/client";
 * import { createNodeTransport } from "holdfast/client/node";
 *
 * await using client = createClient({ transport: createNodeTransport({ address: "http://127.0.0.1:8080" }) });
 * const turn = client.sessions.exec({ inputs: "hello" });
 * for await (const item of turn) {
 *   if (item.kind === "delta") process.stdout.write(item.delta.chunk);
 * }
 * console.log(turn.sessionUid, turn.end);
 * ```
 */

export { HoldfastError, type ErrorCode } from "../base/errors.ts";
export { AgentClient } from "./agent.ts";
export type { AgentEvent } from "./agent-events.ts";
export { AgentSession, type AgentSessionEvent, type AgentSessionOptions } from "./agent-session.ts";
export { AgentStream, type AgentAttachment, type AgentRequest, type AgentStreamOptions } from "./agent-stream.ts";
export type { AgentToolResult } from "./agent-work.ts";
export type { RetractedChars } from "./delta-tail.ts";
export type { WatchTeamOptions } from "./team-events.ts";
export type { CheckReplayOptions, ReplayCheck } from "./checks.ts";
export { createClient, type Client, type ClientOptions, type SessionHandle } from "./client.ts";
export type { ExecInput, ExecTurn } from "./exec-request.ts";
export { ExecStream, type ExecOptions, type TurnEnd } from "./exec-stream.ts";
export type { RecordItem, StreamItem } from "./items.ts";
export { JournalClient, type ExportOptions, type LineageOptions } from "./journal.ts";
export type { ListOptions, SessionList, SessionPage } from "./list.ts";
export type { ReconnectOptions } from "./reconnect.ts";
export type { SeqLike } from "./seqs.ts";
export { SessionsClient, type CancelOptions, type Decision, type ForkOptions, type ReplayOptions, type SessionInit } from "./sessions.ts";
export type { TailOptions } from "./tail.ts";
export { ToolCallsClient, type ApprovalsOptions, type CallOutcome } from "./tool-calls.ts";
export { TurnsClient } from "./turns.ts";
export type { CallOptions, Duplex, DuplexOptions, Method, Transport } from "./transport.ts";
export { EventKind, type ApprovalRef, type Event, type LogRecord, type Message, type Part } from "../gen/agentsessions/v1/common_pb.ts";
export {
  ComputeState,
  DeletionState,
  ExecState,
  type ApproveResponse,
  type Delta,
  type Session,
} from "../gen/agentsessions/v1/session_pb.ts";
export { ImportedSession_Outcome, type ImportedSession, type ImportResponse, type SignedHead } from "../gen/holdfast/v1/export_pb.ts";
export type { ChainFault, VerifyResponse } from "../gen/holdfast/v1/journal_pb.ts";
export type { ApprovalUpdate, DecidedApproval, PendingApproval, UnsettledCall } from "../gen/holdfast/v1/calls_pb.ts";
export type { SteerResponse } from "../gen/holdfast/v1/turns_pb.ts";
export type { LineageResponse, LineageRow } from "../gen/holdfast/v1/lineage_pb.ts";
export type { ReplayDivergence, TurnCheck } from "../gen/holdfast/v1/replay_pb.ts";
export {
  ToolCategoryHint,
  type PermissionRule,
  type TeamEvent,
  type TokenUsage,
  type ToolRequest,
  type TurnComplete,
} from "../gen/roz/v1/agent_pb.ts";
