import { create } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Seq, SessionUid } from "../base/index.ts";
import { IdentityRefSchema } from "../gen/agentsessions/v1/common_pb.ts";
import {
  CancelRequestSchema,
  CreateSessionRequestSchema,
  DeleteSessionRequestSchema,
  DeletionState,
  ExecState,
  GetSessionRequestSchema,
  ListSessionsRequestSchema,
  ReplayRequestSchema,
  SessionSchema,
  type Session,
} from "../gen/agentsessions/v1/session_pb.ts";
import type { StoredRecord } from "../journal/index.ts";
import type { Authorizer, HarnessCatalog } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { harnessCatalog, seededPorts, testHarness, TestHost, type HarnessRun } from "../testing/index.ts";
import { ALLOW_ALL } from "./access.ts";
import type { CallContext, SessionsService } from "./contract.ts";
import type { ServiceLimits } from "./limits.ts";
import { createSessionsService } from "./sessions.ts";

interface BenchOptions {
  readonly run?: HarnessRun;
  readonly authorizer?: Authorizer;
  readonly limits?: Partial<ServiceLimits>;
  readonly catalog?: (catalog: HarnessCatalog) => HarnessCatalog;
}

function bench({ run = async () => undefined, authorizer = ALLOW_ALL, limits, catalog = (same) => same }: BenchOptions = {}) {
  const ports = seededPorts(11);
  const journal = createMemoryStore(ports);
  const harnesses = { test: testHarness(run), other: testHarness(run) };
  const host = new TestHost({ journal, ports, harnesses });
  onTestFinished(() => host[Symbol.asyncDispose]());
  const sessions: SessionsService = createSessionsService({
    journal,
    controller: host.controller,
    harnesses: catalog(harnessCatalog(harnesses)),
    authorizer,
    ports,
    defaults: { harness: "test", model: "default-model" },
    limits,
  });
  return { host, sessions, ports };
}

const ada = create(IdentityRefSchema, { principal: "ada", issuer: "test", subject: "1" });
const context: CallContext = { caller: { identity: undefined }, signal: new AbortController().signal };

const createRequest = (session: Parameters<typeof create<typeof SessionSchema>>[1]) =>
  create(CreateSessionRequestSchema, { session: create(SessionSchema, session) });
const uidOf = (session: Session): SessionUid => session.metadata?.uid as SessionUid;
const nobody = "018f0000-0000-7000-8000-000000000000";

describe("CreateSession", () => {
  it("gives a session its uid, its times and the server's defaults", async () => {
    const { sessions, ports } = bench();
    const session = await sessions.createSession(createRequest({}), context);
    expect(session).toMatchObject({
      harness: "test",
      model: "default-model",
      lastSeq: 0n,
      execState: ExecState.EXEC_PENDING,
      deletionState: DeletionState.DELETION_ACTIVE,
    });
    expect(uidOf(session)).toMatch(/^[0-9a-f-]{36}$/);
    expect(session.metadata?.createTime?.seconds).toBe(BigInt(Math.floor(ports.clock.nowMs() / 1000)));
  });

  it("keeps what its creator decided", async () => {
    const { sessions } = bench();
    const wanted = {
      metadata: { project: "p", name: "n" },
      harness: "other",
      model: "gpt-x",
      identity: ada,
      origin: { source: "github", subject: "issue 7", uri: "https://example.com/7", attributes: { label: "bug" } },
      labels: { team: "blue" },
      annotations: { note: "two\nlines" },
    };
    const created = await sessions.createSession(createRequest(wanted), context);
    const read = await sessions.getSession(create(GetSessionRequestSchema, { uid: uidOf(created) }), context);
    expect(read).toMatchObject(wanted);
  });

  it("takes the caller's identity where none is given", async () => {
    const { sessions } = bench();
    const session = await sessions.createSession(createRequest({}), { ...context, caller: { identity: ada } });
    expect(session.identity).toEqual(ada);
  });

  it("is ALREADY_EXISTS for a name of the project, and only of the project", async () => {
    const { sessions } = bench();
    await sessions.createSession(createRequest({ metadata: { project: "p", name: "n" } }), context);
    await sessions.createSession(createRequest({ metadata: { project: "q", name: "n" } }), context);
    await expect(sessions.createSession(createRequest({ metadata: { project: "p", name: "n" } }), context)).rejects.toMatchObject({
      code: "already_exists",
      field: "session.metadata.name",
    });
  });

  it("takes another uid where one is taken", async () => {
    const { sessions, host, ports } = bench();
    const same = ports.random.bytes(16);
    const fresh = ports.random.bytes.bind(ports.random);
    const bytes = [same, same.slice()];
    ports.random.bytes = (count) => bytes.shift() ?? fresh(count);
    const first = await sessions.createSession(createRequest({}), context);
    const second = await sessions.createSession(createRequest({}), context);
    expect(uidOf(second)).not.toBe(uidOf(first));
    expect((await host.journal.list({ limit: 10 })).rows.length).toBe(2);
  });

  it("refuses an unknown harness and one that takes no new sessions", async () => {
    const { sessions } = bench({
      catalog: (inner) => ({
        find: (name) => {
          const entry = inner.find(name);
          return entry === undefined || name !== "other" ? entry : { ...entry, open: false };
        },
        names: () => inner.names(),
      }),
    });
    await expect(sessions.createSession(createRequest({ harness: "nobody" }), context)).rejects.toMatchObject({
      code: "invalid_argument",
      field: "session.harness",
    });
    await expect(sessions.createSession(createRequest({ harness: "other" }), context)).rejects.toMatchObject({
      code: "failed_precondition",
    });
  });
});

