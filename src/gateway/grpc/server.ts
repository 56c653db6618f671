/** The gRPC front door of session clients: which services it has. */

import type { UntypedServiceImplementation } from "@grpc/grpc-js";
import { toBinary, type DescService } from "@bufbuild/protobuf";
import type { HoldfastError } from "../../base/errors.ts";
import { Sessions } from "../../gen/agentsessions/v1/session_pb.ts";
import { ApprovalUpdateSchema, ToolCalls } from "../../gen/holdfast/v1/calls_pb.ts";
import { Environments } from "../../gen/holdfast/v1/environments_pb.ts";
import { Feedback } from "../../gen/holdfast/v1/feedback_pb.ts";
import { HarnessHost } from "../../gen/holdfast/v1/harness_host_pb.ts";
import { HistoryPageSchema } from "../../gen/holdfast/v1/harness_wire_pb.ts";
import { Journal } from "../../gen/holdfast/v1/journal_pb.ts";
import { Tasks } from "../../gen/holdfast/v1/tasks_pb.ts";
import { Turns } from "../../gen/holdfast/v1/turns_pb.ts";
import { AgentService as Agent } from "../../gen/roz/v1/agent_pb.ts";
import type {
  AgentService,
  FeedbackService,
  EnvironmentsService,
  HarnessHostService,
  JournalService,
  SessionsService,
  TasksService,
  ToolCallsService,
  TurnsService,
} from "../../service/contract.ts";
import type { OpenCalls } from "./calls.ts";
import { createGrpcDoor, DOOR_SERVICES, type GrpcDoorOptions, type GrpcServer, type ServedService } from "./door.ts";
import { serveDuplex } from "./duplex.ts";
import { checkBytes, pieceBytes, recordBytes, refusalBytes, responseBytes, teamEventBytes, updateBytes } from "./frames.ts";
import { serveStream } from "./streaming.ts";
import { serveUnary } from "./unary.ts";
import { serveUpload } from "./upload.ts";

export type { GrpcServer } from "./door.ts";

export interface GrpcServerOptions extends Omit<GrpcDoorOptions, "lastWord"> {
  readonly sessions: SessionsService;
  readonly journal: JournalService;
  readonly toolCalls: ToolCallsService;
  readonly turns: TurnsService;
  /** Absent where none is kept. */
  readonly feedback?: FeedbackService | undefined;
  /** Absent where there are no tasks. */
  readonly tasks?: TasksService | undefined;
  /** Absent where there are none to be read and changed. */
  readonly environments?: EnvironmentsService | undefined;
  /** The interactive door; absent where there is none. */
  readonly agent?: AgentService | undefined;
  /** Served to harnesses, by `authenticateHarness`; absent where there are none elsewhere. */
  readonly harnessHost?: HarnessHostService | undefined;
}

/** The services that such a door has whatever it is made of. */
export const SERVICES: readonly DescService[] = [Sessions, Journal, ToolCalls, Turns, ...DOOR_SERVICES];

/** Creates the gRPC front door. */
export function createGrpcServer(options: GrpcServerOptions): GrpcServer {
  return createGrpcDoor({ ...options, lastWord }, (calls) => [
    [Sessions, sessionsHandlers(calls, options.sessions)],
    [Journal, journalHandlers(calls, options.journal)],
    [ToolCalls, toolCallsHandlers(calls, options.toolCalls)],
    [Turns, turnsHandlers(calls, options.turns)],
    ...(options.feedback === undefined ? [] : [feedbackOf(calls, options.feedback)]),
    ...(options.tasks === undefined ? [] : [tasksOf(calls, options.tasks)]),
    ...(options.environments === undefined ? [] : [environmentsOf(calls, options.environments)]),
    ...(options.agent === undefined ? [] : [agentOf(calls, options.agent)]),
    ...(options.harnessHost === undefined ? [] : [harnessHostOf(calls, options.harnessHost)]),
  ]);
}

function feedbackOf(calls: OpenCalls, feedback: FeedbackService): ServedService {
  const { method } = Feedback;
  return [
    Feedback,
    { ListFeedback: serveUnary(calls, method.listFeedback, (request, context) => feedback.listFeedback(request, context)) },
  ];
}

function tasksOf(calls: OpenCalls, tasks: TasksService): ServedService {
  const { method } = Tasks;
  return [
    Tasks,
    {
      CreateTask: serveUnary(calls, method.createTask, (request, context) => tasks.createTask(request, context)),
      ListTasks: serveUnary(calls, method.listTasks, (request, context) => tasks.listTasks(request, context)),
      GetTask: serveUnary(calls, method.getTask, (request, context) => tasks.getTask(request, context)),
      CancelTask: serveUnary(calls, method.cancelTask, (request, context) => tasks.cancelTask(request, context)),
    },
  ];
}

/** A conversation ends with a message that says why, before its status does. */
function lastWord(path: string, error: HoldfastError): Uint8Array | undefined {
  return path === `/${Agent.typeName}/${Agent.method.streamSession.name}` ? refusalBytes(error) : undefined;
}

