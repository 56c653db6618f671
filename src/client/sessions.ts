/** `agentsessions.v1.Sessions` for callers. */

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { IdentityRefSchema, type ApprovalRef, type LogRecord, type OriginSchema } from "../gen/agentsessions/v1/common_pb.ts";
import {
  ApproveRequestSchema,
  CancelRequestSchema,
  CreateSessionRequestSchema,
  DeleteSessionRequestSchema,
  ForkRequestSchema,
  GetSessionRequestSchema,
  ReplayRequestSchema,
  ResumeRequestSchema,
  Sessions,
  SuspendRequestSchema,
  type ApproveResponse,
  type ReplayRequest,
  type Session,
} from "../gen/agentsessions/v1/session_pb.ts";
import { execRequestOf, type ExecTurn } from "./exec-request.ts";
import { ExecStream, type ExecOptions } from "./exec-stream.ts";
import type { RecordItem } from "./items.ts";
import { listSessions, type ListOptions, type SessionList } from "./list.ts";
import { wireSeq, type SeqLike } from "./seqs.ts";
import type { CallOptions, Transport } from "./transport.ts";

/** What a session is created with; everything may be left out. */
export interface SessionInit {
  /** Default: the default project. */
  readonly project?: string | undefined;
  /** A name that no other live session of the project has. */
  readonly name?: string | undefined;
  /** The harness that drives its turns. Default: the server's. */
  readonly harness?: string | undefined;
  /** Its default model. */
  readonly model?: string | undefined;
  /** On whose behalf its effects happen. */
  readonly identity?: MessageInitShape<typeof IdentityRefSchema> | undefined;
  /** Where it came from. */
  readonly origin?: MessageInitShape<typeof OriginSchema> | undefined;
  /** Short texts to select sessions by. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Larger texts that nobody selects by. */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

/** Which turn to cancel, and why. */
export interface CancelOptions extends CallOptions {
  /** Only this turn: FAILED_PRECONDITION when another one is open. Default: whichever is. */
  readonly executionId?: string | undefined;
  /** As the journal records it. Default `USER`. */
  readonly reason?: "USER" | "TIMEOUT" | "INTERNAL" | undefined;
}

/** A decision on an approval request. */
export interface Decision {
  readonly approved: boolean;
  /** Why it was decided so; the agent is told. */
  readonly reason?: string | undefined;
  /** Who decided; it is recorded and grants nothing. Default: the caller, as far as the server knows it. */
  readonly identity?: MessageInitShape<typeof IdentityRefSchema> | undefined;
}

/** Where to fork, and into what. */
export interface ForkOptions extends CallOptions {
  /** The last record that the children share; 0 means the head. Default 0. */
  readonly atSeq?: SeqLike | undefined;
  /** How many children: 1 to 128. Default: one for each name, or 1. */
  readonly count?: number | undefined;
  /** A name for each child, "" for one without; none at all leaves all of them without. */
  readonly names?: readonly string[] | undefined;
  /** The children's labels; they inherit none. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** How long a resumed turn is waited for when the caller names no time. It goes on after that. */
const RESUME_TIMEOUT_MS = 3_600_000;

/** A range of records, both ends included. */
export interface ReplayOptions extends CallOptions {
  /** The first seq; 0 and 1 both mean the first record. Default 0. */
  readonly fromSeq?: SeqLike | undefined;
  /** The last seq; 0 means the head. Default 0. */
  readonly toSeq?: SeqLike | undefined;
}

/** The Sessions calls. Each rejects with a HoldfastError that has the server's code, message and field. */
export class SessionsClient {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Creates a session. ALREADY_EXISTS for a taken name, INVALID_ARGUMENT for an unknown harness. */
  create(init: SessionInit = {}, options: CallOptions = {}): Promise<Session> {
    const request = create(CreateSessionRequestSchema, {
      session: {
        metadata: { project: init.project ?? "", name: init.name ?? "" },
        harness: init.harness ?? "",
        model: init.model ?? "",
        labels: { ...init.labels },
        annotations: { ...init.annotations },
        ...(init.identity === undefined ? {} : { identity: init.identity }),
        ...(init.origin === undefined ? {} : { origin: init.origin }),
      },
    });
    return this.#transport.unary(Sessions.method.createSession, request, options);
  }

  /** Reads a session, deleted ones included. NOT_FOUND for an unknown uid. */
  get(uid: string, options: CallOptions = {}): Promise<Session> {
    return this.#transport.unary(Sessions.method.getSession, create(GetSessionRequestSchema, { uid }), options);
  }