describe("GetSession", () => {
  it("is INVALID_ARGUMENT without a uid and plain NOT_FOUND for an unknown one", async () => {
    const { sessions } = bench();
    for (const uid of ["", "x".repeat(129), "a\u0000b"]) {
      const get = sessions.getSession(create(GetSessionRequestSchema, { uid }), context);
      await expect(get).rejects.toMatchObject({ code: "invalid_argument", field: "uid" });
    }
    for (const uid of [nobody, "not a uuid", "x".repeat(128)]) {
      const get = sessions.getSession(create(GetSessionRequestSchema, { uid }), context);
      await expect(get).rejects.toMatchObject({ code: "not_found", message: "uid: no session has this uid" });
    }
  });
});

describe("ListSessions", () => {
  /** Creates sessions one millisecond apart. */
  async function many(count: number, options: BenchOptions = {}) {
    const { sessions, ports, host } = bench(options);
    const uids: string[] = [];
    for (let index = 0; index < count; index++) {
      uids.push(uidOf(await sessions.createSession(createRequest({ annotations: { note: "x".repeat(64) } }), context)));
      ports.clock.advance(1);
    }
    return { sessions, host, newestFirst: uids.toReversed() };
  }

  async function page(sessions: SessionsService, request: { project?: string; pageSize?: number; pageToken?: string }) {
    const answer = await sessions.listSessions(create(ListSessionsRequestSchema, request), context);
    return { uids: answer.sessions.map(uidOf), next: answer.nextPageToken };
  }

  it("pages through the sessions of a project, newest first", async () => {
    const { sessions, newestFirst } = await many(7);
    const seen: string[] = [];
    let pageToken = "";
    let pages = 0;
    do {
      const { uids, next } = await page(sessions, { pageSize: 3, pageToken });
      seen.push(...uids);
      pageToken = next;
      pages++;
    } while (pageToken !== "");
    expect(seen).toEqual(newestFirst);
    expect(pages).toBe(3);
  });

  it("takes 0 for the default and anything above the most for the most", async () => {
    const { sessions } = await many(7, { limits: { pageSizeDefault: 2, pageSizeMax: 5 } });
    expect((await page(sessions, {})).uids.length).toBe(2);
    expect((await page(sessions, { pageSize: 5 })).uids.length).toBe(5);
    expect((await page(sessions, { pageSize: 2_147_483_647 })).uids.length).toBe(5);
  });

  it("ends a page early where its sessions are large, and loses none", async () => {
    const { sessions, newestFirst } = await many(6, { limits: { pageBytesSoftMax: 4_000 } });
    const first = await page(sessions, { pageSize: 6 });
    expect(first.uids.length).toBeGreaterThan(0);
    expect(first.uids.length).toBeLessThan(6);
    const rest: string[] = [];
    for (let { next } = first; next !== "";) {
      const more = await page(sessions, { pageSize: 6, pageToken: next });
      rest.push(...more.uids);
      next = more.next;
    }
    expect([...first.uids, ...rest]).toEqual(newestFirst);
  });

  it("tells children and not the deleted ones, and no other project's", async () => {
    const { sessions, newestFirst } = await many(3);
    await sessions.createSession(createRequest({ metadata: { project: "other" } }), context);
    await sessions.deleteSession(create(DeleteSessionRequestSchema, { uid: newestFirst[1] ?? "" }), context);
    expect((await page(sessions, {})).uids).toEqual([newestFirst[0], newestFirst[2]]);
    expect((await page(sessions, { project: "other" })).uids.length).toBe(1);
    expect((await page(sessions, { project: "nobody's" })).uids).toEqual([]);
  });

  it("refuses a negative size and a token that it did not give out", async () => {
    const { sessions } = await many(3);
    await expect(page(sessions, { pageSize: -1 })).rejects.toMatchObject({ code: "invalid_argument", field: "page_size" });
    const { next } = await page(sessions, { pageSize: 1 });
    const [body = "", sum = ""] = next.split(".");
    const forged = [
      "x",
      next.slice(0, -1),
      `${next}.`,
      `${body}x.${sum}`,
      `.${sum}`,
      `${body}.`,
      "%%%.0000000000000000",
      "x".repeat(5_000),
    ];
    for (const pageToken of forged) {
      await expect(page(sessions, { pageToken })).rejects.toMatchObject({ code: "invalid_argument", field: "page_token" });
    }
    await expect(page(sessions, { project: "other", pageToken: next })).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("another project") as string,
    });
  });
});

