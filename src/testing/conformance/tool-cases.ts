/** Mediated tools, approvals, and what a client may decide. */

import { create } from "@bufbuild/protobuf";
import { LogRecordSchema, ToolResult_Code, type ApprovalRef, type LogRecord } from "../../gen/agentsessions/v1/common_pb.ts";
import {
  ApproveRequestSchema,
  ComputeState,
  ExecState,
  Sessions,
  type ApproveResponse,
  type Session,
} from "../../gen/agentsessions/v1/session_pb.ts";
import { ToolCalls } from "../../gen/holdfast/v1/calls_pb.ts";
import { said, uidOf, type Bench, type Turn } from "./bench.ts";
import { mustVerify } from "./chain.ts";
import type { CaseTable, Need } from "./contract.ts";
import { must, mustEqual, mustMatch, mustRefuse } from "./expect.ts";
import { wordsOf } from "./words.ts";

interface Parked {
  readonly session: string;
  readonly ref: ApprovalRef;
  readonly turn: Turn;
}

const resume = (bench: Bench, session: string): Promise<Session> => bench.call(Sessions.method.resume, { session });

/** A session whose turn waits for a decision. */
async function parked(bench: Bench, need: Need = "approvalHarness"): Promise<Parked> {
  const session = uidOf(await bench.create({ harness: bench.harness(need) }));
  const turn = await bench.exec({ session, inputs: [said("x")] });
  must(turn.error === undefined, `Exec of a turn that parks: expected that its stream ends OK, got ${turn.error?.code.toUpperCase()}`);
  const { pendingApproval } = await bench.get(session);
  must(pendingApproval !== undefined, "GetSession of a parked session: expected pending_approval, found none");
  return { session, ref: pendingApproval, turn };
}

interface DecisionInit {
  readonly approved?: boolean;
  readonly reason?: string;
}

function approve(bench: Bench, session: string, ref: Partial<ApprovalRef>, decision: DecisionInit): Promise<ApproveResponse> {
  const { executionId = "", toolCallId = "", requestSeq = 0n } = ref;
  return bench.call(Sessions.method.approve, create(ApproveRequestSchema, { session, executionId, toolCallId, requestSeq, ...decision }));
}

function resultOf(records: readonly LogRecord[], toolCallId: string) {
  for (const { event } of records) if (event?.body.case === "result" && event.body.value.id === toolCallId) return event.body.value;
  return undefined;
}

/** The request that waits of each call, by the session's records. */
function requestsOf(records: readonly LogRecord[]): readonly ApprovalRef[] {
  return records.flatMap(({ seq, event }) =>
    event?.body.case === "approval"
      ? [{ executionId: event.executionId, toolCallId: event.body.value.toolCallId, requestSeq: seq } as ApprovalRef]
      : [],
  );
}

export const TOOL_CASES: CaseTable = {
  "recorded-once": {
    promise: "A mediated call is TOOL_CALL, then its TOOL_RESULT, each once, with an id and an idempotency key (I3, I7).",
    needs: ["toolHarness"],
    run: async (bench) => {
      const session = uidOf(await bench.create({ harness: bench.harness("toolHarness") }));
      await bench.turn(session, "x");
      const records = await mustVerify(bench, session);
      const calls = records.flatMap(({ event }) => (event?.body.case === "tool" ? [event.body.value] : []));
      must(calls.length > 0, "a harness that calls tools: expected TOOL_CALL, found none");
      for (const { id, idempotencyKey } of calls) {
        must(id !== "" && idempotencyKey !== "", "TOOL_CALL: expected an id and an idempotency_key");
        const places = records.flatMap(({ event }, index) => {
          const { body } = event ?? {};
          return (body?.case === "tool" || body?.case === "result") && body.value.id === id ? [`${body.case} ${index}`] : [];
        });
        mustEqual(
          "the records of one call",
          places.map((place) => place.split(" ")[0]),
          ["tool", "result"],
        );
      }
    },
  },

  "executor-failure": {
    promise: "A failing executor is a recorded TOOL_RESULT with is_error and EXECUTOR_ERROR, and the harness goes on with it.",
    needs: ["toolHarness"],
    run: async (bench) => {
      const session = uidOf(await bench.create({ harness: bench.harness("toolHarness") }));
      await bench.turn(session, "x");
      const failed = (await bench.records(session)).some(
        ({ event }) =>
          event?.body.case === "result" && event.body.value.isError && event.body.value.code === ToolResult_Code.EXECUTOR_ERROR,
      );
      must(failed, "a harness whose second call's executor fails: expected a TOOL_RESULT with is_error and EXECUTOR_ERROR, found none");
      mustEqual("GetSession afterwards: exec_state", (await bench.get(session)).execState, ExecState.EXEC_COMPLETED);
    },
  },
};

