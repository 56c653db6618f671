/** One turn. */

import { create, toBinary } from "@bufbuild/protobuf";
import { DataPartSchema, EventKind, MessageSchema, type LogRecord, type Message } from "../../gen/agentsessions/v1/common_pb.ts";
import { ExecRequestSchema, ExecState, Sessions } from "../../gen/agentsessions/v1/session_pb.ts";
import { said, uidOf, type Bench, type Turn } from "./bench.ts";
import { mustVerify } from "./chain.ts";
import type { CaseTable } from "./contract.ts";
import { must, mustBeRefusal, mustEqual } from "./expect.ts";
import { wordOf, wordsOf } from "./words.ts";

/** Execs that race in one case. */
const RACERS = 8;

/** The start of a turn, which must be there. */
export function startOf(records: readonly LogRecord[]) {
  const body = records[0]?.event?.body;
  must(
    body?.case === "executionStart",
    `the first record of a turn: expected EXECUTION_START, found ${records[0] === undefined ? "none" : wordOf(records[0])}`,
  );
  return body.value;
}

function inputsOf(records: readonly LogRecord[]): readonly Message[] {
  return records.flatMap(({ event }) => (event?.kind === EventKind.EVENT_INPUT && event.body.case === "message" ? [event.body.value] : []));
}

/** A request that is valid but for one thing, refused; nothing is written. */
async function mustRefuseExec(
  bench: Bench,
  what: string,
  request: Parameters<Bench["exec"]>[0],
  code: Parameters<typeof mustBeRefusal>[2],
  names?: string,
): Promise<Turn> {
  const session = request.session ?? "";
  const before = await bench.bytes(session);
  const turn = await bench.exec(request);
  mustBeRefusal(what, turn.error, code, names);
  mustEqual(`${what}: records on its stream`, wordsOf(turn.records), []);
  await bench.mustBeUnchanged(what, session, before);
  return turn;
}

const PAST = 1n;