function agentOf(calls: OpenCalls, agent: AgentService): ServedService {
  const { method } = Agent;
  return [
    Agent,
    {
      StreamSession: serveDuplex(calls, method.streamSession, {
        open: (requests, context) => agent.streamSession(requests, context),
        encode: responseBytes,
      }),
      WatchTeam: serveStream(calls, method.watchTeam, {
        open: (request, context) => agent.watchTeam(request, context),
        encode: teamEventBytes,
      }),
    },
  ];
}

function harnessHostOf(calls: OpenCalls, harnessHost: HarnessHostService): ServedService {
  const { method } = HarnessHost;
  return [
    HarnessHost,
    {
      ReadHistory: serveStream(calls, method.readHistory, {
        open: (request, context) => harnessHost.readHistory(request, context),
        encode: (page) => [toBinary(HistoryPageSchema, page)],
      }),
      MintToken: serveUnary(calls, method.mintToken, (request, context) => harnessHost.mintToken(request, context)),
    },
  ];
}

function sessionsHandlers(calls: OpenCalls, sessions: SessionsService): UntypedServiceImplementation {
  const { method } = Sessions;
  return {
    CreateSession: serveUnary(calls, method.createSession, (request, context) => sessions.createSession(request, context)),
    GetSession: serveUnary(calls, method.getSession, (request, context) => sessions.getSession(request, context)),
    ListSessions: serveUnary(calls, method.listSessions, (request, context) => sessions.listSessions(request, context)),
    DeleteSession: serveUnary(calls, method.deleteSession, (request, context) => sessions.deleteSession(request, context)),
    Approve: serveUnary(calls, method.approve, (request, context) => sessions.approve(request, context)),
    Cancel: serveUnary(calls, method.cancel, (request, context) => sessions.cancel(request, context)),
    Suspend: serveUnary(calls, method.suspend, (request, context) => sessions.suspend(request, context)),
    Resume: serveUnary(calls, method.resume, (request, context) => sessions.resume(request, context)),
    Fork: serveUnary(calls, method.fork, (request, context) => sessions.fork(request, context)),
    Exec: serveStream(calls, method.exec, {
      open: (request, context) => sessions.exec(request, context),
      encode: updateBytes,
      endsItself: true,
    }),
    Replay: serveStream(calls, method.replay, { open: (request, context) => sessions.replay(request, context), encode: recordBytes }),
  };
}

function toolCallsHandlers(calls: OpenCalls, toolCalls: ToolCallsService): UntypedServiceImplementation {
  const { method } = ToolCalls;
  return {
    ListApprovals: serveUnary(calls, method.listApprovals, (request, context) => toolCalls.listApprovals(request, context)),
    WatchApprovals: serveStream(calls, method.watchApprovals, {
      open: (request, context) => toolCalls.watchApprovals(request, context),
      encode: (update) => [toBinary(ApprovalUpdateSchema, update)],
    }),
    ListUnsettled: serveUnary(calls, method.listUnsettled, (request, context) => toolCalls.listUnsettled(request, context)),
    SettleCall: serveUnary(calls, method.settleCall, (request, context) => toolCalls.settleCall(request, context)),
  };
}

function turnsHandlers(calls: OpenCalls, turns: TurnsService): UntypedServiceImplementation {
  return { Steer: serveUnary(calls, Turns.method.steer, (request, context) => turns.steer(request, context)) };
}

function environmentsOf(calls: OpenCalls, environments: EnvironmentsService): ServedService {
  const { method } = Environments;
  return [
    Environments,
    {
      ListEnvironments: serveUnary(calls, method.listEnvironments, (request, context) => environments.listEnvironments(request, context)),
      GetEnvironment: serveUnary(calls, method.getEnvironment, (request, context) => environments.getEnvironment(request, context)),
      CreateEnvironment: serveUnary(calls, method.createEnvironment, (request, context) =>
        environments.createEnvironment(request, context),
      ),
      UpdateEnvironment: serveUnary(calls, method.updateEnvironment, (request, context) =>
        environments.updateEnvironment(request, context),
      ),
      DeleteEnvironment: serveUnary(calls, method.deleteEnvironment, (request, context) =>
        environments.deleteEnvironment(request, context),
      ),
    },
  ];
}

function journalHandlers(calls: OpenCalls, journal: JournalService): UntypedServiceImplementation {
  const { method } = Journal;
  return {
    Tail: serveStream(calls, method.tail, { open: (request, context) => journal.tail(request, context), encode: updateBytes }),
    Verify: serveUnary(calls, method.verify, (request, context) => journal.verify(request, context)),
    CheckReplay: serveStream(calls, method.checkReplay, {
      open: (request, context) => journal.checkReplay(request, context),
      encode: checkBytes,
    }),
    Lineage: serveUnary(calls, method.lineage, (request, context) => journal.lineage(request, context)),
    Export: serveStream(calls, method.export, { open: (request, context) => journal.export(request, context), encode: pieceBytes }),
    Import: serveUpload(calls, method.import, (requests, context) => journal.import(requests, context)),
    SignHead: serveUnary(calls, method.signHead, (request, context) => journal.signHead(request, context)),
  };
}