export const APPROVE_CASES: CaseTable = {
  parks: {
    promise: "A gated call commits TOOL_CALL and APPROVAL_REQUEST, the turn parks: SUSPEND, EXEC_AWAITING, COMPUTE_COLD, and no END.",
    needs: ["approvalHarness"],
    run: async (bench) => {
      const { session, ref, turn } = await parked(bench);
      const words = wordsOf(await mustVerify(bench, session));
      mustEqual("the last records of a parked turn", words.slice(-3), ["TOOL_CALL", "APPROVAL_REQUEST", "LIFECYCLE SUSPEND"]);
      const { execState, computeState } = await bench.get(session);
      mustEqual("GetSession of a parked session: exec_state", execState, ExecState.EXEC_AWAITING);
      mustEqual("GetSession of a parked session: compute_state", computeState, ComputeState.COMPUTE_COLD);
      mustEqual("pending_approval: request_seq", ref.requestSeq, BigInt(words.lastIndexOf("APPROVAL_REQUEST") + 1));
      const last = turn.frames.at(-1)?.update;
      must(last?.case === "session", `the stream of a turn that parks: expected the Session as its last frame, found ${last?.case}`);
      mustEqual("the last frame of a parked turn: pending_approval", last.value.pendingApproval?.requestSeq, ref.requestSeq);
    },
  },

  "decision-runs-nothing": {
    promise: "Approve commits the decision and nothing else: it runs no tool.",
    needs: ["approvalHarness"],
    run: async (bench) => {
      const { session, ref } = await parked(bench);
      const before = await bench.records(session);
      const { decision, session: answered } = await approve(bench, session, ref, { approved: true, reason: "fine" });
      const after = await bench.records(session);
      mustEqual("the records that Approve adds", wordsOf(after.slice(before.length)), ["APPROVAL_RESULT"]);
      mustMatch("Approve: decision", LogRecordSchema, decision, after.at(-1));
      const body = decision?.event?.body;
      must(body?.case === "approvalResult", "Approve: expected APPROVAL_RESULT as the decision");
      mustEqual("APPROVAL_RESULT", [body.value.approved, body.value.reason, body.value.requestSeq], [true, "fine", ref.requestSeq]);
      mustEqual("Approve: exec_state", answered?.execState, ExecState.EXEC_AWAITING);
      mustEqual("Approve: pending_approval", (await bench.get(session)).pendingApproval, undefined);
    },
  },

  approved: {
    promise: "Resume after an approval: the tool runs once; its receipt names request and decision by seq.",
    needs: ["approvalHarness"],
    run: async (bench) => {
      const { session, ref } = await parked(bench);
      const { decision } = await approve(bench, session, ref, { approved: true });
      mustEqual("Resume of an approved turn: exec_state", (await resume(bench, session)).execState, ExecState.EXEC_COMPLETED);
      const records = await mustVerify(bench, session);
      const result = resultOf(records, ref.toolCallId);
      mustEqual(
        "the receipt: request and decision",
        [result?.approvalRequestSeq, result?.approvalDecisionSeq],
        [ref.requestSeq, decision?.seq],
      );
      mustEqual("the receipt of an approved call: is_error", result?.isError, false);
      mustEqual("TOOL_RESULTs", wordsOf(records).filter((word) => word === "TOOL_RESULT").length, 1);
      const before = await bench.bytes(session);
      await resume(bench, session);
      await bench.mustBeUnchanged("Resume, again", session, before);
    },
  },

  denied: {
    promise: "Denied: receipt APPROVAL_DENIED, and the turn goes on with it.",
    needs: ["approvalHarness"],
    run: async (bench) => {
      const { session, ref } = await parked(bench);
      const { decision } = await approve(bench, session, ref, { approved: false, reason: "no" });
      mustEqual("Resume of a denied turn: exec_state", (await resume(bench, session)).execState, ExecState.EXEC_COMPLETED);
      const result = resultOf(await mustVerify(bench, session), ref.toolCallId);
      mustEqual("the receipt of a denied call", [result?.code, result?.isError], [ToolResult_Code.APPROVAL_DENIED, true]);
      mustEqual(
        "the receipt: request and decision",
        [result?.approvalRequestSeq, result?.approvalDecisionSeq],
        [ref.requestSeq, decision?.seq],
      );
    },
  },

  "exact-retry": {
    promise: "An exact retry returns the same record, also after resolution or deletion.",
    needs: ["approvalHarness"],
    run: async (bench) => {
      const { session, ref } = await parked(bench);
      const decide = () => approve(bench, session, ref, { approved: true, reason: "r" });
      const { decision } = await decide();
      const again = async (when: string): Promise<void> => {
        const before = await bench.bytes(session);
        mustMatch(`Approve, again ${when}: decision`, LogRecordSchema, (await decide()).decision, decision);
        await bench.mustBeUnchanged(`Approve, again ${when}`, session, before);
      };
      await again("at once");
      await resume(bench, session);
      await again("after the turn has ended");
      await bench.call(Sessions.method.deleteSession, { uid: session });
      await again("after the session was deleted");
    },
  },

  "changed-decision": {
    promise: "A changed decision is FAILED_PRECONDITION, and writes nothing.",
    needs: ["approvalHarness"],
    run: async (bench) => {
      const { session, ref } = await parked(bench);
      await approve(bench, session, ref, { approved: true, reason: "r" });
      const before = await bench.bytes(session);
      await mustRefuse("Approve with the opposite", approve(bench, session, ref, { approved: false, reason: "r" }), "failed_precondition");
      await mustRefuse("Approve with another reason", approve(bench, session, ref, { approved: true, reason: "s" }), "failed_precondition");
      await bench.mustBeUnchanged("a changed decision", session, before);
    },
  },

  references: {
    promise: "A wrong or stale reference is FAILED_PRECONDITION; approved absent or a part of the reference missing is INVALID_ARGUMENT.",
    needs: ["approvalHarness"],
    run: async (bench) => {
      const { session, ref } = await parked(bench);
      const { executionId, toolCallId, requestSeq } = ref;
      const before = await bench.bytes(session);
      const refuse = (what: string, given: Partial<ApprovalRef>, code: "failed_precondition" | "invalid_argument", names?: string) =>
        mustRefuse(`Approve with ${what}`, approve(bench, session, given, { approved: true }), code, names);
      await refuse("another execution_id", { executionId: "another", toolCallId, requestSeq }, "failed_precondition");
      await refuse("another tool_call_id", { executionId, toolCallId: "another", requestSeq }, "failed_precondition");
      await refuse("another request_seq", { executionId, toolCallId, requestSeq: requestSeq - 1n }, "failed_precondition");
      await refuse("a request_seq past the head", { executionId, toolCallId, requestSeq: requestSeq + 99n }, "failed_precondition");
      await refuse("no execution_id", { toolCallId, requestSeq }, "invalid_argument", "execution_id");
      await refuse("no tool_call_id", { executionId, requestSeq }, "invalid_argument", "tool_call_id");
      await refuse("no request_seq", { executionId, toolCallId }, "invalid_argument", "request_seq");
      await mustRefuse("Approve without approved", approve(bench, session, ref, {}), "invalid_argument", "approved");
      await mustRefuse("Approve in an unknown session", approve(bench, "nobody", ref, { approved: true }), "not_found");
      await bench.mustBeUnchanged("a refused Approve", session, before);
    },
  },

  race: {
    promise: "Of several decisions that race one is committed; the others are FAILED_PRECONDITION, or ABORTED to be read and retried.",
    needs: ["approvalHarness"],
    run: async (bench) => {
      const { session, ref } = await parked(bench);
      const answers = await Promise.allSettled(
        Array.from({ length: 6 }, (_, index) => approve(bench, session, ref, { approved: index % 2 === 0, reason: `r${index}` })),
      );
      mustEqual("decisions that were taken", answers.filter(({ status }) => status === "fulfilled").length, 1);
      const decisions = wordsOf(await mustVerify(bench, session)).filter((word) => word === "APPROVAL_RESULT");
      mustEqual("APPROVAL_RESULTs after racing decisions", decisions.length, 1);
    },
  },

  fork: {
    promise:
      "A fork never inherits the right to run an effect: its Resume is FAILED_PRECONDITION, an inherited reference too; its Exec works.",
    needs: ["approvalHarness"],
    run: async (bench) => {
      const { session, ref } = await parked(bench);
      const { children } = await bench.call(Sessions.method.fork, { session, atSeq: ref.requestSeq, count: 1 });
      const child = uidOf(children[0]);
      bench.adopt(child);
      mustEqual("a fork of a parked session: pending_approval", (await bench.get(child)).pendingApproval, undefined);
      await mustRefuse("Approve of an inherited request", approve(bench, child, ref, { approved: true }), "failed_precondition");
      await mustRefuse("Resume of a fork inside a gated call", resume(bench, child), "failed_precondition");
      const turn = await bench.exec({ session: child, inputs: [said("y")] });
      must(turn.error === undefined, `Exec of a fork inside a gated call: expected OK, got ${turn.error?.code.toUpperCase()}`);
      mustEqual("GetSession of the parent: pending_approval", (await bench.get(session)).pendingApproval?.requestSeq, ref.requestSeq);
    },
  },

  cancel: {
    promise: "Cancel while parked: denial, APPROVAL_DENIED receipt, CANCEL and END.",
    needs: ["approvalHarness"],
    run: async (bench) => {
      const { session, ref } = await parked(bench);
      const cancelled = await bench.call(Sessions.method.cancel, { session });
      mustEqual("Cancel of a parked turn: exec_state", cancelled.execState, ExecState.EXEC_CANCELED);
      const records = await mustVerify(bench, session);
      const expected = ["APPROVAL_RESULT", "TOOL_RESULT", "LIFECYCLE CANCEL", "END CANCELED"];
      mustEqual("the last records of a cancelled parked turn", wordsOf(records).slice(-4), expected);
      mustEqual("the receipt", resultOf(records, ref.toolCallId)?.code, ToolResult_Code.APPROVAL_DENIED);
      await mustRefuse("Approve after Cancel", approve(bench, session, ref, { approved: true }), "failed_precondition");
    },
  },

  "exec-while-parked": {
    promise:
      "While an approval call has no receipt, Exec with inputs is FAILED_PRECONDITION, and Exec without inputs does what Resume does.",
    needs: ["approvalHarness"],
    run: async (bench) => {
      const { session, ref } = await parked(bench);
      const before = await bench.bytes(session);
      const refused = await bench.exec({ session, inputs: [said("more")] });
      mustEqual("Exec with inputs on a parked session", refused.error?.code, "failed_precondition");
      const idle = await bench.exec({ session });
      mustEqual("Exec without inputs on a parked session", idle.error?.code, undefined);
      mustEqual("its last frame", idle.frames.at(-1)?.update.case, "session");
      await bench.mustBeUnchanged("Exec on a parked session without a decision", session, before);
      await approve(bench, session, ref, { approved: true });
      const turn = await bench.exec({ session });
      mustEqual("Exec without inputs on a decided session", turn.error?.code, undefined);
      mustEqual("the last record", wordsOf(await mustVerify(bench, session)).at(-1), "END COMPLETED");
      mustEqual("its execution_id", turn.records.at(-1)?.event?.executionId, ref.executionId);
    },
  },

  "any-order": {
    promise: "Several gated calls of one parallel group are decided one by one in any order; pending_approval is the oldest.",
    needs: ["parallelApprovalHarness"],
    run: async (bench) => {
      const { session } = await parked(bench, "parallelApprovalHarness");
      const requests = requestsOf(await bench.records(session));
      mustEqual("requests of three gated calls", requests.length, 3);
      const [first, second, third] = requests as [ApprovalRef, ApprovalRef, ApprovalRef];
      const pending = async (): Promise<bigint | undefined> => (await bench.get(session)).pendingApproval?.requestSeq;
      mustEqual("pending_approval of three", await pending(), first.requestSeq);
      await approve(bench, session, second, { approved: true });
      await resume(bench, session);
      mustEqual("pending_approval after the second was approved", await pending(), first.requestSeq);
      await approve(bench, session, first, { approved: false });
      mustEqual("pending_approval after the first was denied", await pending(), third.requestSeq);
      await approve(bench, session, third, { approved: true });
      mustEqual("Resume: exec_state", (await resume(bench, session)).execState, ExecState.EXEC_COMPLETED);
      const records = await mustVerify(bench, session);
      const codes = [first, second, third].map(({ toolCallId }) => resultOf(records, toolCallId)?.code);
      mustEqual("the receipts' codes", codes, [ToolResult_Code.APPROVAL_DENIED, 0, 0]);
    },
  },

  inbox: {
    promise: "The inbox lists what waits in a project, of all sessions and their children, with arguments in full.",
    needs: ["approvalHarness"],
    run: async (bench) => {
      const { session, ref } = await parked(bench);
      const list = bench.call(ToolCalls.method.listApprovals, { project: bench.project });
      const { approvals } = await bench.optional("holdfast.v1.ToolCalls", list);
      mustEqual(
        "ListApprovals: sessions",
        approvals.map((approval) => approval.session),
        [session],
      );
      mustEqual("ListApprovals: ref", approvals[0]?.ref?.requestSeq, ref.requestSeq);
      const recorded = (await bench.records(session)).find(({ event }) => event?.body.case === "tool")?.event?.body.value;
      mustEqual("ListApprovals: call", approvals[0]?.call, recorded);
      await approve(bench, session, ref, { approved: false });
      mustEqual(
        "ListApprovals after the decision",
        (await bench.call(ToolCalls.method.listApprovals, { project: bench.project })).approvals,
        [],
      );
    },
  },
};
