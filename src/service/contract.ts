/**
 * The services as transports see them: async functions and async generators over the contract's messages. gRPC and REST are thin
 * adapters over the same handlers, so both give the same answers, the same errors and the same limits.
 */

import type { HoldfastError } from "../base/errors.ts";
import type { Seq } from "../base/ids.ts";
import type { SessionRequest, SessionResponse, TeamEvent, WatchTeamRequest } from "../gen/roz/v1/agent_pb.ts";
import type { StoredRecord } from "../journal/index.ts";
import type { Caller, Delta, Session } from "../spi/index.ts";
import type {
  ApproveRequest,
  ApproveResponse,
  CancelRequest,
  CreateSessionRequest,
  DeleteSessionRequest,
  ExecRequest,
  ForkRequest,
  ForkResponse,
  GetSessionRequest,
  ListSessionsRequest,
  ListSessionsResponse,
  ReplayRequest,
  ResumeRequest,
  SuspendRequest,
} from "../gen/agentsessions/v1/session_pb.ts";
import type { LineageRequest, LineageResponse } from "../gen/holdfast/v1/lineage_pb.ts";
import type {
  ApprovalUpdate,
  WatchApprovalsRequest,
  ListApprovalsRequest,
  ListApprovalsResponse,
  ListUnsettledRequest,
  ListUnsettledResponse,
  SettleCallRequest,
  SettleCallResponse,
} from "../gen/holdfast/v1/calls_pb.ts";
import type {
  CreateEnvironmentRequest,
  DeleteEnvironmentRequest,
  Environment,
  GetEnvironmentRequest,
  ListEnvironmentsRequest,
  ListEnvironmentsResponse,
  UpdateEnvironmentRequest,
} from "../gen/holdfast/v1/environments_pb.ts";
import type { ArchiveForm } from "../archive/index.ts";
import type { ExportRequest, ImportRequest, ImportResponse, SignedHead, SignHeadRequest } from "../gen/holdfast/v1/export_pb.ts";
import type { ListFeedbackRequest, ListFeedbackResponse } from "../gen/holdfast/v1/feedback_pb.ts";
import type { HistoryPage, MintTokenRequest, MintTokenResponse, ReadHistoryRequest } from "../gen/holdfast/v1/harness_wire_pb.ts";
import type { CheckReplayRequest, TurnCheck } from "../gen/holdfast/v1/replay_pb.ts";
import type { SteerRequest, SteerResponse } from "../gen/holdfast/v1/turns_pb.ts";
import type {
  CancelTaskRequest,
  CreateTaskRequest,
  GetTaskRequest,
  ListTasksRequest,
  ListTasksResponse,
  Task,
} from "../gen/holdfast/v1/tasks_pb.ts";
import type { TailRequest, VerifyRequest, VerifyResponse } from "../gen/holdfast/v1/journal_pb.ts";

/** What a transport knows of a call. */
export interface CallContext {
  readonly caller: Caller;
  /** Fires when the client went away, its deadline passed or the server drains. */
  readonly signal: AbortSignal;
}

/** A request of a stream, as it came. */
export type Incoming<Message> =
  | { readonly kind: "message"; readonly message: Message }
  /** What came is no request; `error` says why. */
  | { readonly kind: "malformed"; readonly error: HoldfastError };

/** What a transport knows of a call with streams both ways. */
export interface StreamContext extends CallContext {
  /** A value of the call's metadata; undefined where it has none under this key. */
  readonly metadata: (key: string) => string | undefined;
  /** Sends the headers of the response, once and before the first response. */
  readonly announce: (headers: Readonly<Record<string, string>>) => void;
}

/** A response of an interactive stream, and how much of its session its reader has seen with it. */
export interface AgentResponse {
  readonly response: SessionResponse;
  /** The seq of the last record whose effects the reader has. */
  readonly seq: Seq;
}

/** A frame of a live stream; the transport encodes it. A record's stored bytes go out as they are. */
export type StreamItem =
  | { readonly kind: "session"; readonly session: Session }
  | { readonly kind: "record"; readonly record: StoredRecord }
  | { readonly kind: "delta"; readonly delta: Delta };

/** `agentsessions.v1.Sessions`. */
export interface SessionsService {
  createSession(request: CreateSessionRequest, context: CallContext): Promise<Session>;
  getSession(request: GetSessionRequest, context: CallContext): Promise<Session>;
  listSessions(request: ListSessionsRequest, context: CallContext): Promise<ListSessionsResponse>;
  deleteSession(request: DeleteSessionRequest, context: CallContext): Promise<Session>;
  cancel(request: CancelRequest, context: CallContext): Promise<Session>;
  /** The first item is the Session; the stream ends without an error once END was committed. */
  exec(request: ExecRequest, context: CallContext): AsyncGenerator<StreamItem, void, undefined>;
  /** Commits a decision on an approval call; runs nothing. An exact retry is answered with the same record. */
  approve(request: ApproveRequest, context: CallContext): Promise<ApproveResponse>;
  /** Frees the session's compute. Repeating it changes nothing; ABORTED while a turn runs. */
  suspend(request: SuspendRequest, context: CallContext): Promise<Session>;
  /**
   * Brings a suspended session back, and lets its interrupted turn go on to its end. Resolves with the session then; a turn that
   * stops again is its error. Nothing to do changes nothing. A caller that goes away does not stop the turn.
   */
  resume(request: ResumeRequest, context: CallContext): Promise<Session>;
  /** Creates 1 to 128 children that share the session's records up to a seq; all of them or none. */
  fork(request: ForkRequest, context: CallContext): Promise<ForkResponse>;
  /** Pages of committed records. */
  replay(request: ReplayRequest, context: CallContext): AsyncGenerator<readonly StoredRecord[], void, undefined>;
}

