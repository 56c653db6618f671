/** Planted faults of tools and approvals. */

import { create } from "@bufbuild/protobuf";
import { LogRecordSchema, type LogRecord, type ToolResult } from "../../gen/agentsessions/v1/common_pb.ts";
import { ApproveResponseSchema, ComputeState, ExecState, SessionSchema } from "../../gen/agentsessions/v1/session_pb.ts";
import { changed, instead, mapped, withState, type PlantedFault } from "./planted-faults.ts";
import type { Fault } from "./faulty-transport.ts";
import { wordOf } from "./words.ts";

/** Replays records with another TOOL_RESULT. Their hashes stay what they were. */
function withResults(change: (result: ToolResult) => void): Pick<Fault, "Replay"> {
  return {
    Replay: (request, real) =>
      mapped(real(request), (record) => [
        changed(record, ({ event }) => {
          if (event?.body.case === "result") change(event.body.value);
        }),
      ]),
  };
}

/** Replays without the records that `hides` picks. */
function without(hides: (record: LogRecord) => boolean): Pick<Fault, "Replay"> {
  return { Replay: (request, real) => mapped(real(request), (record) => (hides(record) ? [] : [record])) };
}

export const TOOL_FAULTS: readonly PlantedFault[] = [
  {
    name: "a tool's result is recorded without its call",
    caughtBy: ["tools/recorded-once"],
    says: /breaks at seq|expected TOOL_CALL/,
    plant: () => without((record) => wordOf(record) === "TOOL_CALL"),
  },
  {
    name: "an executor's failure is recorded as a success",
    caughtBy: ["tools/executor-failure"],
    says: /expected a TOOL_RESULT with is_error and EXECUTOR_ERROR/,
    plant: () => withResults((result) => (result.isError = false)),
  },
];

export const APPROVE_FAULTS: readonly PlantedFault[] = [
  {
    name: "a parked session stays live",
    caughtBy: ["approve/parks"],
    says: /compute_state/,
    plant: () => ({ GetSession: async (request, real) => Object.assign(await real(request), { computeState: ComputeState.COMPUTE_LIVE }) }),
  },
  {
    name: "Approve resumes the session as well",
    caughtBy: ["approve/decision-runs-nothing"],
    says: /the records that Approve adds: expected \["APPROVAL_RESULT"\]/,
    plant: () => ({
      Approve: async (request, real) => real(request),
      Replay: (request, real) =>
        mapped(real(request), (record) => (wordOf(record) === "APPROVAL_RESULT" ? [record, changed(record, () => undefined)] : [record])),
    }),
  },
  {
    name: "a receipt does not name its decision",
    caughtBy: ["approve/approved"],
    says: /breaks at seq|request and decision/,
    plant: () => withResults((result) => (result.approvalDecisionSeq = 0n)),
  },
  {
    name: "an omitted decision is a denial, and a denial an approval",
    caughtBy: ["approve/denied"],
    says: /the receipt of a denied call/,
    plant: () => ({ Approve: (request, real) => real({ ...request, approved: true }) }),
  },
  {
    name: "an exact retry is answered with another record",
    caughtBy: ["approve/exact-retry"],
    says: /Approve, again at once: decision/,
    plant: () => {
      let calls = 0;
      return {
        Approve: async (request, real) => {
          const answer = await real(request);
          return calls++ === 0 ? answer : create(ApproveResponseSchema, { ...answer, decision: create(LogRecordSchema, { seq: 99n }) });
        },
      };
    },
  },
  {
    name: "the last decision wins",
    caughtBy: ["approve/changed-decision"],
    says: /Approve with the opposite: expected FAILED_PRECONDITION, got OK/,
    plant: () => ({
      Approve: (request, real) => instead("failed_precondition", real(request), () => create(ApproveResponseSchema)),
    }),
  },
  {
    name: "an omitted decision is a denial",
    caughtBy: ["approve/references"],
    says: /Approve without approved: expected INVALID_ARGUMENT, got OK/,
    plant: () => ({ Approve: (request, real) => real({ ...request, approved: request.approved ?? false }) }),
  },
  {
    name: "everybody who decides is told yes",
    caughtBy: ["approve/race"],
    says: /decisions that were taken: expected 1, found 6/,
    plant: () => ({ Approve: (request, real) => real(request).catch(() => create(ApproveResponseSchema)) }),
  },
  {
    name: "a fork inherits its parent's question",
    caughtBy: ["approve/fork"],
    says: /a fork of a parked session: pending_approval/,
    plant: () => ({
      GetSession: async (request, real) => {
        const session = await real(request);
        if (session.parentUid === "") return session;
        const parent = await real({ ...request, uid: session.parentUid });
        return Object.assign(session, { pendingApproval: parent.pendingApproval });
      },
    }),
  },
  {
    name: "Cancel leaves the request open",
    caughtBy: ["approve/cancel"],
    says: /exec_state/,
    plant: () => ({ Cancel: async (request, real) => withState(await real(request), ExecState.EXEC_AWAITING) }),
  },
  {
    name: "Exec with inputs is taken while a decision is waited for",
    caughtBy: ["approve/exec-while-parked"],
    says: /Exec with inputs on a parked session: expected "failed_precondition"/,
    plant: () => ({ Exec: (request, real) => real({ ...request, inputs: [] }) }),
  },
  {
    name: "Resume says that nothing is pending any more",
    caughtBy: ["approve/any-order"],
    says: /pending_approval after the second was approved/,
    plant: () => {
      let reads = 0;
      return {
        GetSession: async (request, real) => {
          const session = await real(request);
          if (session.pendingApproval !== undefined && ++reads > 2) return create(SessionSchema, { metadata: session.metadata! });
          return session;
        },
      };
    },
  },
  {
    name: "the inbox leaves the arguments out",
    caughtBy: ["approve/inbox"],
    says: /ListApprovals: call/,
    plant: () => ({
      ListApprovals: async (request, real) => {
        const answer = await real(request);
        for (const { call } of answer.approvals) delete call?.args;
        return answer;
      },
    }),
  },
];
