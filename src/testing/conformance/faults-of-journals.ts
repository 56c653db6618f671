/** Planted faults of journals: reading, chains, forks, and the calls of `holdfast.v1`. */

import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "../../base/index.ts";
import { DeletionState, ExecState, type ForkRequest, type ForkResponse } from "../../gen/agentsessions/v1/session_pb.ts";
import { TurnCheck_Outcome as Outcome, TurnCheckSchema } from "../../gen/holdfast/v1/replay_pb.ts";
import type { Unary } from "./faulty-transport.ts";
import { changed, instead, mapped, swapped, withState, type PlantedFault } from "./planted-faults.ts";
import { wordOf } from "./words.ts";

export const READ_FAULTS: readonly PlantedFault[] = [
  {
    name: "Replay drops the second record",
    caughtBy: ["replay/ranges", "chain/verifies"],
    says: /the seqs: expected \["1","2","3".*found \["1","3"/,
    plant: () => ({ Replay: (request, real) => mapped(real(request), (record) => (record.seq === 2n ? [] : [record])) }),
  },
  {
    name: "Replay has two records in exchanged places",
    caughtBy: ["replay/ranges", "chain/verifies"],
    says: /the seqs: expected \["1","2".*found \["2","1"/,
    plant: () => ({ Replay: (request, real) => swapped(real(request), () => true) }),
  },
  {
    name: "Replay passes over to_seq",
    caughtBy: ["replay/ranges"],
    says: /Replay from 2 to 3/,
    plant: () => ({ Replay: (request, real) => real({ ...request, toSeq: 0n }) }),
  },
  {
    name: "Replay past the head is an error",
    caughtBy: ["replay/past-head"],
    says: /FAILED_PRECONDITION/,
    plant: () => ({
      async *Replay(request, real) {
        let isEmpty = true;
        for await (const record of real(request)) {
          isEmpty = false;
          yield record;
        }
        if (isEmpty && request.fromSeq > 1n) throw new HoldfastError("failed_precondition", "from_seq: it is past the head");
      },
    }),
  },
  {
    name: "a negative end is none",
    caughtBy: ["replay/negative-ends"],
    says: /Replay from -1: expected INVALID_ARGUMENT, got OK/,
    plant: () => ({
      Replay: (request, real) =>
        real({ ...request, fromSeq: request.fromSeq < 0n ? 0n : request.fromSeq, toSeq: request.toSeq < 0n ? 0n : request.toSeq }),
    }),
  },
  {
    name: "Replay gives other bytes the second time, in a field that no hash covers",
    caughtBy: ["replay/bytes-stable"],
    says: /second reading has other bytes/,
    plant: () => {
      let times = 0n;
      return {
        Replay: (request, real) => {
          times += 1n;
          return mapped(real(request), (record) => [changed(record, (copy) => (copy.fence += times))]);
        },
      };
    },
  },
  {
    name: "a content hash is another one",
    caughtBy: ["chain/verifies"],
    says: /breaks at seq 2 \(content-hash\)/,
    plant: () => ({
      Replay: (request, real) =>
        mapped(real(request), (record) => [record.seq === 2n ? changed(record, (copy) => (copy.contentHash = "0".repeat(64))) : record]),
    }),
  },
  {
    name: "a recorded text is altered",
    caughtBy: ["chain/verifies"],
    says: /breaks at seq 2 \(content-hash\)/,
    plant: () => ({
      Replay: (request, real) =>
        mapped(real(request), (record) => [
          record.seq === 2n
            ? changed(record, ({ event }) => {
                const part = event?.body.case === "message" ? event.body.value.parts[0]?.part : undefined;
                if (part?.case === "text") part.value.text += ".";
              })
            : record,
        ]),
    }),
  },
  {
    name: "fences go back",
    caughtBy: ["chain/fences"],
    says: /fence \d+ comes after \d+/,
    plant: () => ({
      Replay: (request, real) => mapped(real(request), (record) => [changed(record, (copy) => (copy.fence = 1_000n - copy.fence))]),
    }),
  },
  {
    name: "GetSession tells the head of a moment ago",
    caughtBy: ["chain/head-is-current", "exec/order"],
    says: /last_seq: expected "6", found "5"/,
    plant: () => ({
      GetSession: async (request, real) => {
        const session = await real(request);
        return Object.assign(session, { lastSeq: session.lastSeq - 1n });
      },
    }),
  },
  {
    name: "a stream tells a record otherwise than the journal",
    caughtBy: ["replay/as-streamed"],
    says: /the stream and the journal differ/,
    plant: () => ({
      Exec: (request, real) =>
        mapped(real(request), (frame) => {
          if (frame.update.case === "record") frame.update.value.event!.ts!.nanos += 1;
          return [frame];
        }),
    }),
  },
];

/** Forks and remembers the children, with their generation. */
function remembering(children: Map<string, number>): Unary<ForkRequest, ForkResponse> {
  return async (request, real) => {
    const answer = await real(request);
    for (const { metadata } of answer.children) children.set(metadata!.uid, (children.get(request.session) ?? 0) + 1);
    return answer;
  };
}

export const FORK_FAULTS: readonly PlantedFault[] = [
  {
    name: "children have fences of their own in their prefix",
    caughtBy: ["fork/prefix"],
    says: /its first \d+ records are not its parent's/,
    plant: () => {
      const children = new Map<string, number>();
      return {
        Fork: remembering(children),
        Replay: (request, real) =>
          mapped(real(request), (record) => [children.has(request.session) ? changed(record, (copy) => (copy.fence += 1n)) : record]),
      };
    },
  },
  {
    name: "at_seq 0 is the first record",
    caughtBy: ["fork/head"],
    says: /fork_seq: expected "6", found "1"/,
    plant: () => ({ Fork: (request, real) => real(request.atSeq === 0n ? { ...request, atSeq: 1n } : request) }),
  },
  {
    name: "past the head is the head",
    caughtBy: ["fork/refusals"],
    says: /Fork past the head: expected FAILED_PRECONDITION, got OK/,
    plant: () => ({ Fork: (request, real) => instead("failed_precondition", real(request), () => real({ ...request, atSeq: 0n })) }),
  },
  {
    name: "a child can be given an identity",
    caughtBy: ["fork/refusals"],
    says: /Fork with an identity: expected INVALID_ARGUMENT, got OK/,
    plant: () => ({
      Fork: (request, real) => {
        const { identity: _, ...rest } = request;
        return real(rest);
      },
    }),
  },
  {
    name: "a refused fork leaves a child behind",
    caughtBy: ["fork/all-or-nothing"],
    says: /sessions of the project after it: expected 2, found 3/,
    plant: () => ({
      Fork: (request, real) =>
        instead("already_exists", real(request), async () => {
          await real({ ...request, count: 1, childNames: [] });
          throw new HoldfastError("already_exists", "child_names: one of these names is taken");
        }),
    }),
  },
  {
    name: "children inherit labels",
    caughtBy: ["fork/inherits"],
    says: /labels/,
    plant: () => ({
      Fork: async (request, real) => {
        const answer = await real(request);
        for (const child of answer.children) child.labels = { own: "1", ...child.labels };
        return answer;
      },
    }),
  },
  {
    name: "a child goes on with its parent's later records",
    caughtBy: ["fork/independent"],
    says: /its child's records are others now/,
    plant: () => {
      const parents = new Map<string, string>();
      return {
        Fork: async (request, real) => {
          const answer = await real(request);
          for (const { metadata } of answer.children) parents.set(metadata!.uid, request.session);
          return answer;
        },
        async *Replay(request, real) {
          yield* real(request);
          const parent = parents.get(request.session);
          if (parent !== undefined) yield* mapped(real({ ...request, session: parent }), (record) => (record.seq > 6n ? [record] : []));
        },
      };
    },
  },
  {
    name: "a lineage is read three generations deep",
    caughtBy: ["fork/generations"],
    says: /breaks at seq 1/,
    plant: () => {
      const children = new Map<string, number>();
      return {
        Fork: remembering(children),
        Replay: (request, real) =>
          mapped(real(request), (record) => ((children.get(request.session) ?? 0) > 3 && record.seq < 3n ? [] : [record])),
      };
    },
  },
  {
    name: "deleting a parent takes its children's prefix",
    caughtBy: ["fork/parent-deleted"],
    says: /the shared records are others now/,
    plant: () => {
      let deleted = false;
      return {
        DeleteSession: (request, real) => {
          deleted = true;
          return real(request);
        },
        Replay: (request, real) => mapped(real(request), (record) => (deleted && record.seq < 3n ? [] : [record])),
      };
    },
  },
  {
    name: "a child that was forked inside a turn counts as completed",
    caughtBy: ["fork/inside-a-turn"],
    says: /exec_state: expected 3, found 4/,
    plant: () => ({
      GetSession: async (request, real) => {
        const session = await real(request);
        return session.execState === ExecState.EXEC_AWAITING ? withState(session, ExecState.EXEC_COMPLETED) : session;
      },
    }),
  },
  {
    name: "a child asks its model twice and records both",
    caughtBy: ["fork/inside-a-model-call"],
    says: /breaks at seq/,
    plant: () => {
      const children = new Map<string, number>();
      return {
        Fork: remembering(children),
        Replay: (request, real) =>
          mapped(real(request), (record) =>
            children.has(request.session) && wordOf(record) === "MODEL_CALL" ? [record, record] : [record],
          ),
      };
    },
  },
  {
    name: "a session cannot be forked while a turn of it runs",
    caughtBy: ["fork/while-running"],
    says: /ABORTED/,
    plant: () => {
      const running = new Set<string>();
      return {
        async *Exec(request, real) {
          running.add(request.session);
          yield* real(request);
          running.delete(request.session);
        },
        Fork: (request, real) => {
          if (running.has(request.session)) throw new HoldfastError("aborted", "session: a turn of it is running");
          return real(request);
        },
      };
    },
  },
];

export const JOURNAL_FAULTS: readonly PlantedFault[] = [
  {
    name: "Tail repeats a record",
    caughtBy: ["tail/until-head"],
    says: /it is not what Replay gives/,
    plant: () => ({
      Tail: (request, real) =>
        mapped(real(request), (item) => (item.update.case === "record" && item.update.value.seq === 3n ? [item, item] : [item])),
    }),
  },
  {
    name: "Tail loses a record while it follows",
    caughtBy: ["tail/live"],
    says: /a tail that followed a turn/,
    plant: () => ({
      Tail: (request, real) =>
        request.until === 0
          ? mapped(real(request), (item) => (item.update.case === "record" && item.update.value.seq === 2n ? [] : [item, item]))
          : real(request),
    }),
  },
  {
    name: "Tail from -1 is from the first",
    caughtBy: ["tail/cursor"],
    says: /Tail from -1: expected INVALID_ARGUMENT, got OK/,
    plant: () => ({ Tail: (request, real) => real(request.fromSeq < 0n ? { ...request, fromSeq: 0n, until: 1 } : request) }),
  },
  {
    name: "Verify finds another head",
    caughtBy: ["verify/agrees"],
    says: /head_hash/,
    plant: () => ({ Verify: async (request, real) => Object.assign(await real(request), { headHash: "0".repeat(64) }) }),
  },
  {
    name: "CheckReplay finds divergences where there are none",
    caughtBy: ["check/says-the-same"],
    says: /the outcomes: expected \[1,1\], found \[2,2\]/,
    plant: () => ({
      CheckReplay: (request, real) => mapped(real(request), (check) => [Object.assign(check, { outcome: Outcome.DIVERGED })]),
    }),
  },
  {
    name: "CheckReplay writes",
    caughtBy: ["check/changes-nothing"],
    says: /CheckReplay writes nothing/,
    plant: () => {
      let checked = false;
      return {
        CheckReplay: (request, real) => {
          checked = true;
          return real(request);
        },
        Replay: (request, real) => mapped(real(request), (record) => (checked && record.seq === 1n ? [record, record] : [record])),
      };
    },
  },
  {
    name: "CheckReplay reports turns that have not ended",
    caughtBy: ["check/passes-over-open-turns"],
    says: /open turn only: expected 0, found 1/,
    plant: () => ({
      async *CheckReplay(request, real) {
        yield* real(request);
        yield create(TurnCheckSchema, { outcome: Outcome.REFUSED });
      },
    }),
  },
  {
    name: "Lineage leaves deleted members out",
    caughtBy: ["lineage/family"],
    says: /each member and its parent/,
    plant: () => ({
      Lineage: async (request, real) => {
        const answer = await real(request);
        return { ...answer, rows: answer.rows.filter(({ deletionState }) => deletionState === DeletionState.DELETION_ACTIVE) };
      },
    }),
  },
];
