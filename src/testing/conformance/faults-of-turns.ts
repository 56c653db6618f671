/** Planted faults of turns: Exec, Cancel, Suspend and Resume. */

import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "../../base/index.ts";
import { ExecState, ExecUpdateSchema, SessionSchema, type ExecUpdate } from "../../gen/agentsessions/v1/session_pb.ts";
import { said } from "./bench.ts";
import { changed, cold, isLifecycle, mapped, swallowing, swapped, withState, type PlantedFault } from "./planted-faults.ts";
import { wordOf } from "./words.ts";

const isRecord = ({ update }: ExecUpdate): boolean => update.case === "record";

function aSession(uid: string): ExecUpdate {
  return create(ExecUpdateSchema, { update: { case: "session", value: create(SessionSchema, { metadata: { uid } }) } });
}

export const EXEC_FAULTS: readonly PlantedFault[] = [
  {
    name: "a turn's stream leaves its INPUTs out",
    caughtBy: ["exec/order", "replay/as-streamed"],
    says: /the first records: expected .*"INPUT","INPUT"/,
    plant: () => ({
      Exec: (request, real) =>
        mapped(real(request), (frame) => (frame.update.case === "record" && wordOf(frame.update.value) === "INPUT" ? [] : [frame])),
    }),
  },
  {
    name: "a turn's stream has two records in exchanged places",
    caughtBy: ["exec/order"],
    says: /Exec/,
    plant: () => ({ Exec: (request, real) => swapped(real(request), isRecord) }),
  },
  {
    name: "the Session comes last",
    caughtBy: ["exec/first-frame"],
    says: /the first frame: expected "session"/,
    plant: () => ({
      async *Exec(request, real) {
        const sessions: ExecUpdate[] = [];
        for await (const frame of real(request)) {
          if (isRecord(frame)) yield frame;
          else sessions.push(frame);
        }
        yield* sessions;
      },
    }),
  },
  {
    name: "the config is trimmed",
    caughtBy: ["exec/start-marker"],
    says: /config: expected "00ff7b0a00", found "ff7b0a"/,
    plant: () => ({ Exec: (request, real) => real({ ...request, config: request.config.slice(1, 4) }) }),
  },
  {
    name: "inputs are recorded in another order",
    caughtBy: ["exec/inputs-verbatim"],
    says: /the INPUT records of a turn/,
    plant: () => ({ Exec: (request, real) => real({ ...request, inputs: request.inputs.toReversed() }) }),
  },
  {
    name: "a turn without input gets an empty one",
    caughtBy: ["exec/no-input"],
    says: /input_count: expected "0", found "1"/,
    plant: () => ({ Exec: (request, real) => real(request.inputs.length === 0 ? { ...request, inputs: [said("")] } : request) }),
  },
  {
    name: "all turns have one execution id",
    caughtBy: ["exec/host-fields"],
    says: /execution ids: expected 2, found 1/,
    plant: () => ({
      Replay: (request, real) => mapped(real(request), (record) => [changed(record, ({ event }) => (event!.executionId = "the only one"))]),
    }),
  },
  {
    name: "Exec without a session tells another one's uid",
    caughtBy: ["exec/creates-a-session"],
    says: /NOT_FOUND/,
    plant: () => ({
      Exec: (request, real) =>
        mapped(real(request), (frame, index) => [
          request.session === "" && index === 0 ? aSession("018f0000-0000-7000-8000-000000000000") : frame,
        ]),
    }),
  },
  {
    name: "an unknown harness stands for the session's",
    caughtBy: ["exec/refused-writes-nothing"],
    says: /unknown harness: expected INVALID_ARGUMENT, got OK/,
    plant: () => ({ Exec: (request, real) => real({ ...request, harness: "" }) }),
  },
  {
    name: "a deadline in the past is none",
    caughtBy: ["exec/refused-writes-nothing"],
    says: /deadline in the past: expected DEADLINE_EXCEEDED, got OK/,
    plant: () => ({ Exec: (request, real) => real({ ...request, deadlineUnix: 0n }) }),
  },
  {
    name: "Exec creates the session before it looks at the rest",
    caughtBy: ["exec/refused-creates-nothing"],
    says: /frames: expected 0, found 1/,
    plant: () => ({
      async *Exec(request, real) {
        if (request.session === "") yield aSession("made too early");
        yield* mapped(real(request), (frame, index) => (request.session === "" && index === 0 ? [] : [frame]));
      },
    }),
  },
  {
    name: "expected_last_seq is passed over",
    caughtBy: ["exec/expected-last-seq"],
    says: /at head 1: expected ABORTED, got OK/,
    plant: () => ({
      Exec: (request, real) => {
        const { expectedLastSeq: _, ...rest } = request;
        return real(rest);
      },
    }),
  },
  {
    name: "an Exec that lost its race ends as if it had run",
    caughtBy: ["exec/no-interleaving", "exec/second-is-aborted"],
    says: /the turns in the journal after racing Execs: expected 8/,
    plant: () => ({ Exec: (request, real) => swallowing("aborted", real(request)) }),
  },
  {
    name: "a turn ends with its client",
    caughtBy: ["exec/client-goes-away"],
    says: /client went away: exec_state: expected 4, found 6/,
    plant: () => {
      const left = new Set<string>();
      return {
        async *Exec(request, real) {
          let isWhole = false;
          try {
            yield* real(request);
            isWhole = true;
          } finally {
            if (!isWhole) left.add(request.session);
          }
        },
        GetSession: async (request, real) => {
          const session = await real(request);
          return left.has(request.uid) ? withState(session, ExecState.EXEC_CANCELED) : session;
        },
      };
    },
  },
  {
    name: "a deadline ends a turn with an error",
    caughtBy: ["exec/deadline"],
    says: /how its stream ended: expected nothing, found "deadline_exceeded"/,
    plant: () => ({
      async *Exec(request, real) {
        yield* real(request);
        if (request.deadlineUnix > 0n) throw new HoldfastError("deadline_exceeded", "deadline_unix: it passed");
      },
    }),
  },
  {
    name: "a failed turn is an error of its stream",
    caughtBy: ["exec/failed"],
    says: /how its stream ended: expected nothing, found "failed_precondition"/,
    plant: () => ({
      async *Exec(request, real) {
        for await (const frame of real(request)) {
          yield frame;
          if (frame.update.case === "record" && wordOf(frame.update.value) === "END FAILED") {
            throw new HoldfastError("failed_precondition", "harness: it failed");
          }
        }
      },
    }),
  },
  {
    name: "an interrupted turn ends as if nothing had happened",
    caughtBy: ["exec/interrupted"],
    says: /expected an error at the end of its stream, got OK/,
    plant: () => ({ Exec: (request, real) => swallowing("internal", real(request)) }),
  },
];