/** `holdfast.v1.ToolCalls`. */
export interface ToolCallsService {
  /** Approval requests of a project that nobody has decided, with their arguments in full. */
  listApprovals(request: ListApprovalsRequest, context: CallContext): Promise<ListApprovalsResponse>;
  /** Requests that wait, then what is asked and decided. What is wrong with the request is thrown before the first. */
  watchApprovals(request: WatchApprovalsRequest, context: CallContext): AsyncGenerator<ApprovalUpdate, void, undefined>;
  /** A session's calls whose outcome is not known. */
  listUnsettled(request: ListUnsettledRequest, context: CallContext): Promise<ListUnsettledResponse>;
  /** Takes a person's word for what became of one. */
  settleCall(request: SettleCallRequest, context: CallContext): Promise<SettleCallResponse>;
}

/** `holdfast.v1.Turns`. */
export interface TurnsService {
  /** Gives a message to the turn that runs; answers once it is on record. */
  steer(request: SteerRequest, context: CallContext): Promise<SteerResponse>;
}

/** `holdfast.v1.Environments`. */
export interface EnvironmentsService {
  listEnvironments(request: ListEnvironmentsRequest, context: CallContext): Promise<ListEnvironmentsResponse>;
  getEnvironment(request: GetEnvironmentRequest, context: CallContext): Promise<Environment>;
  createEnvironment(request: CreateEnvironmentRequest, context: CallContext): Promise<Environment>;
  /** Replaces a definition as a whole; ABORTED where it is no longer what was read. */
  updateEnvironment(request: UpdateEnvironmentRequest, context: CallContext): Promise<Environment>;
  /** Answers with what was removed. */
  deleteEnvironment(request: DeleteEnvironmentRequest, context: CallContext): Promise<Environment>;
}

/** `holdfast.v1.Journal`. */
export interface JournalService {
  tail(request: TailRequest, context: CallContext): AsyncGenerator<StreamItem, void, undefined>;
  verify(request: VerifyRequest, context: CallContext): Promise<VerifyResponse>;
  /** Runs every ended turn again with its harness and says of each whether it does the same; calls and writes nothing (I0, I1). */
  checkReplay(request: CheckReplayRequest, context: CallContext): AsyncGenerator<TurnCheck, void, undefined>;
  /** The family of a session, from any member: its oldest ancestor and what was forked from it, deleted members included. */
  lineage(request: LineageRequest, context: CallContext): Promise<LineageResponse>;
  /** A session or its family as a file, piece by piece; what was wrong with the request is thrown before the first. */
  export(request: ExportRequest, context: CallContext, form?: ArchiveForm): AsyncGenerator<Uint8Array, void, undefined>;
  /** Takes over the sessions of a file, in either form. Nothing of it can be used before all of it was verified. */
  import(requests: AsyncIterable<ImportRequest>, context: CallContext): Promise<ImportResponse>;
  /** The session's head as it is now, signed by this host. */
  signHead(request: SignHeadRequest, context: CallContext): Promise<SignedHead>;
}

/** `roz.v1.AgentService`, the interactive door. */
export interface AgentService {
  /**
   * One conversation. What goes wrong in it is a response of it; the stream ends when its client ends it or goes away, when a newer one of the
   * same session takes over, and where it could not begin. A turn goes on without it.
   */
  streamSession(requests: AsyncIterable<Incoming<SessionRequest>>, context: StreamContext): AsyncGenerator<AgentResponse, void, undefined>;
  /** What the workers of a task do, from its beginning until the team has ended. NOT_FOUND for an unknown task, before the first. */
  watchTeam(request: WatchTeamRequest, context: CallContext): AsyncGenerator<TeamEvent, void, undefined>;
}

/** `holdfast.v1.Feedback`. */
export interface FeedbackService {
  /** A page of what clients said of a session's answers, in the order in which it came. */
  listFeedback(request: ListFeedbackRequest, context: CallContext): Promise<ListFeedbackResponse>;
}

/** `holdfast.v1.Tasks`. */
export interface TasksService {
  /** Creates the session of a task and begins its turn. Answers once its start is durable. */
  createTask(request: CreateTaskRequest, context: CallContext): Promise<Task>;
  listTasks(request: ListTasksRequest, context: CallContext): Promise<ListTasksResponse>;
  /** The whole task. NOT_FOUND for a session that was not created as one. */
  getTask(request: GetTaskRequest, context: CallContext): Promise<Task>;
  /** Cancels its turn and those of its workers. Answers once its end is durable. */
  cancelTask(request: CancelTaskRequest, context: CallContext): Promise<Task>;
}

/** `holdfast.v1.HarnessHost`: what a harness that is driven over the contract's own wire asks of its host. */
export interface HarnessHostService {
  /** Pages of the history of the caller's execution, oldest first; the last one says so. */
  readHistory(request: ReadHistoryRequest, context: CallContext): AsyncGenerator<HistoryPage, void, undefined>;
  /** A token with which the harness acts for the session's principal. FAILED_PRECONDITION on a host without a key. */
  mintToken(request: MintTokenRequest, context: CallContext): Promise<MintTokenResponse>;
}
