/**
 * Requests that are wrong, each with the status that the contract gives it and a message that names the field. Nothing is written
 * for any of them: no session appears, no head moves, no row changes.
 */

import { create, type DescMessage, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HoldfastError, SILENT_LOG, type ErrorCode } from "../src/base/index.ts";
import type { MessageSchema } from "../src/gen/agentsessions/v1/common_pb.ts";
import { Sessions, type Session } from "../src/gen/agentsessions/v1/session_pb.ts";
import { Journal } from "../src/gen/holdfast/v1/journal_pb.ts";
import type { MethodDesc } from "../src/grpc/index.ts";
import { startServer, type RunningServer } from "../src/server/index.ts";
import { ask, collect, stream } from "./support/grpc-door.ts";

/** A wrong request, and what it is told. */
interface Case {
  readonly what: string;
  readonly method: MethodDesc<DescMessage, DescMessage>;
  readonly request: MessageShape<DescMessage> | Uint8Array;
  readonly code: ErrorCode;
  /** How the message begins: with the field. */
  readonly words: string;
  readonly metadata?: Metadata;
}

const NOBODY = "018f0000-0000-7000-8000-000000000000";
const LONG = "x".repeat(129);
const CONTROL = "a\u0007b";
const REQUEST_BYTES_MAX = 4 * 1024 * 1024;
const TOO_LARGE = "request: ";

let server: RunningServer;
let client: Client;
/** A session with one completed turn, named `taken`, in the default project. */
let idle = "";
/** A session that was deleted. */
let deleted = "";
/** A page token of the default project. */
let token = "";

const { createSession, getSession, listSessions, deleteSession, cancel, exec, replay, suspend, resume, fork } = Sessions.method;
const { tail, verify, checkReplay } = Journal.method;

function wrong<Input extends DescMessage>(
  what: string,
  method: MethodDesc<Input, DescMessage>,
  request: MessageInitShape<Input> | Uint8Array,
  code: ErrorCode,
  field: string,
): Case {
  return { what, method, request: request instanceof Uint8Array ? request : create(method.input, request), code, words: `${field}: ` };
}

/** A request whose bytes are no such message. */
const bytes = (write: (writer: BinaryWriter) => BinaryWriter): Uint8Array => write(new BinaryWriter()).finish();
const inside = (number: number, inner: Uint8Array): Uint8Array =>
  bytes((writer) => writer.tag(number, WireType.LengthDelimited).bytes(inner));

type Parts = NonNullable<MessageInitShape<typeof MessageSchema>["parts"]>;
const input = (parts: Parts, role = "user") => ({ role, parts });
const text: Parts = [{ part: { case: "text", value: { text: "hello" } } }];
const many = (count: number): Record<string, string> => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, "v"]));

/** The cases are made after the sessions that some of them need. */
function cases(): readonly Case[] {
  return [...uidCases(), ...listCases(), ...createCases(), ...execCases(), ...rangeCases(), ...lifecycleCases(), ...wireCases()];
}

function uidCases(): readonly Case[] {
  return [
    wrong("no uid", getSession, {}, "invalid_argument", "uid"),
    wrong("a uid that is too long", getSession, { uid: LONG }, "invalid_argument", "uid"),
    wrong("a uid with control characters", getSession, { uid: CONTROL }, "invalid_argument", "uid"),
    wrong("a uid of no session", getSession, { uid: NOBODY }, "not_found", "uid"),
    wrong("a deletion without a uid", deleteSession, {}, "invalid_argument", "uid"),
    wrong("a deletion of no session", deleteSession, { uid: NOBODY }, "not_found", "uid"),
    wrong("a cancel without a session", cancel, {}, "invalid_argument", "session"),
    wrong("a cancel of no session", cancel, { session: NOBODY }, "not_found", "session"),
    wrong("a cancel for an unknown reason", cancel, { session: idle, reason: "BORED" }, "invalid_argument", "reason"),
    wrong("a cancel of a turn that cannot be", cancel, { session: idle, executionId: CONTROL }, "invalid_argument", "execution_id"),
    wrong("a verification without a session", verify, {}, "invalid_argument", "session"),
    wrong("a verification of no session", verify, { session: NOBODY }, "not_found", "session"),
    wrong("a check of no session", checkReplay, { session: NOBODY }, "not_found", "session"),
    wrong("a check with an unknown harness", checkReplay, { session: idle, harness: "nobody" }, "invalid_argument", "harness"),
  ];
}

