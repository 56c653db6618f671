/** The client: the calls of Holdfast over a transport. */

import type { ApprovalRef } from "../gen/agentsessions/v1/common_pb.ts";
import type { ApproveResponse, Session } from "../gen/agentsessions/v1/session_pb.ts";
import type { SignedHead } from "../gen/holdfast/v1/export_pb.ts";
import type { VerifyResponse } from "../gen/holdfast/v1/journal_pb.ts";
import type { SteerResponse } from "../gen/holdfast/v1/turns_pb.ts";
import type { LineageResponse } from "../gen/holdfast/v1/lineage_pb.ts";
import { AgentClient } from "./agent.ts";
import type { CheckReplayOptions, ReplayCheck } from "./checks.ts";
import type { ExecInput, ExecTurn } from "./exec-request.ts";
import type { ExecOptions, ExecStream } from "./exec-stream.ts";
import type { RecordItem, StreamItem } from "./items.ts";
import { JournalClient, type ExportOptions, type LineageOptions } from "./journal.ts";
import { SessionsClient, type CancelOptions, type Decision, type ForkOptions, type ReplayOptions } from "./sessions.ts";
import type { TailOptions } from "./tail.ts";
import { ToolCallsClient } from "./tool-calls.ts";
import { TurnsClient } from "./turns.ts";
import type { CallOptions, Transport } from "./transport.ts";

/** What a client is made of. */
export interface ClientOptions {
  readonly transport: Transport;
}

/** One session, by its uid; nothing is asked until a method is called. */
export interface SessionHandle {
  readonly uid: string;
  get(options?: CallOptions): Promise<Session>;
  delete(options?: CallOptions): Promise<Session>;
  cancel(options?: CancelOptions): Promise<Session>;
  approve(ref: ApprovalRef, decision: Decision, options?: CallOptions): Promise<ApproveResponse>;
  suspend(options?: CallOptions): Promise<Session>;
  resume(options?: CallOptions): Promise<Session>;
  fork(options?: ForkOptions): Promise<readonly Session[]>;
  steer(input: ExecInput, options?: CallOptions): Promise<SteerResponse>;
  exec(turn?: Omit<ExecTurn, "session">, options?: ExecOptions): ExecStream;
  replay(options?: ReplayOptions): AsyncGenerator<RecordItem, void, undefined>;
  tail(options?: TailOptions): AsyncGenerator<StreamItem, void, undefined>;
  verify(options?: CallOptions): Promise<VerifyResponse>;
  export(options?: ExportOptions): AsyncGenerator<Uint8Array, void, undefined>;
  signHead(options?: CallOptions): Promise<SignedHead>;
  checkReplay(options?: CheckReplayOptions): AsyncGenerator<ReplayCheck, void, undefined>;
  lineage(options?: LineageOptions): Promise<LineageResponse>;
}

/** A client of one server. Disposing of it closes its transport. */
export interface Client extends AsyncDisposable {
  readonly sessions: SessionsClient;
  readonly journal: JournalClient;
  readonly toolCalls: ToolCallsClient;
  readonly turns: TurnsClient;
  readonly agent: AgentClient;
  /** The calls of one session. */
  session(uid: string): SessionHandle;
}

/** A client over `transport`, which it owns from now on. */
export function createClient({ transport }: ClientOptions): Client {
  const sessions = new SessionsClient(transport);
  const journal = new JournalClient(transport);
  const toolCalls = new ToolCallsClient(transport);
  const turns = new TurnsClient(transport);
  const agent = new AgentClient(transport);
  return {
    sessions,
    journal,
    toolCalls,
    turns,
    agent,
    session: (uid) => ({
      uid,
      get: (options) => sessions.get(uid, options),
      delete: (options) => sessions.delete(uid, options),
      cancel: (options) => sessions.cancel(uid, options),
      approve: (ref, decision, options) => sessions.approve(uid, ref, decision, options),
      suspend: (options) => sessions.suspend(uid, options),
      resume: (options) => sessions.resume(uid, options),
      fork: (options) => sessions.fork(uid, options),
      steer: (input, options) => turns.steer(uid, input, options),
      exec: (turn, options) => sessions.exec({ ...turn, session: uid }, options),
      replay: (options) => sessions.replay(uid, options),
      tail: (options) => journal.tail(uid, options),
      verify: (options) => journal.verify(uid, options),
      export: (options) => journal.export(uid, options),
      signHead: (options) => journal.signHead(uid, options),
      checkReplay: (options) => journal.checkReplay(uid, options),
      lineage: (options) => journal.lineage(uid, options),
    }),
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  };
}