describe("DeleteSession", () => {
  it("records the intent, hides the session from listings and keeps it readable", async () => {
    const { sessions } = bench();
    const uid = uidOf(await sessions.createSession(createRequest({}), context));
    const request = create(DeleteSessionRequestSchema, { uid });
    const deleted = await sessions.deleteSession(request, context);
    expect(deleted.deletionState).toBe(DeletionState.DELETION_PENDING);
    expect(await sessions.deleteSession(request, context)).toEqual(deleted);
    const read = await sessions.getSession(create(GetSessionRequestSchema, { uid }), context);
    expect(read).toEqual(deleted);
  });

  it("is NOT_FOUND for an unknown session", async () => {
    const { sessions } = bench();
    const deletion = sessions.deleteSession(create(DeleteSessionRequestSchema, { uid: nobody }), context);
    await expect(deletion).rejects.toMatchObject({ code: "not_found", field: "uid" });
  });
});

describe("Cancel", () => {
  it("ends the running turn as CANCELED, for the caller's reason or USER", async () => {
    for (const reason of ["", "USER", "TIMEOUT", "INTERNAL"]) {
      const { sessions, host } = bench({
        run: (_start, _sink, { signal }) =>
          new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))),
      });
      const session = await host.createSession();
      await host.begin(session, ["wait"]);
      const canceled = await sessions.cancel(create(CancelRequestSchema, { session, reason }), context);
      expect(canceled.execState).toBe(ExecState.EXEC_CANCELED);
      expect((await host.story(session)).at(-2)).toContain(reason === "" ? "USER" : reason);
    }
  });

  it("leaves a session without an open turn as it is", async () => {
    const { sessions, host } = bench();
    const session = await host.createSession();
    const canceled = await sessions.cancel(create(CancelRequestSchema, { session }), context);
    expect(canceled).toMatchObject({ execState: ExecState.EXEC_PENDING, lastSeq: 0n });
  });

  it("refuses another turn's id, an unknown reason and an unknown session", async () => {
    const { sessions, host } = bench({ run: () => new Promise(() => undefined) });
    const session = await host.createSession();
    await host.begin(session, ["wait"]);
    const other = sessions.cancel(create(CancelRequestSchema, { session, executionId: "other" }), context);
    await expect(other).rejects.toMatchObject({ code: "failed_precondition", field: "execution_id" });
    const because = sessions.cancel(create(CancelRequestSchema, { session, reason: "BORED" }), context);
    await expect(because).rejects.toMatchObject({ code: "invalid_argument", field: "reason" });
    const unknown = sessions.cancel(create(CancelRequestSchema, { session: nobody }), context);
    await expect(unknown).rejects.toMatchObject({ code: "not_found", field: "session" });
    await host.controller.cancel({ session, executionId: "", reason: "USER" });
  });
});

