/** What Holdfast adds for readers of a journal: `holdfast.v1.Journal`. Servers of the contract need not have it. */

import { create, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { LogRecordSchema, type LogRecord } from "../../gen/agentsessions/v1/common_pb.ts";
import { ExecState, Sessions } from "../../gen/agentsessions/v1/session_pb.ts";
import { Journal, TailRequest_Until as Until, TailRequestSchema, type TailUpdate } from "../../gen/holdfast/v1/journal_pb.ts";
import { TurnCheck_Outcome as Outcome } from "../../gen/holdfast/v1/replay_pb.ts";
import { said, sameBytes, uidOf, type Bench } from "./bench.ts";
import { mustVerify } from "./chain.ts";
import type { CaseTable } from "./contract.ts";
import { must, mustEqual, mustRefuse } from "./expect.ts";

type TailInit = Exclude<MessageInitShape<typeof TailRequestSchema>, undefined>;

function tail(bench: Bench, request: TailInit): Promise<TailUpdate[]> {
  return bench.optional("holdfast.v1.Journal/Tail", bench.collect(Journal.method.tail, request));
}

const recordsIn = (updates: readonly TailUpdate[]): LogRecord[] =>
  updates.flatMap(({ update }) => (update.case === "record" ? [update.value] : []));
const bytesOf = (records: readonly LogRecord[]): Uint8Array[] => records.map((record) => toBinary(LogRecordSchema, record));

export const TAIL_CASES: CaseTable = {
  "until-head": {
    promise: "Tail streams a session's committed records from a cursor on: the Session first, then what Replay re-delivers.",
    run: async (bench) => {
      const session = await bench.withTurns("a", "b");
      const stored = await bench.records(session);
      for (const from of [0, 1, 3, stored.length, stored.length + 1]) {
        const updates = await tail(bench, { session, fromSeq: BigInt(from), until: Until.HEAD });
        mustEqual("Tail: the first update", updates[0]?.update.case, "session");
        const expected = stored.slice(Math.max(0, from - 1));
        must(sameBytes(bytesOf(recordsIn(updates)), bytesOf(expected)), `Tail from ${from} until the head: it is not what Replay gives`);
      }
    },
  },

  live: {
    promise: "I8: a tail tells each record once, in order, while turns run, and until UNTIL_IDLE ends once nothing runs.",
    run: async (bench) => {
      const session = uidOf(await bench.create());
      const seen: LogRecord[] = [];
      const followed = Promise.withResolvers<void>();
      const request = create(TailRequestSchema, { session });
      const ended = (async () => {
        for await (const { update } of bench.transport.stream(Journal.method.tail, request, bench.options)) {
          if (update.case === "session") followed.resolve();
          if (update.case === "record") seen.push(update.value);
          if (update.case === "record" && update.value.event?.body.case === "end" && seen.length > 4) return;
        }
      })();
      await bench.optional("holdfast.v1.Journal/Tail", Promise.race([followed.promise, ended]));
      await bench.turn(session, "a");
      await ended;
      const stored = await bench.records(session);
      must(sameBytes(bytesOf(seen), bytesOf(stored.slice(0, seen.length))), "a tail that followed a turn: it is not what Replay gives");
      const idle = recordsIn(await tail(bench, { session, fromSeq: 2n, until: Until.IDLE }));
      must(sameBytes(bytesOf(idle), bytesOf(stored.slice(1))), "Tail until idle where nothing runs: it is not what Replay gives");
    },
  },

  cursor: {
    promise: "A negative cursor is INVALID_ARGUMENT naming the field; an unknown session NOT_FOUND.",
    run: async (bench) => {
      const session = await bench.withTurns("a");
      await tail(bench, { session, until: Until.HEAD });
      await mustRefuse("Tail from -1", tail(bench, { session, fromSeq: -1n }), "invalid_argument", "from_seq");
      await mustRefuse("Tail of an unknown session", tail(bench, { session: "nobody" }), "not_found");
    },
  },
};

export const VERIFY_CASES: CaseTable = {
  agrees: {
    promise: "Verify recomputes the chain from the first record to the head, and finds what a client finds by itself.",
    run: async (bench) => {
      const session = await bench.withTurns("a", "b");
      const verified = await bench.optional("holdfast.v1.Journal/Verify", bench.call(Journal.method.verify, { session }));
      const records = await mustVerify(bench, session);
      mustEqual("Verify: intact", verified.intact, true);
      mustEqual("Verify: records and head_seq", [verified.records, verified.headSeq], [BigInt(records.length), BigInt(records.length)]);
      mustEqual("Verify: head_hash", verified.headHash, records.at(-1)?.contentHash);
      const empty = await bench.call(Journal.method.verify, { session: uidOf(await bench.create()) });
      mustEqual("Verify of a session without records", [empty.intact, empty.records, empty.headHash], [true, 0n, ""]);
    },
  },
};

export const CHECK_CASES: CaseTable = {
  "says-the-same": {
    promise: "I0: on replay the harness asks the model for what it asked before; turns that were just recorded replay the same.",
    run: async (bench) => {
      const session = await bench.withTurns("a", "b");
      const checks = await bench.optional("holdfast.v1.Journal/CheckReplay", bench.collect(Journal.method.checkReplay, { session }));
      mustEqual(
        "CheckReplay of two turns: the outcomes",
        checks.map(({ outcome }) => outcome),
        [Outcome.SAME, Outcome.SAME],
      );
      const records = await bench.records(session);
      const ends = records.filter(({ event }) => event?.body.case === "end").map(({ seq }) => seq);
      mustEqual(
        "CheckReplay of two turns: their last seqs",
        checks.map(({ lastSeq }) => lastSeq),
        ends,
      );
    },
  },

  "changes-nothing": {
    promise: "I1: a replay writes nothing; the session is as it was.",
    run: async (bench) => {
      const session = await bench.withTurns("a");
      const [before, row] = [await bench.bytes(session), await bench.get(session)];
      await bench.optional("holdfast.v1.Journal/CheckReplay", bench.collect(Journal.method.checkReplay, { session }));
      await bench.mustBeUnchanged("CheckReplay", session, before);
      mustEqual("GetSession after CheckReplay: version", (await bench.get(session)).metadata?.version, row.metadata?.version);
      const unknown = bench.collect(Journal.method.checkReplay, { session, harness: "no-such-harness-is-served" });
      await mustRefuse("CheckReplay with an unknown harness", unknown, "invalid_argument", "harness");
    },
  },

  "passes-over-open-turns": {
    promise: "CheckReplay runs ended turns; a turn without END is passed over, and one that failed replays as it failed.",
    needs: ["flakyHarness", "failingHarness"],
    run: async (bench) => {
      const open = uidOf(await bench.create({ harness: bench.harness("flakyHarness") }));
      await bench.exec({ session: open, inputs: [said("x")] });
      const checks = await bench.optional("holdfast.v1.Journal/CheckReplay", bench.collect(Journal.method.checkReplay, { session: open }));
      mustEqual("CheckReplay of a session with an open turn only", checks.length, 0);
      const failed = uidOf(await bench.create({ harness: bench.harness("failingHarness") }));
      await bench.exec({ session: failed, inputs: [said("x")] });
      const [check] = await bench.collect(Journal.method.checkReplay, { session: failed });
      mustEqual("CheckReplay of a failed turn", [check?.end, check?.outcome], ["FAILED", Outcome.SAME]);
    },
  },
};

export const LINEAGE_CASES: CaseTable = {
  family: {
    promise: "Lineage is a session's whole family, the same from every member, deleted ones included.",
    run: async (bench) => {
      const root = await bench.withTurns("a");
      const [left, right] = (await bench.call(Sessions.method.fork, { session: root, count: 2 })).children.map(uidOf) as [string, string];
      const [leaf] = (await bench.call(Sessions.method.fork, { session: left, count: 1 })).children.map(uidOf) as [string];
      for (const uid of [left, right, leaf]) bench.adopt(uid);
      await bench.call(Sessions.method.deleteSession, { uid: left });
      const parents = { [root]: "", [left]: root, [right]: root, [leaf]: left };
      for (const session of Object.keys(parents)) {
        const { rows } = await bench.optional("holdfast.v1.Journal/Lineage", bench.call(Journal.method.lineage, { session }));
        mustEqual("Lineage: the first row", rows[0]?.uid, root);
        const found = rows.map(({ uid, parentUid }) => `${uid} of ${parentUid}`);
        const expected = Object.entries(parents).map(([uid, parent]) => `${uid} of ${parent}`);
        mustEqual("Lineage: each member and its parent", found.toSorted(), expected.toSorted());
        for (const [index, row] of rows.entries()) {
          const parentAt = rows.findIndex(({ uid }) => uid === row.parentUid);
          must(index === 0 || (parentAt >= 0 && parentAt < index), `Lineage: ${row.uid} does not come after its parent`);
          mustEqual(`Lineage: the depth of ${row.uid}`, row.depth, index === 0 ? 0 : (rows[parentAt]?.depth ?? 0) + 1);
        }
        mustEqual("Lineage: exec_state of the root", rows[0]?.execState, ExecState.EXEC_COMPLETED);
      }
    },
  },
};