  /** The live sessions of a project, newest first; asks for pages as they are iterated. */
  list(options: ListOptions = {}): SessionList {
    return listSessions(this.#transport, options);
  }

  /** Records the intent to delete, after cancelling a running turn. Repeating it changes nothing. */
  delete(uid: string, options: CallOptions = {}): Promise<Session> {
    return this.#transport.unary(Sessions.method.deleteSession, create(DeleteSessionRequestSchema, { uid }), options);
  }

  /** Cancels the open turn and answers once its END is durable; a session without one is returned as it is. */
  cancel(uid: string, { executionId = "", reason = "USER", ...options }: CancelOptions = {}): Promise<Session> {
    const request = create(CancelRequestSchema, { session: uid, executionId, reason });
    return this.#transport.unary(Sessions.method.cancel, request, options);
  }

  /**
   * Decides an approval request; `ref` is the session's `pendingApproval`. It runs nothing: `resume` does. The same decision again is
   * answered with the same record; another one is FAILED_PRECONDITION, as is a reference that is wrong or stale.
   */
  approve(
    uid: string,
    ref: ApprovalRef,
    { approved, reason = "", identity }: Decision,
    options: CallOptions = {},
  ): Promise<ApproveResponse> {
    const { executionId, toolCallId, requestSeq } = ref;
    const request = create(ApproveRequestSchema, { session: uid, executionId, toolCallId, requestSeq, approved, reason });
    if (identity !== undefined) request.identity = create(IdentityRefSchema, identity);
    return this.#transport.unary(Sessions.method.approve, request, options);
  }

  /** Frees the session's compute: COMPUTE_COLD. Repeating it changes nothing. ABORTED while a turn runs. */
  suspend(uid: string, options: CallOptions = {}): Promise<Session> {
    return this.#transport.unary(Sessions.method.suspend, create(SuspendRequestSchema, { session: uid }), options);
  }

  /**
   * Brings a suspended session back and lets its interrupted turn go on: what is recorded is served, what follows is live. Answers
   * with the session once that turn has ended or waits for a decision; a turn that stops again is its error. Nothing to do changes
   * nothing. FAILED_PRECONDITION where the turn may not go on there. The turn goes on when its client goes away.
   * `timeoutMs` is an hour unless it is given.
   */
  resume(uid: string, { signal, timeoutMs = RESUME_TIMEOUT_MS }: CallOptions = {}): Promise<Session> {
    return this.#transport.unary(Sessions.method.resume, create(ResumeRequestSchema, { session: uid }), { signal, timeoutMs });
  }

  /**
   * Forks a session into children that share its records up to a seq by reference: all of them or none. FAILED_PRECONDITION past the
   * head, ALREADY_EXISTS for a taken name.
   */
  async fork(uid: string, { atSeq, count, names = [], labels = {}, ...options }: ForkOptions = {}): Promise<readonly Session[]> {
    const request = create(ForkRequestSchema, {
      session: uid,
      atSeq: wireSeq(atSeq, "atSeq"),
      count: count ?? Math.max(1, names.length),
      childNames: [...names],
      labels: { ...labels },
    });
    return (await this.#transport.unary(Sessions.method.fork, request, options)).children;
  }

  /**
   * Runs a turn. The session comes first, then records as they commit and deltas as they come. The turn goes on when its
   * client goes away; a stream whose connection was lost picks it up by itself. It begins with the first read.
   */
  exec(turn: ExecTurn, options: ExecOptions = {}): ExecStream {
    return new ExecStream(this.#transport, execRequestOf(turn), options);
  }

  /** The committed records of a range, in order. A range past the head is empty. */
  async *replay(uid: string, options: ReplayOptions = {}): AsyncGenerator<RecordItem, void, undefined> {
    const records: AsyncIterable<LogRecord> = this.#transport.stream(Sessions.method.replay, replayRequest(uid, options), options);
    for await (const record of records) yield { kind: "record", record };
  }

  /** Like `replay`, each record as its stored bytes (an encoded LogRecord): to copy, export or verify a journal. */
  replayBytes(uid: string, options: ReplayOptions = {}): AsyncGenerator<Uint8Array, void, undefined> {
    return this.#transport.streamBytes(Sessions.method.replay, replayRequest(uid, options), options);
  }
}

function replayRequest(session: string, { fromSeq, toSeq }: ReplayOptions): ReplayRequest {
  return create(ReplayRequestSchema, { session, fromSeq: wireSeq(fromSeq, "fromSeq"), toSeq: wireSeq(toSeq, "toSeq") });
}