describe("Replay", () => {
  async function seqs(pages: AsyncIterable<readonly StoredRecord[]>): Promise<Seq[]> {
    const found: Seq[] = [];
    for await (const records of pages) found.push(...records.map((record) => record.seq));
    return found;
  }

  it("delivers the range, both ends included, and nothing past the head", async () => {
    const { sessions, host } = bench({ run: async (_start, sink) => sink.output("one") });
    const session = await host.createSession();
    await (
      await host.begin(session, ["hello"])
    ).outcome;
    const range = (fromSeq: bigint, toSeq: bigint) =>
      seqs(sessions.replay(create(ReplayRequestSchema, { session, fromSeq, toSeq }), context));
    expect(await range(0n, 0n)).toEqual([1, 2, 3, 4]);
    expect(await range(1n, 0n)).toEqual([1, 2, 3, 4]);
    expect(await range(2n, 3n)).toEqual([2, 3]);
    expect(await range(4n, 400n)).toEqual([4]);
    expect(await range(5n, 0n)).toEqual([]);
    expect(await range(3n, 2n)).toEqual([]);
    expect(await range(9_007_199_254_740_991n, 0n)).toEqual([]);
  });

  it("is empty for a session without records, and NOT_FOUND for none", async () => {
    const { sessions, host } = bench();
    const session = await host.createSession();
    expect(await seqs(sessions.replay(create(ReplayRequestSchema, { session }), context))).toEqual([]);
    const unknown = seqs(sessions.replay(create(ReplayRequestSchema, { session: nobody }), context));
    await expect(unknown).rejects.toMatchObject({ code: "not_found", field: "session" });
  });

  it("refuses negative ends and ends that no seq can have", async () => {
    const { sessions, host } = bench();
    const session = await host.createSession();
    for (const [field, request] of [
      ["from_seq", { fromSeq: -1n }],
      ["from_seq", { fromSeq: 9_007_199_254_740_992n }],
      ["to_seq", { toSeq: -1n }],
    ] as const) {
      const refused = seqs(sessions.replay(create(ReplayRequestSchema, { session, ...request }), context));
      await expect(refused).rejects.toMatchObject({ code: "invalid_argument", field });
    }
  });
});

describe("every call", () => {
  it("asks the authorizer for what it does, with the project and the session", async () => {
    const asked: string[] = [];
    const authorizer: Authorizer = {
      authorize: async (_caller, action, subject) => {
        asked.push(`${action} ${subject.project} ${subject.session === undefined ? "-" : "session"}`);
        return action === "session.create" ? { kind: "allowed" } : { kind: "denied", reason: "not you" };
      },
    };
    const { sessions } = bench({ authorizer });
    const uid = uidOf(await sessions.createSession(createRequest({ metadata: { project: "p" } }), context));
    const calls = [
      sessions.getSession(create(GetSessionRequestSchema, { uid }), context),
      sessions.listSessions(create(ListSessionsRequestSchema, { project: "p" }), context),
      sessions.deleteSession(create(DeleteSessionRequestSchema, { uid }), context),
      sessions.cancel(create(CancelRequestSchema, { session: uid }), context),
      sessions.replay(create(ReplayRequestSchema, { session: uid }), context).next(),
    ];
    for (const call of calls) await expect(call).rejects.toMatchObject({ code: "permission_denied", message: "not you" });
    expect(asked).toEqual([
      "session.create p -",
      "session.list p -",
      "session.read p session",
      "session.delete p session",
      "session.cancel p session",
      "session.read p session",
    ]);
  });
});