function listCases(): readonly Case[] {
  return [
    wrong("a negative page size", listSessions, { pageSize: -1 }, "invalid_argument", "page_size"),
    wrong("a token that nobody gave out", listSessions, { pageToken: "abc" }, "invalid_argument", "page_token"),
    wrong("a token that was cut", listSessions, { pageToken: token.slice(0, -1) }, "invalid_argument", "page_token"),
    wrong("another project's token", listSessions, { project: "p", pageToken: token }, "invalid_argument", "page_token"),
    wrong("a project with control characters", listSessions, { project: CONTROL }, "invalid_argument", "project"),
    wrong("a project that is too long", listSessions, { project: LONG }, "invalid_argument", "project"),
  ];
}

function createCases(): readonly Case[] {
  const of = (what: string, session: MessageInitShape<typeof createSession.input>["session"], code: ErrorCode, field: string): Case =>
    wrong(what, createSession, session === undefined ? {} : { session }, code, field);
  return [
    of("no session to create", undefined, "invalid_argument", "session"),
    of("a uid of one's own", { metadata: { uid: NOBODY } }, "invalid_argument", "session.metadata.uid"),
    of("a version", { metadata: { version: 1n } }, "invalid_argument", "session.metadata.version"),
    of("a time of creation", { metadata: { createTime: { seconds: 1n } } }, "invalid_argument", "session.metadata.create_time"),
    of("a head", { lastSeq: 1n }, "invalid_argument", "session.last_seq"),
    of("a parent", { parentUid: NOBODY }, "invalid_argument", "session.parent_uid"),
    of("a state", { execState: 4 }, "invalid_argument", "session.exec_state"),
    of("a compute", { compute: {} }, "invalid_argument", "session.compute"),
    of("a pending approval", { pendingApproval: {} }, "invalid_argument", "session.pending_approval"),
    of("a name that is taken", { metadata: { name: "taken" } }, "already_exists", "session.metadata.name"),
    of("a name with white space around it", { metadata: { name: " n " } }, "invalid_argument", "session.metadata.name"),
    of("a name that is too long", { metadata: { name: LONG } }, "invalid_argument", "session.metadata.name"),
    of("an unknown harness", { harness: "nobody" }, "invalid_argument", "session.harness"),
    of("a model with control characters", { model: CONTROL }, "invalid_argument", "session.model"),
    of("too many labels", { labels: many(65) }, "resource_exhausted", "session.labels"),
    of("a label without a key", { labels: { "": "v" } }, "invalid_argument", "session.labels"),
    of("annotations that are too large", { annotations: { a: "x".repeat(65_536) } }, "resource_exhausted", "session.annotations"),
    of("an identity that is too long", { identity: { principal: "x".repeat(1_025) } }, "invalid_argument", "session.identity.principal"),
    of("too many attributes of an origin", { origin: { attributes: many(65) } }, "resource_exhausted", "session.origin.attributes"),
  ];
}

