/** Creating and naming sessions. */

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { HoldfastError } from "../../base/index.ts";
import { IdentityRefSchema, OriginSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { ComputeState, DeletionState, ExecState, Sessions, type SessionSchema } from "../../gen/agentsessions/v1/session_pb.ts";
import { uidOf, type Bench } from "./bench.ts";
import type { CaseTable } from "./contract.ts";
import { errorOf, must, mustEqual, mustMatch, mustRefuse } from "./expect.ts";

type SessionInit = Exclude<MessageInitShape<typeof SessionSchema>, undefined>;

/** Output-only fields, each with a value that a caller must not give. */
const OUTPUT_ONLY: readonly (readonly [names: string, session: SessionInit])[] = [
  ["uid", { metadata: { uid: "chosen" } }],
  ["version", { metadata: { version: 1n } }],
  ["create_time", { metadata: { createTime: { seconds: 1n } } }],
  ["update_time", { metadata: { updateTime: { seconds: 1n } } }],
  ["last_seq", { lastSeq: 1n }],
  ["parent_uid", { parentUid: "parent" }],
  ["fork_seq", { forkSeq: 1n }],
  ["compute", { compute: { runtime: "local" } }],
  ["exec_state", { execState: ExecState.EXEC_COMPLETED }],
  ["compute_state", { computeState: ComputeState.COMPUTE_LIVE }],
  ["pending_approval", { pendingApproval: { toolCallId: "call" } }],
  ["deletion_state", { deletionState: DeletionState.DELETION_PENDING }],
];

/** Every call that names a session, with the field it names it by. */
export function callsNaming(bench: Bench, uid: string): readonly (readonly [name: string, field: string, call: () => Promise<unknown>])[] {
  return [
    ["GetSession", "uid", () => bench.get(uid)],
    ["DeleteSession", "uid", () => bench.call(Sessions.method.deleteSession, { uid })],
    ["Replay", "session", () => bench.bytes(uid)],
    ["Cancel", "session", () => bench.call(Sessions.method.cancel, { session: uid })],
    ["Suspend", "session", () => bench.call(Sessions.method.suspend, { session: uid })],
    ["Resume", "session", () => bench.call(Sessions.method.resume, { session: uid })],
    ["Fork", "session", () => bench.call(Sessions.method.fork, { session: uid, count: 1 })],
  ];
}

async function execRefusal(bench: Bench, session: string): Promise<unknown> {
  const { error } = await bench.exec({ session });
  if (error !== undefined) throw error;
  return undefined;
}

export const SESSION_CASES: CaseTable = {
  "new-session": {
    promise: "The host alone sets metadata.uid, the times and the states; exec_state is PENDING before the first turn.",
    run: async (bench) => {
      const session = await bench.create();
      must(session.metadata?.createTime !== undefined, "CreateSession: expected metadata.create_time, found none");
      must(session.harness !== "", "CreateSession: expected the name of the session's harness, found none");
      mustEqual("a new session's last_seq", session.lastSeq, 0n);
      mustEqual("a new session's exec_state", session.execState, ExecState.EXEC_PENDING);
      mustEqual("a new session's deletion_state", session.deletionState, DeletionState.DELETION_ACTIVE);
      mustEqual("a new session's records", (await bench.bytes(uidOf(session))).length, 0);
      const other = await bench.create();
      must(uidOf(other) !== uidOf(session), "CreateSession, twice: expected two uids, found one");
    },
  },

  "keeps-what-its-creator-decides": {
    promise: "Project, name, model, identity, origin, labels and annotations are the caller's and read back as given.",
    run: async (bench) => {
      const identity = create(IdentityRefSchema, { principal: "agent://a", issuer: "https://issuer.example", subject: "s" });
      const origin = create(OriginSchema, { source: "mail", subject: "re: hello", uri: "https://example.com/1", attributes: { k: "v" } });
      const given = { model: "some-model", identity, origin, labels: { team: "blue" }, annotations: { note: "two\nlines" } };
      const made = await bench.create({ ...given, metadata: { name: "kept" } });
      const read = await bench.get(uidOf(made));
      mustEqual("GetSession: project and name", [read.metadata?.project, read.metadata?.name], [bench.project, "kept"]);
      mustEqual(
        "GetSession: model, labels, annotations",
        [read.model, read.labels, read.annotations],
        ["some-model", given.labels, given.annotations],
      );
      mustMatch("GetSession: identity", IdentityRefSchema, read.identity, identity);
      mustMatch("GetSession: origin", OriginSchema, read.origin, origin);
    },
  },

  "output-only-fields": {
    promise: "CreateSession with a uid or another output-only field set is INVALID_ARGUMENT.",
    run: async (bench) => {
      for (const [names, session] of OUTPUT_ONLY) {
        await mustRefuse(`CreateSession with ${names} set`, bench.create(session), "invalid_argument", names);
      }
    },
  },

  "taken-name": {
    promise: "ALREADY_EXISTS: a taken name; a name is taken within its project.",
    run: async (bench) => {
      await bench.create({ metadata: { name: "taken" } });
      await mustRefuse("CreateSession with a name that is taken", bench.create({ metadata: { name: "taken" } }), "already_exists", "name");
      await bench.create({ metadata: { name: "taken", project: `${bench.project}-2` } });
    },
  },

  "unknown-harness": {
    promise: "An unknown harness name is INVALID_ARGUMENT.",
    run: async (bench) => {
      const refused = bench.create({ harness: "no-such-harness-is-served" });
      await mustRefuse("CreateSession with an unknown harness", refused, "invalid_argument", "harness");
    },
  },

  "malformed-uid": {
    promise: "A uid that is empty where one is needed, too long or with control characters is INVALID_ARGUMENT.",
    run: async (bench) => {
      const wrong: readonly (readonly [string, string])[] = [
        ["an empty uid", ""],
        ["a uid of 10,000 characters", "x".repeat(10_000)],
        ["a uid with a control character", "a\u0000b"],
      ];
      for (const [what, uid] of wrong) {
        for (const [name, field, call] of callsNaming(bench, uid))
          await mustRefuse(`${name} with ${what}`, call(), "invalid_argument", field);
        if (uid !== "") await mustRefuse(`Exec with ${what}`, execRefusal(bench, uid), "invalid_argument", "session");
      }
    },
  },

  "unknown-uid": {
    promise: "Any other unknown uid is plain NOT_FOUND.",
    run: async (bench) => {
      const uid = "018f0000-0000-7000-8000-000000000000";
      for (const [name, , call] of callsNaming(bench, uid)) await mustRefuse(`${name} of an unknown session`, call(), "not_found");
      await mustRefuse("Exec of an unknown session", execRefusal(bench, uid), "not_found");
    },
  },

  "errors-tell-nothing": {
    promise: "An error never carries a payload; its message names the field or state that is wrong.",
    run: async (bench) => {
      const secret = "a-secret-that-was-in-the-request";
      const uid = uidOf(await bench.create());
      const calls = [
        bench.create({ harness: secret }),
        bench.call(Sessions.method.listSessions, { pageToken: secret }),
        bench.call(Sessions.method.cancel, { session: uid, reason: secret }),
        bench.get(secret),
      ];
      for (const error of await Promise.all(calls.map(errorOf))) {
        must(error instanceof HoldfastError, "a wrong request: expected an error, got OK");
        must(!error.message.includes(secret), `an error's message repeats the request: ${error.message}`);
        must(error.message !== "", "an error: expected a message, found none");
      }
    },
  },
};
