/** Suspend and Resume. */

import { ComputeState, ExecState, Sessions, type Session } from "../../gen/agentsessions/v1/session_pb.ts";
import { said, uidOf, type Bench } from "./bench.ts";
import { mustVerify } from "./chain.ts";
import type { CaseTable } from "./contract.ts";
import { must, mustEqual, mustRefuse } from "./expect.ts";
import { wordsOf } from "./words.ts";

const suspend = (bench: Bench, session: string): Promise<Session> => bench.call(Sessions.method.suspend, { session });
const resume = (bench: Bench, session: string): Promise<Session> => bench.call(Sessions.method.resume, { session });

export const LIFECYCLE_CASES: CaseTable = {
  suspend: {
    promise: "Suspend: LIFECYCLE SUSPEND with the snapshot reference, COMPUTE_COLD. Idempotent.",
    run: async (bench) => {
      const session = await bench.withTurns("a");
      mustEqual("Suspend: compute_state", (await suspend(bench, session)).computeState, ComputeState.COMPUTE_COLD);
      mustEqual("the last record after Suspend", wordsOf(await bench.records(session)).at(-1), "LIFECYCLE SUSPEND");
      const before = await bench.bytes(session);
      mustEqual("Suspend, again: compute_state", (await suspend(bench, session)).computeState, ComputeState.COMPUTE_COLD);
      await bench.mustBeUnchanged("Suspend, again", session, before);
      mustEqual("GetSession of a suspended session: exec_state", (await bench.get(session)).execState, ExecState.EXEC_COMPLETED);
    },
  },

  resume: {
    promise: "Resume: restored or rebuilt, LIFECYCLE RESUME, COMPUTE_LIVE. Idempotent.",
    run: async (bench) => {
      const session = await bench.withTurns("a");
      await suspend(bench, session);
      mustEqual("Resume: compute_state", (await resume(bench, session)).computeState, ComputeState.COMPUTE_LIVE);
      mustEqual("the last record after Resume", wordsOf(await bench.records(session)).at(-1), "LIFECYCLE RESUME");
      const before = await bench.bytes(session);
      await resume(bench, session);
      await bench.mustBeUnchanged("Resume, again", session, before);
      await bench.turn(session, "b");
      await mustVerify(bench, session);
    },
  },

  "nothing-to-resume": {
    promise: "Resume with nothing to do changes nothing.",
    run: async (bench) => {
      const fresh = uidOf(await bench.create());
      const ended = await bench.withTurns("a");
      for (const session of [fresh, ended]) {
        const before = await bench.bytes(session);
        await resume(bench, session);
        await bench.mustBeUnchanged("Resume with nothing to do", session, before);
      }
    },
  },

  "exec-on-cold": {
    promise: "Exec on a COLD session restores it first; RESUME and EXECUTION_START are one append.",
    run: async (bench) => {
      const session = await bench.withTurns("a");
      await suspend(bench, session);
      await bench.turn(session, "b");
      const words = wordsOf(await mustVerify(bench, session));
      const at = words.indexOf("LIFECYCLE SUSPEND");
      mustEqual("the records after SUSPEND when a turn begins", words.slice(at + 1, at + 3), ["LIFECYCLE RESUME", "EXECUTION_START"]);
    },
  },

  "suspend-while-running": {
    promise: "Suspend during a turn is ABORTED, and the turn goes on.",
    needs: ["waitingHarness"],
    run: async (bench) => {
      const { session, ended } = await bench.waiting();
      await mustRefuse("Suspend while a turn runs", suspend(bench, session), "aborted");
      mustEqual("GetSession after a refused Suspend: exec_state", (await bench.get(session)).execState, ExecState.EXEC_RUNNING);
      await bench.call(Sessions.method.cancel, { session });
      const { records } = await ended;
      must(!wordsOf(records).includes("LIFECYCLE SUSPEND"), "a turn during which Suspend was refused: found LIFECYCLE SUSPEND in it");
    },
  },

  "interrupted-turn": {
    promise:
      "Resume of an interrupted turn serves every recorded effect and goes live after the last: no second MODEL_CALL or OUTPUT (I3), one execution id.",
    needs: ["flakyHarness"],
    run: async (bench) => {
      const session = uidOf(await bench.create({ harness: bench.harness("flakyHarness") }));
      const { error } = await bench.exec({ session, inputs: [said("x")] });
      must(error !== undefined, "Exec on a harness that throws: expected an error, got OK");
      const before = await bench.records(session);
      const modelCalls = (words: readonly string[]): number => words.filter((word) => word === "MODEL_CALL").length;
      must(modelCalls(wordsOf(before)) > 0, "a flaky harness: expected that it asks a model before it throws");
      const resumed = await resume(bench, session);
      mustEqual("Resume of an interrupted turn: exec_state", resumed.execState, ExecState.EXEC_COMPLETED);
      const after = await mustVerify(bench, session);
      mustEqual("the records before the interruption, afterwards", wordsOf(after).slice(0, before.length), wordsOf(before));
      mustEqual("MODEL_CALLs after Resume", modelCalls(wordsOf(after)), modelCalls(wordsOf(before)));
      mustEqual("the last record after Resume", wordsOf(after).at(-1), "END COMPLETED");
      mustEqual("execution ids of a resumed turn", new Set(after.map(({ event }) => event?.executionId)).size, 1);
      must((after.at(-1)?.fence ?? 0n) > (before.at(-1)?.fence ?? 0n), "a resumed turn: expected that it is written under a higher fence");
    },
  },
};