export const EXEC_CASES: CaseTable = {
  order: {
    promise: "EXECUTION_START → one INPUT per message → effects → END; only END ends a turn, and the stream is OK once END was committed.",
    run: async (bench) => {
      const session = uidOf(await bench.create());
      const { frames, records } = await bench.turn(session, "one", "two");
      mustEqual("Exec: the first frame", frames[0]?.update.case, "session");
      const words = wordsOf(records);
      mustEqual("Exec with two inputs: the first records", words.slice(0, 3), ["EXECUTION_START", "INPUT", "INPUT"]);
      mustEqual("Exec: the last record", words.at(-1), "END COMPLETED");
      mustEqual("Exec: the number of ENDs and starts", words.filter((word) => /^(END|EXECUTION_START)/.test(word)).length, 2);
      mustEqual(
        "Exec: the seqs of its records",
        records.map(({ seq }) => seq),
        records.map((_, index) => BigInt(index + 1)),
      );
      mustEqual("Exec: the records in the journal", wordsOf(await bench.records(session)), words);
      const after = await bench.get(session);
      mustEqual(
        "GetSession after a turn: last_seq and exec_state",
        [after.lastSeq, after.execState],
        [BigInt(records.length), ExecState.EXEC_COMPLETED],
      );
    },
  },

  "start-marker": {
    promise: "EXECUTION_START carries config verbatim, the harness's cursor, an explicit input_count and the resolved harness name.",
    run: async (bench) => {
      const session = await bench.create();
      const config = new Uint8Array([0, 255, 123, 10, 0]);
      const turn = await bench.exec({ session: uidOf(session), config, inputs: [said("x"), said("y")], resumeFromSeq: 2n ** 53n + 1n });
      mustEqual("Exec: how its stream ended", turn.error?.code, undefined);
      const start = startOf(turn.records);
      mustEqual("EXECUTION_START: config", start.config, config);
      mustEqual("EXECUTION_START: resume_from_seq", start.resumeFromSeq, 2n ** 53n + 1n);
      mustEqual("EXECUTION_START: input_count", start.inputCount, 2n);
      mustEqual("EXECUTION_START: harness", start.harness, session.harness);
    },
  },

  "inputs-verbatim": {
    promise: "Inputs are recorded as they were given, in their order, one INPUT each (I5).",
    run: async (bench) => {
      const session = uidOf(await bench.create());
      const data = create(DataPartSchema, { data: { z: 1e21, a: [null, true, -0.5], "\u{10000}": "astral", "\ue000": {} } });
      const awkward = create(MessageSchema, {
        role: "user",
        parts: [
          { part: { case: "text", value: { text: 'tab\t "quotes" \\ \u0001 é \u{1f600} <&> \u2028' } } },
          {
            part: {
              case: "file",
              value: { mime: "image/png", source: { case: "bytes", value: new Uint8Array([0, 1, 254]) }, name: "a.png" },
            },
          },
          { part: { case: "data", value: data } },
        ],
      });
      const inputs = [
        said("first"),
        awkward,
        create(MessageSchema, { role: "system", parts: [{ part: { case: "text", value: { text: "third" } } }] }),
      ];
      await bench.exec({ session, inputs });
      const recorded = inputsOf(await bench.records(session));
      mustEqual(
        "the INPUT records of a turn",
        recorded.map((message) => toBinary(MessageSchema, message)),
        inputs.map((message) => toBinary(MessageSchema, message)),
      );
    },
  },

  "no-input": {
    promise: "Inputs empty: a turn without input, which is a real turn.",
    run: async (bench) => {
      const session = uidOf(await bench.create());
      const { records, error } = await bench.exec({ session });
      mustEqual("Exec without inputs: how its stream ended", error?.code, undefined);
      mustEqual("Exec without inputs: input_count", startOf(records).inputCount, 0n);
      mustEqual("Exec without inputs: INPUT records", inputsOf(records).length, 0);
      must(wordsOf(records).at(-1)?.startsWith("END "), "Exec without inputs: expected an END");
    },
  },

  "host-fields": {
    promise: "execution_id and ts are the host's; schema_version is 1; two turns have two execution ids.",
    run: async (bench) => {
      const records = await bench.records(await bench.withTurns("a", "b"));
      for (const record of records) {
        must(record.event?.ts !== undefined, `${wordOf(record)} at seq ${record.seq}: expected ts, found none`);
        mustEqual(`${wordOf(record)} at seq ${record.seq}: schema_version`, record.event.schemaVersion, 1);
        must(record.event.executionId !== "", `${wordOf(record)} at seq ${record.seq}: expected an execution_id, found none`);
      }
      const turns = new Set(records.map(({ event }) => event?.executionId));
      mustEqual("two turns of a session: execution ids", turns.size, 2);
    },
  },

  "first-frame": {
    promise: "The first frame of every stream is the Session; an error comes after it.",
    run: async (bench) => {
      const session = await bench.withTurns("a");
      const turns = [await bench.exec({ session, inputs: [said("b")] }), await bench.exec({ session, expectedLastSeq: 1n })];
      for (const [index, { frames }] of turns.entries()) {
        const [first] = frames;
        mustEqual(`Exec that ${index === 0 ? "runs" : "loses its race"}: the first frame`, first?.update.case, "session");
        if (first?.update.case === "session") mustEqual("the Session of the first frame: its uid", uidOf(first.update.value), session);
      }
    },
  },

  "creates-a-session": {
    promise: "session empty: a session is created first, and its uid is in the first frame.",
    run: async (bench) => {
      const { frames, records, error } = await bench.exec({ inputs: [said("hello")] });
      mustEqual("Exec without a session: how its stream ended", error?.code, undefined);
      const [first] = frames;
      must(first?.update.case === "session", "Exec without a session: expected the Session as first frame");
      const uid = uidOf(first.update.value);
      mustEqual("the session that Exec created: its records", wordsOf(await bench.records(uid)), wordsOf(records));
      mustEqual("the session that Exec created: parent_uid", (await bench.get(uid)).parentUid, "");
    },
  },

  "refused-writes-nothing": {
    promise: "An unknown harness is INVALID_ARGUMENT; a deadline already past is DEADLINE_EXCEEDED; nothing is written.",
    run: async (bench) => {
      const session = await bench.withTurns("a");
      const inputs = [said("b")];
      await mustRefuseExec(
        bench,
        "Exec with an unknown harness",
        { session, inputs, harness: "no-such-harness-is-served" },
        "invalid_argument",
        "harness",
      );
      await mustRefuseExec(
        bench,
        "Exec with a deadline in the past",
        { session, inputs, deadlineUnix: PAST },
        "deadline_exceeded",
        "deadline_unix",
      );
      await mustRefuseExec(
        bench,
        "Exec with a part without content",
        { session, inputs: [create(MessageSchema, { role: "user", parts: [{}] })] },
        "invalid_argument",
        "inputs",
      );
      await mustRefuseExec(
        bench,
        "Exec with a negative expected_last_seq",
        { session, inputs, expectedLastSeq: -1n },
        "invalid_argument",
        "expected_last_seq",
      );
    },
  },

  "refused-creates-nothing": {
    promise: "A session that Exec creates comes after everything in the request has been found valid.",
    run: async (bench) => {
      for (const request of [{ harness: "no-such-harness-is-served" }, { deadlineUnix: PAST }, { expectedLastSeq: 7n }]) {
        const { frames, error } = await bench.exec({ inputs: [said("x")], ...request });
        must(error !== undefined, `Exec without a session and with ${Object.keys(request)[0]} wrong: expected an error, got OK`);
        mustEqual(`Exec without a session and with ${Object.keys(request)[0]} wrong: frames`, frames.length, 0);
      }
    },
  },

  "expected-last-seq": {
    promise:
      "expected_last_seq set: the first append happens only at that head, otherwise ABORTED and nothing is written; 0 means no events yet (I6).",
    run: async (bench) => {
      const session = uidOf(await bench.create());
      await mustRefuseExec(bench, "Exec of an empty session at head 1", { session, expectedLastSeq: 1n }, "aborted");
      const first = await bench.exec({ session, inputs: [said("a")], expectedLastSeq: 0n });
      mustEqual("Exec of an empty session at head 0: how its stream ended", first.error?.code, undefined);
      const head = await bench.head(session);
      for (const expectedLastSeq of [0n, head - 1n, head + 1n]) {
        await mustRefuseExec(
          bench,
          `Exec at head ${expectedLastSeq} where ${head} is`,
          { session, inputs: [said("b")], expectedLastSeq },
          "aborted",
        );
      }
      const second = await bench.exec({ session, inputs: [said("b")], expectedLastSeq: head });
      mustEqual("Exec at the session's head: how its stream ended", second.error?.code, undefined);
    },
  },

  "no-interleaving": {
    promise: "Two Execs of one session do not interleave: the second is ABORTED (I6).",
    run: async (bench) => {
      const session = uidOf(await bench.create());
      const turns = await Promise.all(
        Array.from({ length: RACERS }, (_, index) => bench.exec({ session, inputs: [said(`racer ${index}`)] })),
      );
      for (const { error, records } of turns) {
        if (error !== undefined) mustBeRefusal("an Exec that lost its race", error, "aborted");
        if (error !== undefined) mustEqual("an Exec that lost its race: its records", wordsOf(records), []);
      }
      const done = turns.filter(({ error }) => error === undefined).length;
      must(done > 0, "racing Execs: expected one of them to run, found all of them refused");
      const records = await mustVerify(bench, session);
      mustEqual("the turns in the journal after racing Execs", wordsOf(records).filter((word) => word.startsWith("END")).length, done);
      for (const [index, record] of records.entries()) {
        const isStart = record.event?.kind === EventKind.EVENT_EXECUTION_START;
        const before = records[index - 1];
        if (isStart)
          must(
            before === undefined || wordOf(before).startsWith("END"),
            `a turn begins at seq ${record.seq} before the one before it ended`,
          );
        else must(record.event?.executionId === before?.event?.executionId, `the records of two turns are mixed at seq ${record.seq}`);
      }
    },
  },

  "second-is-aborted": {
    promise: "Two Execs of one session do not interleave: the second is ABORTED, and nothing of it is written.",
    needs: ["waitingHarness"],
    run: async (bench) => {
      const running = await bench.waiting({ inputs: [said("first")] });
      const { session } = running;
      const before = await bench.bytes(session);
      const second = await bench.exec({ session, inputs: [said("second")] });
      mustBeRefusal("Exec while another turn runs", second.error, "aborted");
      mustEqual("Exec while another turn runs: the first frame", second.frames[0]?.update.case, "session");
      mustEqual("Exec while another turn runs: the number of records after it", (await bench.bytes(session)).length, before.length);
      mustEqual("GetSession while a turn runs: exec_state", (await bench.get(session)).execState, ExecState.EXEC_RUNNING);
      await bench.call(Sessions.method.cancel, { session });
      await running.ended;
    },
  },

  "client-goes-away": {
    promise: "A client that went away does not end the turn.",
    run: async (bench) => {
      const session = uidOf(await bench.create());
      const request = create(ExecRequestSchema, { session, inputs: [said("hello")] });
      for await (const { update } of bench.transport.stream(Sessions.method.exec, request, bench.options))
        if (update.case === "record") break;
      const state = await bench.eventually("a turn whose client went away: its END", async () => {
        const { execState } = await bench.get(session);
        return execState === ExecState.EXEC_RUNNING ? undefined : execState;
      });
      mustEqual("a turn whose client went away: exec_state", state, ExecState.EXEC_COMPLETED);
      mustEqual("a turn whose client went away: its last record", wordsOf(await bench.records(session)).at(-1), "END COMPLETED");
    },
  },

  deadline: {
    promise: "deadline_unix stops the model call and the harness, then LIFECYCLE CANCEL and END CANCELED; the stream is OK.",
    needs: ["waitingHarness"],
    run: async (bench) => {
      const deadlineUnix = BigInt(Math.ceil(bench.transport.ports.clock.nowMs() / 1000) + 1);
      const { session, ended } = await bench.waiting({ deadlineUnix });
      const { error, records } = await ended;
      mustEqual("Exec whose deadline passed: how its stream ended", error?.code, undefined);
      mustEqual("Exec whose deadline passed: its last records", wordsOf(records).slice(-2), ["LIFECYCLE CANCEL", "END CANCELED"]);
      mustEqual("GetSession after a deadline: exec_state", (await bench.get(session)).execState, ExecState.EXEC_CANCELED);
    },
  },

  failed: {
    promise: "END FAILED is for good: the harness said so; the stream is OK once END has been committed, and the next turn can begin.",
    needs: ["failingHarness"],
    run: async (bench) => {
      const session = uidOf(await bench.create({ harness: bench.harness("failingHarness") }));
      for (let turn = 0; turn < 2; turn++) {
        const { error, records } = await bench.exec({ session, inputs: [said("x")] });
        mustEqual("Exec on a harness that fails: how its stream ended", error?.code, undefined);
        mustEqual("Exec on a harness that fails: its last record", wordsOf(records).at(-1), "END FAILED");
      }
      mustEqual("GetSession after a failed turn: exec_state", (await bench.get(session)).execState, ExecState.EXEC_FAILED);
    },
  },

  interrupted: {
    promise: "A harness that throws leaves ERROR, which is audit: no END, and the stream ends with an error. Exec then starts a new turn.",
    needs: ["flakyHarness"],
    run: async (bench) => {
      const session = uidOf(await bench.create({ harness: bench.harness("flakyHarness") }));
      const { error, records } = await bench.exec({ session, inputs: [said("x")] });
      must(error !== undefined, "Exec on a harness that throws: expected an error at the end of its stream, got OK");
      mustEqual("Exec on a harness that throws: its last record", wordsOf(records).at(-1), "ERROR");
      const next = await bench.exec({ session, inputs: [said("y")] });
      must(next.records.length > 0, "Exec on an interrupted session: expected a new turn, found no record");
      const ids = new Set((await bench.records(session)).map(({ event }) => event?.executionId));
      mustEqual("an interrupted turn and a new one: execution ids", ids.size, 2);
      await mustVerify(bench, session);
    },
  },
};
