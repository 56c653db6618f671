/** `holdfast.v1.ToolCalls` for callers: what waits for a person. */

import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "../base/errors.ts";
import type { Session } from "../gen/agentsessions/v1/session_pb.ts";
import {
  ListApprovalsRequestSchema,
  ListUnsettledRequestSchema,
  SettleCallRequest_Outcome,
  SettleCallRequestSchema,
  ToolCalls,
  WatchApprovalsRequestSchema,
  type ApprovalUpdate,
  type PendingApproval,
  type UnsettledCall,
} from "../gen/holdfast/v1/calls_pb.ts";
import type { CallOptions, Transport } from "./transport.ts";

/** Which approval requests to list. */
export interface ApprovalsOptions extends CallOptions {
  /** Default: the default project. */
  readonly project?: string | undefined;
  /** Sessions that one call of the server looks at. Default: the server's. */
  readonly pageSize?: number | undefined;
}

const OUTCOMES = {
  done: SettleCallRequest_Outcome.DONE,
  failed: SettleCallRequest_Outcome.FAILED,
  retry: SettleCallRequest_Outcome.RETRY,
} as const;

/** What a person says of a call whose outcome is not known. */
export type CallOutcome = keyof typeof OUTCOMES;

/** The calls of ToolCalls. Each rejects with a HoldfastError that has the server's code, message and field. */
export class ToolCallsClient {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The approval requests of a project that nobody has decided; asks for pages as they are iterated. */
  async *approvals({ project = "", pageSize = 0, ...options }: ApprovalsOptions = {}): AsyncGenerator<PendingApproval, void, undefined> {
    let pageToken = "";
    do {
      const request = create(ListApprovalsRequestSchema, { project, pageSize, pageToken });
      const page = await this.#transport.unary(ToolCalls.method.listApprovals, request, options);
      yield* page.approvals;
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
  }

  /**
   * A project's requests as they come and are decided: those that wait, a `listed`, then what happens. Ends with the signal, and rejects
   * when the server shuts down (UNAVAILABLE) or the caller was too slow (ABORTED): then it is watched anew.
   */
  watchApprovals({ project = "", ...options }: Omit<ApprovalsOptions, "pageSize"> = {}): AsyncIterable<ApprovalUpdate> {
    return this.#transport.stream(ToolCalls.method.watchApprovals, create(WatchApprovalsRequestSchema, { project }), options);
  }

  /** A session's calls of which nobody knows whether they took effect. */
  async unsettled(session: string, options: CallOptions = {}): Promise<readonly UnsettledCall[]> {
    const request = create(ListUnsettledRequestSchema, { session });
    return (await this.#transport.unary(ToolCalls.method.listUnsettled, request, options)).calls;
  }

  /** Says what became of such a call. It runs nothing. FAILED_PRECONDITION where there is nothing to settle. */
  async settle(session: string, toolCallId: string, as: CallOutcome, options: CallOptions = {}): Promise<Session> {
    const request = create(SettleCallRequestSchema, { session, toolCallId, outcome: OUTCOMES[as] });
    const answer = await this.#transport.unary(ToolCalls.method.settleCall, request, options);
    if (answer.session === undefined) throw new HoldfastError("internal", "settle: the server answered without a session");
    return answer.session;
  }
}