export const CANCEL_FAULTS: readonly PlantedFault[] = [
  {
    name: "Cancel of a session without a turn leaves its mark",
    caughtBy: ["cancel/nothing-open"],
    says: /Cancel of a session without an open turn writes nothing: the number of records/,
    plant: () => {
      let extra = 0;
      return {
        Cancel: (request, real) => {
          extra = 1;
          return real(request);
        },
        Replay: (request, real) => mapped(real(request), (record, index) => (extra === 1 && index === 0 ? [record, record] : [record])),
      };
    },
  },
  {
    name: "a cancelled turn has no LIFECYCLE CANCEL",
    caughtBy: ["cancel/running", "exec/deadline"],
    says: /its last records: expected .*LIFECYCLE CANCEL/,
    plant: () => ({
      Exec: (request, real) =>
        mapped(real(request), (frame) => (frame.update.case === "record" && isLifecycle(frame.update.value, "CANCEL") ? [] : [frame])),
    }),
  },
  {
    name: "Cancel takes any execution for the open one",
    caughtBy: ["cancel/another-execution"],
    says: /Cancel of another execution: expected FAILED_PRECONDITION, got OK/,
    plant: () => ({ Cancel: (request, real) => real({ ...request, executionId: "" }) }),
  },
  {
    name: "every cancel is the user's",
    caughtBy: ["cancel/reason"],
    says: /unknown reason: expected INVALID_ARGUMENT, got OK/,
    plant: () => ({ Cancel: (request, real) => real({ ...request, reason: "USER" }) }),
  },
];

export const LIFECYCLE_FAULTS: readonly PlantedFault[] = [
  {
    name: "Suspend of a suspended session suspends it once more",
    caughtBy: ["lifecycle/suspend"],
    says: /Suspend, again writes nothing/,
    plant: () => {
      let times = 0;
      return {
        Suspend: (request, real) => {
          times += 1;
          return real(request);
        },
        Replay: (request, real) =>
          mapped(real(request), (record) => (times > 1 && isLifecycle(record, "SUSPEND") ? [record, record] : [record])),
      };
    },
  },
  {
    name: "Resume leaves the session cold",
    caughtBy: ["lifecycle/resume"],
    says: /Resume: compute_state: expected 2, found 4/,
    plant: () => ({ Resume: async (request, real) => cold(await real(request)) }),
  },
  {
    name: "Resume with nothing to do leaves its mark",
    caughtBy: ["lifecycle/nothing-to-resume"],
    says: /Resume with nothing to do writes nothing/,
    plant: () => {
      let resumed = false;
      return {
        Resume: (request, real) => {
          resumed = true;
          return real(request);
        },
        async *Replay(request, real) {
          yield* real(request);
          if (resumed) yield* mapped(real({ ...request, fromSeq: 1n, toSeq: 1n }), (record) => [record]);
        },
        GetSession: async (request, real) => {
          const session = await real(request);
          return resumed ? Object.assign(session, { lastSeq: session.lastSeq + 1n }) : session;
        },
      };
    },
  },
  {
    name: "a turn of a cold session begins without RESUME",
    caughtBy: ["lifecycle/exec-on-cold"],
    says: /breaks at seq/,
    plant: () => ({ Replay: (request, real) => mapped(real(request), (record) => (isLifecycle(record, "RESUME") ? [] : [record])) }),
  },
  {
    name: "Suspend waits for the running turn and says yes",
    caughtBy: ["lifecycle/suspend-while-running"],
    says: /Suspend while a turn runs: expected ABORTED, got OK/,
    plant: () => ({
      Suspend: async (request, real) => {
        try {
          return await real(request);
        } catch {
          return create(SessionSchema, { metadata: { uid: request.session } });
        }
      },
    }),
  },
  {
    name: "a resumed turn goes on under its old fence",
    caughtBy: ["lifecycle/interrupted-turn"],
    says: /expected that it is written under a higher fence/,
    plant: () => ({ Replay: (request, real) => mapped(real(request), (record) => [changed(record, (copy) => (copy.fence = 1n))]) }),
  },
];
