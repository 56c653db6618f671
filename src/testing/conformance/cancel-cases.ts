/** Cancel and DeleteSession. */

import {
  ComputeState,
  DeletionState,
  ExecState,
  ListSessionsRequestSchema,
  Sessions,
  type Session,
} from "../../gen/agentsessions/v1/session_pb.ts";
import { create } from "@bufbuild/protobuf";
import { said, sameBytes, uidOf, type Bench } from "./bench.ts";
import { mustVerify } from "./chain.ts";
import type { CaseTable } from "./contract.ts";
import { must, mustBeRefusal, mustEqual, mustRefuse } from "./expect.ts";
import { wordsOf } from "./words.ts";

function cancel(bench: Bench, session: string, more: { readonly executionId?: string; readonly reason?: string } = {}): Promise<Session> {
  return bench.call(Sessions.method.cancel, { session, ...more });
}

/** The reason that LIFECYCLE CANCEL records. */
async function recordedReason(bench: Bench, session: string): Promise<string | undefined> {
  for (const { event } of await bench.records(session)) if (event?.body.case === "lifecycle") return event.body.value.detail;
  return undefined;
}

export const CANCEL_CASES: CaseTable = {
  "nothing-open": {
    promise: "Cancel of a session without an open turn changes nothing.",
    run: async (bench) => {
      const session = await bench.withTurns("a");
      const before = await bench.bytes(session);
      const answer = await cancel(bench, session);
      mustEqual("Cancel of a session without an open turn: exec_state", answer.execState, ExecState.EXEC_COMPLETED);
      await bench.mustBeUnchanged("Cancel of a session without an open turn", session, before);
    },
  },

  running: {
    promise: "Cancel stops the model call and the harness, then LIFECYCLE CANCEL and END CANCELED in one append; the turn's stream is OK.",
    needs: ["waitingHarness"],
    run: async (bench) => {
      const { session, executionId, ended } = await bench.waiting({ inputs: [said("x")] });
      const answer = await cancel(bench, session, { executionId });
      mustEqual("Cancel of a running turn: exec_state", answer.execState, ExecState.EXEC_CANCELED);
      const { error, records } = await ended;
      mustEqual("Exec of a turn that was cancelled: how its stream ended", error?.code, undefined);
      mustEqual("Exec of a turn that was cancelled: its last records", wordsOf(records).slice(-2), ["LIFECYCLE CANCEL", "END CANCELED"]);
      mustEqual("the journal after a Cancel", wordsOf(await mustVerify(bench, session)), wordsOf(records));
      const next = await bench.begin({ session });
      await cancel(bench, session);
      must(next.executionId !== executionId, "a turn after a cancelled one: expected another execution_id");
    },
  },

  "another-execution": {
    promise: "Cancel of an execution that is not the open turn is FAILED_PRECONDITION, and the turn goes on.",
    needs: ["waitingHarness"],
    run: async (bench) => {
      const { session, ended } = await bench.waiting();
      await mustRefuse(
        "Cancel of another execution",
        cancel(bench, session, { executionId: "another" }),
        "failed_precondition",
        "execution_id",
      );
      mustEqual("GetSession after a refused Cancel: exec_state", (await bench.get(session)).execState, ExecState.EXEC_RUNNING);
      await cancel(bench, session);
      await ended;
    },
  },

  reason: {
    promise: "reason is USER, TIMEOUT or INTERNAL; another one is INVALID_ARGUMENT. LIFECYCLE CANCEL records it.",
    needs: ["waitingHarness"],
    run: async (bench) => {
      for (const reason of ["USER", "TIMEOUT", "INTERNAL"]) {
        const { session, ended } = await bench.waiting();
        await mustRefuse("Cancel for an unknown reason", cancel(bench, session, { reason: "BOREDOM" }), "invalid_argument", "reason");
        await cancel(bench, session, { reason });
        await ended;
        mustEqual("LIFECYCLE CANCEL: its detail", await recordedReason(bench, session), reason);
      }
    },
  },
};

/** Everything that would change a deleted session. */
function changesOf(bench: Bench, session: string): readonly (readonly [string, () => Promise<unknown>])[] {
  return [
    ["Suspend", () => bench.call(Sessions.method.suspend, { session })],
    ["Resume", () => bench.call(Sessions.method.resume, { session })],
    ["Fork", () => bench.call(Sessions.method.fork, { session, count: 1 })],
  ];
}

export const DELETE_CASES: CaseTable = {
  intent: {
    promise: "Delete is durable intent: LIFECYCLE DELETE, DELETION_PENDING, COMPUTE_TERMINATED. Repeating it changes nothing.",
    run: async (bench) => {
      const uid = await bench.withTurns("a");
      const deleted = await bench.call(Sessions.method.deleteSession, { uid });
      mustEqual("DeleteSession: deletion_state", deleted.deletionState, DeletionState.DELETION_PENDING);
      mustEqual("DeleteSession: compute_state", deleted.computeState, ComputeState.COMPUTE_TERMINATED);
      const records = await mustVerify(bench, uid);
      mustEqual("the last record of a deleted session", wordsOf(records).at(-1), "LIFECYCLE DELETE");
      const before = await bench.bytes(uid);
      const again = await bench.call(Sessions.method.deleteSession, { uid });
      mustEqual("DeleteSession, again: deletion_state", again.deletionState, DeletionState.DELETION_PENDING);
      await bench.mustBeUnchanged("DeleteSession, again", uid, before);
    },
  },

  "unlisted-but-readable": {
    promise: "A deleted session is gone from listings, still readable by Get and Replay until reclaimed.",
    run: async (bench) => {
      const uid = await bench.withTurns("a");
      const before = await bench.bytes(uid);
      await bench.call(Sessions.method.deleteSession, { uid });
      const { sessions } = await bench.call(Sessions.method.listSessions, create(ListSessionsRequestSchema, { project: bench.project }));
      mustEqual("ListSessions after a deletion", sessions.map(uidOf), []);
      mustEqual("GetSession of a deleted session: deletion_state", (await bench.get(uid)).deletionState, DeletionState.DELETION_PENDING);
      must(sameBytes((await bench.bytes(uid)).slice(0, before.length), before), "Replay of a deleted session: its records are others now");
    },
  },

  "no-more": {
    promise: "A deleted session takes no further turns: FAILED_PRECONDITION, and nothing is written.",
    run: async (bench) => {
      const uid = await bench.withTurns("a");
      await bench.call(Sessions.method.deleteSession, { uid });
      const before = await bench.bytes(uid);
      mustBeRefusal("Exec of a deleted session", (await bench.exec({ session: uid, inputs: [said("b")] })).error, "failed_precondition");
      for (const [name, call] of changesOf(bench, uid)) await mustRefuse(`${name} of a deleted session`, call(), "failed_precondition");
      await bench.mustBeUnchanged("what is asked of a deleted session", uid, before);
    },
  },

  running: {
    promise: "Deleting cancels a running turn first: CANCEL, END, then LIFECYCLE DELETE.",
    needs: ["waitingHarness"],
    run: async (bench) => {
      const { session, ended } = await bench.waiting();
      await bench.call(Sessions.method.deleteSession, { uid: session });
      const { error } = await ended;
      mustEqual("Exec of a turn whose session was deleted: how its stream ended", error?.code, undefined);
      const words = wordsOf(await mustVerify(bench, session));
      mustEqual("the journal of a session that was deleted during a turn", words.slice(-3), [
        "LIFECYCLE CANCEL",
        "END CANCELED",
        "LIFECYCLE DELETE",
      ]);
    },
  },
};