function execCases(): readonly Case[] {
  const of = (what: string, request: MessageInitShape<typeof exec.input>, code: ErrorCode, field: string): Case =>
    wrong(what, exec, { session: idle, ...request }, code, field);
  return [
    of("a turn of a session that cannot be", { session: CONTROL }, "invalid_argument", "session"),
    of("a turn of no session", { session: NOBODY }, "not_found", "session"),
    of("a turn of a deleted session", { session: deleted, inputs: [input(text)] }, "failed_precondition", "session"),
    of("a turn with an unknown harness", { harness: "nobody" }, "invalid_argument", "harness"),
    of("a new session with an unknown harness", { session: "", harness: "nobody" }, "invalid_argument", "harness"),
    of("a new session at a head", { session: "", expectedLastSeq: 1n }, "aborted", "expected_last_seq"),
    of("a negative head", { expectedLastSeq: -1n }, "invalid_argument", "expected_last_seq"),
    of("a head beyond 2^53", { expectedLastSeq: 9_007_199_254_740_992n }, "invalid_argument", "expected_last_seq"),
    of("a deadline that has passed", { deadlineUnix: 1n }, "deadline_exceeded", "deadline_unix"),
    of("a new session with a deadline that has passed", { session: "", deadlineUnix: 1n }, "deadline_exceeded", "deadline_unix"),
    of("a negative deadline", { deadlineUnix: -1n }, "invalid_argument", "deadline_unix"),
    of("an unknown role", { inputs: [input(text), input(text, "human")] }, "invalid_argument", "inputs[1].role"),
    of("no role", { inputs: [input(text, "")] }, "invalid_argument", "inputs[0].role"),
    of("a part without content", { inputs: [input([...text, {}])] }, "invalid_argument", "inputs[0].parts[1]"),
    of(
      "a number that is none",
      { inputs: [input([{ part: { case: "data", value: { data: { a: [Number.NaN] } } } }])] },
      "invalid_argument",
      "inputs[0].parts[0].data.data",
    ),
    of("too many inputs", { inputs: Array.from({ length: 257 }, () => input(text)) }, "resource_exhausted", "inputs"),
    of("a config that is too large", { config: new Uint8Array(262_145) }, "resource_exhausted", "config"),
  ];
}

function rangeCases(): readonly Case[] {
  return [
    wrong("a replay without a session", replay, {}, "invalid_argument", "session"),
    wrong("a replay of no session", replay, { session: NOBODY }, "not_found", "session"),
    wrong("a replay from before the first", replay, { session: idle, fromSeq: -1n }, "invalid_argument", "from_seq"),
    wrong("a replay from beyond 2^53", replay, { session: idle, fromSeq: 2n ** 53n }, "invalid_argument", "from_seq"),
    wrong("a replay to before the first", replay, { session: idle, toSeq: -1n }, "invalid_argument", "to_seq"),
    wrong("a tail of no session", tail, { session: NOBODY }, "not_found", "session"),
    wrong("a tail from before the first", tail, { session: idle, fromSeq: -1n }, "invalid_argument", "from_seq"),
    wrong("a tail that ends in no way", tail, { session: idle, until: 9 as never }, "invalid_argument", "until"),
  ];
}

function lifecycleCases(): readonly Case[] {
  return [
    wrong("a suspend without a session", suspend, {}, "invalid_argument", "session"),
    wrong("a resume of no session", resume, { session: NOBODY }, "not_found", "session"),
    wrong("a fork into nothing", fork, { session: idle }, "invalid_argument", "count"),
    wrong("a fork into too many", fork, { session: idle, count: 129 }, "invalid_argument", "count"),
    wrong("a fork past the head", fork, { session: idle, count: 1, atSeq: 999n }, "failed_precondition", "at_seq"),
    wrong("a fork with a principal", fork, { session: idle, count: 1, identity: {} }, "invalid_argument", "identity"),
    wrong("a fork with a name too few", fork, { session: idle, count: 2, childNames: ["a"] }, "invalid_argument", "child_names"),
  ];
}

