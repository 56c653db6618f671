/** Forks. */

import { fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { EventKind, LogRecordSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { ExecState, Sessions, type ForkRequestSchema, type Session } from "../../gen/agentsessions/v1/session_pb.ts";
import { said, sameBytes, uidOf, type Bench } from "./bench.ts";
import { mustVerify, mustVerifyBytes } from "./chain.ts";
import type { CaseTable } from "./contract.ts";
import { errorOf, must, mustBeRefusal, mustEqual, mustRefuse } from "./expect.ts";
import { wordOf, wordsOf } from "./words.ts";

type ForkInit = Exclude<MessageInitShape<typeof ForkRequestSchema>, undefined>;

const GENERATIONS = 10;
const CHILDREN_MAX = 128;

/** Forks a session; the children are the case's. */
async function fork(bench: Bench, session: string, more: ForkInit = {}): Promise<readonly Session[]> {
  const { children } = await bench.call(Sessions.method.fork, { session, count: 1, ...more });
  for (const child of children) bench.adopt(uidOf(child));
  mustEqual(`Fork into ${more.count ?? 1}: the number of children`, children.length, more.count ?? 1);
  return children;
}

/** One child, by its uid. */
async function childAt(bench: Bench, session: string, atSeq: bigint): Promise<string> {
  return uidOf((await fork(bench, session, { atSeq }))[0]);
}

/** Forks where a harness may refuse it: undefined when the seq lies inside a turn and that is not allowed. */
async function childInside(bench: Bench, session: string, atSeq: bigint): Promise<string | undefined> {
  let child: string | undefined;
  const error = await errorOf(fork(bench, session, { atSeq }).then((children) => (child = uidOf(children[0]))));
  if (error !== undefined) mustBeRefusal(`Fork inside a turn, at seq ${atSeq}`, error, "failed_precondition");
  return child;
}

/** Throws unless `child` shares its parent's first records byte for byte and goes on with a FORK marker that links to them. */
async function mustShare(bench: Bench, child: Session, parent: readonly Uint8Array[], atSeq: number): Promise<void> {
  const uid = uidOf(child);
  const bytes = await bench.bytes(uid);
  must(
    sameBytes(bytes.slice(0, atSeq), parent.slice(0, atSeq)),
    `a child forked at seq ${atSeq}: its first ${atSeq} records are not its parent's`,
  );
  mustVerifyBytes(`a child forked at seq ${atSeq}`, bytes);
  const marker = bytes[atSeq] === undefined ? undefined : fromBinary(LogRecordSchema, bytes[atSeq]);
  mustEqual(`a child forked at seq ${atSeq}: its own first record`, marker === undefined ? "none" : wordOf(marker), "LIFECYCLE FORK");
  const last = fromBinary(LogRecordSchema, parent[atSeq - 1]!);
  mustEqual(`the FORK marker of a child at seq ${atSeq}: prev_hash`, marker?.prevHash, last.contentHash);
  must(
    (marker?.fence ?? 0n) > last.fence,
    `the FORK marker of a child at seq ${atSeq}: expected a fence above ${last.fence}, found ${marker?.fence}`,
  );
}

export const FORK_CASES: CaseTable = {
  prefix: {
    promise: "Fork at any seq: children share the prefix hash for hash and fence for fence, start at a higher fence, carry a FORK marker.",
    run: async (bench) => {
      const parent = await bench.withTurns("a", "b");
      const bytes = await bench.bytes(parent);
      for (const [index, record] of bytes.map((each) => fromBinary(LogRecordSchema, each)).entries()) {
        const atSeq = BigInt(index + 1);
        const isEnd = record.event?.kind === EventKind.EVENT_END;
        const uid = isEnd ? await childAt(bench, parent, atSeq) : await childInside(bench, parent, atSeq);
        if (uid === undefined) continue;
        const child = await bench.get(uid);
        mustEqual(`a child forked at seq ${atSeq}: parent_uid and fork_seq`, [child.parentUid, child.forkSeq], [parent, atSeq]);
        mustEqual(`a child forked at seq ${atSeq}: last_seq`, child.lastSeq, atSeq + 1n);
        await mustShare(bench, child, bytes, index + 1);
      }
      must(sameBytes(await bench.bytes(parent), bytes), "Fork: the parent's records are others now");
    },
  },

  head: {
    promise: "Fork with at_seq 0 forks at the head.",
    run: async (bench) => {
      const parent = await bench.withTurns("a");
      const head = await bench.head(parent);
      const [child] = await fork(bench, parent, { atSeq: 0n });
      mustEqual("Fork at 0: fork_seq", child?.forkSeq, head);
    },
  },

  refusals: {
    promise: "Past the head FAILED_PRECONDITION; count 0 and identity set INVALID_ARGUMENT; no more than 128 children.",
    run: async (bench) => {
      const session = await bench.withTurns("a");
      const head = await bench.head(session);
      const asked: readonly (readonly [string, ForkInit, Parameters<typeof mustRefuse>[2], string])[] = [
        ["Fork past the head", { atSeq: head + 1n }, "failed_precondition", "at_seq"],
        ["Fork at a negative seq", { atSeq: -1n }, "invalid_argument", "at_seq"],
        ["Fork into 0 children", { count: 0 }, "invalid_argument", "count"],
        ["Fork into -1 children", { count: -1 }, "invalid_argument", "count"],
        [`Fork into ${CHILDREN_MAX + 1} children`, { count: CHILDREN_MAX + 1 }, "invalid_argument", "count"],
        ["Fork with an identity", { identity: { principal: "agent://other" } }, "invalid_argument", "identity"],
      ];
      for (const [what, request, code, names] of asked) {
        await mustRefuse(what, bench.call(Sessions.method.fork, { session, count: 1, ...request }), code, names);
      }
      const empty = uidOf(await bench.create());
      await mustRefuse(
        "Fork of a session without records",
        bench.call(Sessions.method.fork, { session: empty, count: 1 }),
        "failed_precondition",
      );
      mustEqual("sessions of the project after refused forks", await countSessions(bench), 2);
    },
  },

  "all-or-nothing": {
    promise: "Fork into 1 to 128 children is all or nothing; a taken name is ALREADY_EXISTS and leaves none.",
    run: async (bench) => {
      const session = await bench.withTurns("a");
      await bench.create({ metadata: { name: "taken" } });
      const request = { session, count: 3, childNames: ["free", "taken", "also-free"] };
      await mustRefuse("Fork with a taken name among three", bench.call(Sessions.method.fork, request), "already_exists", "name");
      mustEqual("sessions of the project after it", await countSessions(bench), 2);
      const children = await fork(bench, session, { count: CHILDREN_MAX });
      mustEqual(`Fork into ${CHILDREN_MAX}: distinct uids`, new Set(children.map(uidOf)).size, CHILDREN_MAX);
      const bytes = await bench.bytes(session);
      for (const child of [children[0]!, children.at(-1)!]) await mustShare(bench, child, bytes, bytes.length);
    },
  },

  inherits: {
    promise: "Children inherit project, harness, model, annotations and origin, not identity; labels and names are the caller's.",
    run: async (bench) => {
      const parent = await bench.create({
        annotations: { note: "n" },
        origin: { source: "mail" },
        labels: { own: "1" },
        identity: { principal: "agent://a" },
      });
      const session = uidOf(parent);
      await bench.turn(session, "a");
      const [left, right] = await fork(bench, session, { count: 2, childNames: ["left", ""], labels: { branch: "x" } });
      mustEqual("the children's names", [left?.metadata?.name, right?.metadata?.name], ["left", ""]);
      for (const child of [left, right]) {
        mustEqual(
          "a child: project, harness, model",
          [child?.metadata?.project, child?.harness, child?.model],
          [bench.project, parent.harness, parent.model],
        );
        mustEqual(
          "a child: annotations, origin, labels",
          [child?.annotations, child?.origin?.source, child?.labels],
          [{ note: "n" }, "mail", { branch: "x" }],
        );
        must(child?.identity?.principal !== "agent://a", "a child: expected no identity of its parent's, found it");
      }
    },
  },

  independent: {
    promise: "A child does not see what its parent does later, nor the parent what a child does; both chains verify.",
    run: async (bench) => {
      const parent = await bench.withTurns("a");
      const before = await bench.bytes(parent);
      const child = await childAt(bench, parent, 0n);
      await bench.turn(child, "in the child");
      must(sameBytes(await bench.bytes(parent), before), "a turn of a child: its parent's records are others now");
      const childBytes = await bench.bytes(child);
      await bench.turn(parent, "in the parent");
      must(sameBytes(await bench.bytes(child), childBytes), "a turn of a parent: its child's records are others now");
      await mustVerify(bench, parent);
      await mustVerify(bench, child);
    },
  },

  generations: {
    promise: "Forks of forks: each generation reads its whole lineage and can run a turn.",
    run: async (bench) => {
      let session = await bench.withTurns("a");
      const root = await bench.bytes(session);
      for (let generation = 0; generation < GENERATIONS; generation++) session = await childAt(bench, session, 0n);
      await bench.turn(session, "z");
      const records = await mustVerify(bench, session);
      mustEqual(
        `FORK markers after ${GENERATIONS} generations`,
        wordsOf(records).filter((word) => word === "LIFECYCLE FORK").length,
        GENERATIONS,
      );
      must(
        sameBytes((await bench.bytes(session)).slice(0, root.length), root),
        "the last generation: its first records are not the root's",
      );
      const early = await childAt(bench, session, BigInt(root.length));
      mustEqual(
        "a fork of the last generation at a record of the root: its records",
        (await mustVerify(bench, early)).length,
        root.length + 1,
      );
    },
  },

  "parent-deleted": {
    promise: "Records that children share outlive the parent's deletion.",
    run: async (bench) => {
      const parent = await bench.withTurns("a");
      const bytes = await bench.bytes(parent);
      const child = await childAt(bench, parent, 0n);
      await bench.call(Sessions.method.deleteSession, { uid: parent });
      must(
        sameBytes((await bench.bytes(child)).slice(0, bytes.length), bytes),
        "a child after its parent's deletion: the shared records are others now",
      );
      await bench.turn(child, "b");
      await mustVerify(bench, child);
    },
  },

  "inside-a-turn": {
    promise: "Forked inside a turn the child is AWAITING; its Exec starts a new turn.",
    run: async (bench) => {
      const parent = await bench.withTurns("a");
      const child = await childInside(bench, parent, 2n);
      if (child === undefined) return;
      mustEqual("a child forked inside a turn: exec_state", (await bench.get(child)).execState, ExecState.EXEC_AWAITING);
      await bench.turn(child, "b");
      mustEqual(
        "a child forked inside a turn, after its own turn: exec_state",
        (await bench.get(child)).execState,
        ExecState.EXEC_COMPLETED,
      );
      await mustVerify(bench, child);
    },
  },

  "inside-a-model-call": {
    promise:
      "A copied MODEL_CALL without completion is called once more by the child; there is never a second MODEL_CALL or OUTPUT for one request.",
    run: async (bench) => {
      const parent = await bench.withTurns("a");
      const words = wordsOf(await bench.records(parent));
      const atSeq = words.indexOf("MODEL_CALL") + 1;
      if (atSeq === 0) return;
      const child = await childInside(bench, parent, BigInt(atSeq));
      if (child === undefined) return;
      const resumed = await bench.call(Sessions.method.resume, { session: child });
      mustEqual("Resume of a child forked after a MODEL_CALL: exec_state", resumed.execState, ExecState.EXEC_COMPLETED);
      const own = wordsOf(await mustVerify(bench, child)).filter((word) => !word.startsWith("LIFECYCLE"));
      mustEqual("the journal of a child that resumed after a MODEL_CALL", own, words);
    },
  },

  "while-running": {
    promise: "A session can be forked at the end of an earlier turn while another one runs, and the running turn is untouched by it.",
    needs: ["waitingHarness"],
    run: async (bench) => {
      const first = await bench.waiting({ inputs: [said("a")] });
      await bench.call(Sessions.method.cancel, { session: first.session });
      const ended = BigInt((await first.ended).records.length);
      const running = await bench.begin({ session: first.session });
      const [child] = await fork(bench, first.session, { atSeq: ended });
      mustEqual("a child of a session whose turn runs: exec_state", child?.execState, ExecState.EXEC_CANCELED);
      mustEqual("its parent: exec_state", (await bench.get(first.session)).execState, ExecState.EXEC_RUNNING);
      await bench.call(Sessions.method.cancel, { session: first.session });
      await running.ended;
      await mustVerify(bench, first.session);
    },
  },
};

async function countSessions(bench: Bench): Promise<number> {
  const { sessions } = await bench.call(Sessions.method.listSessions, { project: bench.project, pageSize: 500 });
  return sessions.length;
}
