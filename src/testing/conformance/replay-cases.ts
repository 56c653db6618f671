/** Reading a journal, and its chain. */

import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { LogRecordSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { Sessions } from "../../gen/agentsessions/v1/session_pb.ts";
import { sameBytes, uidOf, type Bench } from "./bench.ts";
import { mustVerify } from "./chain.ts";
import type { CaseTable } from "./contract.ts";
import { must, mustEqual, mustRefuse } from "./expect.ts";
import { wordOf } from "./words.ts";

async function seqs(bench: Bench, session: string, fromSeq: bigint, toSeq: bigint): Promise<bigint[]> {
  return (await bench.bytes(session, { fromSeq, toSeq })).map((bytes) => fromBinary(LogRecordSchema, bytes).seq);
}

const span = (from: bigint, to: bigint): bigint[] =>
  Array.from({ length: Math.max(0, Number(to - from) + 1) }, (_, index) => from + BigInt(index));

export const REPLAY_CASES: CaseTable = {
  ranges: {
    promise: "Replay re-delivers committed records from from_seq (0 or 1 = the first) to to_seq (0 = head), in order.",
    run: async (bench) => {
      const session = await bench.withTurns("a", "b");
      const head = await bench.head(session);
      const asked: readonly (readonly [bigint, bigint, bigint, bigint])[] = [
        [0n, 0n, 1n, head],
        [1n, 0n, 1n, head],
        [2n, 3n, 2n, 3n],
        [head, head, head, head],
        [3n, head + 100n, 3n, head],
        [3n, 2n, 3n, 2n],
      ];
      for (const [fromSeq, toSeq, first, last] of asked) {
        mustEqual(
          `Replay from ${fromSeq} to ${toSeq} of ${head} records: the seqs`,
          await seqs(bench, session, fromSeq, toSeq),
          span(first, last),
        );
      }
    },
  },

  "past-head": {
    promise: "Replay past the head: empty, OK.",
    run: async (bench) => {
      const session = await bench.withTurns("a");
      const head = await bench.head(session);
      for (const fromSeq of [head + 1n, head + 1_000n]) mustEqual(`Replay from ${fromSeq}`, await seqs(bench, session, fromSeq, 0n), []);
      mustEqual("Replay of a session without records", await seqs(bench, uidOf(await bench.create()), 0n, 0n), []);
    },
  },

  "negative-ends": {
    promise: "A range with a negative end is a bad request: INVALID_ARGUMENT naming the field.",
    run: async (bench) => {
      const session = await bench.withTurns("a");
      await mustRefuse("Replay from -1", bench.bytes(session, { fromSeq: -1n }), "invalid_argument", "from_seq");
      await mustRefuse("Replay to -1", bench.bytes(session, { toSeq: -1n }), "invalid_argument", "to_seq");
    },
  },

  "bytes-stable": {
    promise: "I5: records are read back byte for byte, every time, whatever happens to the session afterwards.",
    run: async (bench) => {
      const session = await bench.withTurns("a");
      const first = await bench.bytes(session);
      must(first.length > 0, "Replay after a turn: expected records, found none");
      must(sameBytes(await bench.bytes(session), first), "Replay, twice: the second reading has other bytes than the first");
      await bench.turn(session, "b");
      await bench.call(Sessions.method.suspend, { session });
      await bench.call(Sessions.method.resume, { session });
      const later = await bench.bytes(session, { toSeq: BigInt(first.length) });
      must(sameBytes(later, first), "Replay of the first turn after a second one: it has other bytes than before");
    },
  },

  "as-streamed": {
    promise: "I8: a record that a client saw on a stream is in the journal, the same in every field.",
    run: async (bench) => {
      const session = uidOf(await bench.create());
      const { records } = await bench.turn(session, "hello");
      const stored = await bench.records(session);
      mustEqual("the records of a turn's stream and of its journal: how many", records.length, stored.length);
      for (const [index, record] of records.entries()) {
        const isSame = sameBytes([toBinary(LogRecordSchema, record)], [toBinary(LogRecordSchema, stored[index]!)]);
        must(isSame, `${wordOf(record)} at seq ${record.seq}: the stream and the journal differ`);
      }
    },
  },
};

export const CHAIN_CASES: CaseTable = {
  verifies: {
    promise: "I5: the chain verifies from the first record to the head, whatever was done to the session.",
    run: async (bench) => {
      const session = await bench.withTurns("a", "b", "c");
      await mustVerify(bench, session);
      await bench.call(Sessions.method.suspend, { session });
      await bench.turn(session, "d");
      await mustVerify(bench, session);
      await bench.call(Sessions.method.deleteSession, { uid: session });
      const records = await mustVerify(bench, session);
      mustEqual("the first record's prev_hash", records[0]?.prevHash, "");
    },
  },

  fences: {
    promise: "I6: fences only grow, and every turn is written under one that is not older than what came before.",
    run: async (bench) => {
      const records = await bench.records(await bench.withTurns("a", "b", "c"));
      for (const [index, record] of records.entries()) {
        const before = records[index - 1]?.fence ?? 0n;
        must(record.fence >= before, `${wordOf(record)} at seq ${record.seq}: fence ${record.fence} comes after ${before}`);
        must(record.fence > 0n, `${wordOf(record)} at seq ${record.seq}: expected a fence, found none`);
      }
    },
  },

  "head-is-current": {
    promise: "last_seq is a projection that is kept in the transaction that appends: after a turn's END it is the END's seq.",
    run: async (bench) => {
      const session = uidOf(await bench.create());
      for (const input of ["a", "b", "c"]) {
        const { records } = await bench.turn(session, input);
        mustEqual("GetSession after a turn's END: last_seq", await bench.head(session), records.at(-1)?.seq);
      }
    },
  },
};