function wireCases(): readonly Case[] {
  const latin = inside(2, inside(2, inside(1, inside(1, Uint8Array.of(0xe9)))));
  const large = new Metadata();
  large.set("x-large", "x".repeat(16 * 1024));
  return [
    wrong(
      "a number that is a text",
      listSessions,
      bytes((writer) => writer.tag(2, WireType.LengthDelimited).string("10")),
      "invalid_argument",
      "page_size",
    ),
    wrong(
      "a text that is a number",
      getSession,
      bytes((writer) => writer.tag(1, WireType.Varint).int32(7)),
      "invalid_argument",
      "uid",
    ),
    wrong(
      "a message that is a number",
      createSession,
      bytes((writer) => writer.tag(1, WireType.Varint).int32(7)),
      "invalid_argument",
      "session",
    ),
    wrong(
      "bytes that are a number",
      exec,
      bytes((writer) => writer.tag(5, WireType.Bit32).fixed32(7)),
      "invalid_argument",
      "config",
    ),
    wrong("a text in another encoding", exec, latin, "invalid_argument", "inputs[0].parts[0].text.text"),
    wrong("a request that was cut", exec, Uint8Array.of(0x0a, 0x20, 0x61), "invalid_argument", "session"),
    wrong("a request that is no protobuf", replay, new TextEncoder().encode('{"session":"s"}'), "invalid_argument", "request"),
    // grpc-js refuses it before it is read, in its own words.
    {
      ...wrong("a request that is too large", exec, inside(5, new Uint8Array(REQUEST_BYTES_MAX)), "resource_exhausted", ""),
      words: TOO_LARGE,
    },
    { ...wrong("metadata that is too large", listSessions, {}, "resource_exhausted", "metadata"), metadata: large },
  ];
}

/** The error that a request is told, whatever came before it. */
async function refusal({ method, request, metadata }: Case): Promise<HoldfastError> {
  const options = metadata === undefined ? {} : { metadata };
  const isStream = method.methodKind === "server_streaming";
  const outcome: unknown = await (
    isStream ? collect(stream(client, method, request, options)) : ask(client, method, request, options)
  ).catch((error: unknown) => error);
  if (!(outcome instanceof HoldfastError)) throw new Error("the request was taken");
  return outcome;
}

/** Everything that a request could have changed: every session with its head and its row's version. */
async function everything(): Promise<string[]> {
  const sessions: Session[] = [];
  for (let pageToken = ""; ;) {
    const page = await ask(client, listSessions, create(listSessions.input, { pageToken, pageSize: 500 }));
    sessions.push(...page.sessions);
    pageToken = page.nextPageToken;
    if (pageToken === "") break;
  }
  sessions.push(await ask(client, getSession, create(getSession.input, { uid: deleted })));
  return sessions.map(({ metadata, lastSeq }) => `${metadata?.uid} version ${metadata?.version} head ${lastSeq}`);
}

describe("a malformed request", () => {
  beforeAll(async () => {
    server = await startServer({ listen: { host: "127.0.0.1", port: 0 }, store: { kind: "memory" } }, { log: SILENT_LOG });
    client = new Client(`${server.host}:${server.port}`, credentials.createInsecure());
    const make = async (name: string) => {
      const { metadata } = await ask(client, createSession, create(createSession.input, { session: { metadata: { name } } }));
      return metadata?.uid ?? "";
    };
    idle = await make("taken");
    deleted = await make("");
    await collect(stream(client, exec, create(exec.input, { session: idle, inputs: [input(text)] })));
    await ask(client, deleteSession, create(deleteSession.input, { uid: deleted }));
    await make("");
    token = (await ask(client, listSessions, create(listSessions.input, { pageSize: 1 }))).nextPageToken;
  });
  afterAll(async () => {
    client.close();
    await server.shutdown({ graceMs: 0 });
  });

  it("gets its documented status and a message that names the field, and nothing is written", async () => {
    const before = await everything();
    expect(before.length).toBe(3);
    const all = cases();
    expect(all.length).toBeGreaterThanOrEqual(50);
    for (const each of all) {
      const error = await refusal(each);
      expect({ what: each.what, code: error.code }).toEqual({ what: each.what, code: each.code });
      const beginning = error.message.slice(0, each.words.length);
      expect({ what: each.what, beginning }).toEqual({ what: each.what, beginning: each.words });
      expect(error.message.length).toBeGreaterThan(each.words.length + 8);
      expect({ what: each.what, everything: await everything() }).toEqual({ what: each.what, everything: before });
    }
  });

  it("would be noticed if it wrote anything", async () => {
    const before = await everything();
    await collect(stream(client, exec, create(exec.input, { session: idle })));
    const after = await everything();
    expect(after.filter((line) => !before.includes(line)).length).toBe(1);
  });
});
