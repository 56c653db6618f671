import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished } from "vitest";
import { HoldfastError, type ErrorCode, type SessionUid } from "../base/index.ts";
import { decodeLogRecord } from "../canon/index.ts";
import { IdentityRefSchema, MessageSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { ExecRequestSchema, ExecState, type ExecRequest } from "../gen/agentsessions/v1/session_pb.ts";
import type { Authorizer } from "../spi/index.ts";
import { textMessage } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { harnessCatalog, seededPorts, storyOf, testHarness, TestHost, type HarnessRun } from "../testing/index.ts";
import { ALLOW_ALL } from "./access.ts";
import type { CallContext, SessionsService, StreamItem } from "./contract.ts";
import { createSessionsService } from "./sessions.ts";

const ports = seededPorts(7);
const somebody = { principal: "ada", issuer: "test", subject: "1" };

interface Bench {
  readonly host: TestHost;
  readonly sessions: SessionsService;
}

function bench(run: HarnessRun = echo, authorizer: Authorizer = ALLOW_ALL): Bench {
  const journal = createMemoryStore(ports);
  const harnesses = { test: testHarness(run), other: testHarness(run) };
  const host = new TestHost({ journal, ports, harnesses });
  onTestFinished(() => host[Symbol.asyncDispose]());
  const sessions = createSessionsService({
    journal,
    controller: host.controller,
    harnesses: harnessCatalog(harnesses),
    authorizer,
    ports,
    defaults: { harness: "test", model: "test" },
  });
  return { host, sessions };
}

const echo: HarnessRun = async (start, sink) => {
  for (const input of start.inputs) await sink.output(input.parts[0]?.part.case === "text" ? input.parts[0].part.value.text : "");
};

function context(signal: AbortSignal = new AbortController().signal): CallContext {
  return { caller: { identity: undefined }, signal };
}

function hello(session: SessionUid | "", more: MessageInitShape<typeof ExecRequestSchema> = {}): ExecRequest {
  return create(ExecRequestSchema, { session, inputs: [textMessage("user", "hello")], ...more });
}

async function collect(stream: AsyncIterable<StreamItem>): Promise<StreamItem[]> {
  const items: StreamItem[] = [];
  for await (const item of stream) items.push(item);
  return items;
}

/** What a stream told, and how it ended. */
async function listen(stream: AsyncIterable<StreamItem>): Promise<{ words: string[]; error: HoldfastError | undefined }> {
  const words: string[] = [];
  try {
    for await (const item of stream) words.push(wordsOf(item));
    return { words, error: undefined };
  } catch (error) {
    return { words, error: error as HoldfastError };
  }
}

function wordsOf(item: StreamItem): string {
  switch (item.kind) {
    case "session":
      return `session ${Object.entries(ExecState).find(([, state]) => state === item.session.execState)?.[0] ?? ""}`;
    case "delta":
      return "delta";
    case "record": {
      const { event } = decodeLogRecord(item.record.bytes);
      return event === undefined ? "?" : storyOf(event);
    }
  }
}

describe("Exec", () => {
  it("tells the session first, then every record as it is committed, and ends after END", async () => {
    const { host, sessions } = bench();
    const session = await host.createSession();
    const { words, error } = await listen(sessions.exec(hello(session), context()));
    expect(error).toBeUndefined();
    expect(words.filter((word) => word !== "delta")).toEqual([
      "session EXEC_PENDING",
      "EXECUTION_START",
      "INPUT hello",
      "OUTPUT hello",
      "END COMPLETED",
    ]);
  });

  it("creates a session when none is named, with the harness that was asked for", async () => {
    const { host, sessions } = bench();
    const items = await collect(sessions.exec(hello("", { harness: "other" }), context()));
    const [first] = items;
    if (first?.kind !== "session") throw new Error("the session comes first");
    const row = await host.journal.get(first.session.metadata?.uid as SessionUid);
    expect(row?.seed).toMatchObject({ harness: "other", model: "test", project: "", name: "" });
    expect(row?.projection.lastEnd).toBe("COMPLETED");
  });

  it("streams only its own turn, however far its reader is behind", async () => {
    const { host, sessions } = bench();
    const session = await host.createSession();
    const slow = sessions.exec(hello(session), context());
    await slow.next();
    await slow.next();
    await host.controller.running(session)?.outcome;
    await collect(sessions.exec(hello(session), context()));
    const rest = await collect(slow);
    const last = rest.at(-1);
    expect(last === undefined ? "" : wordsOf(last)).toBe("END COMPLETED");
    expect(rest.filter((item) => item.kind === "record").length).toBe(3);
  });

  it("begins nothing for a client that is gone before the turn begins", async () => {
    const { host, sessions } = bench();
    const session = await host.createSession();
    const gone = new AbortController();
    const stream = sessions.exec(hello(session), context(gone.signal));
    await stream.next();
    gone.abort(new HoldfastError("cancelled", "gone"));
    await expect(stream.next()).rejects.toMatchObject({ code: "cancelled" });
    expect((await host.journal.get(session))?.projection.lastSeq).toBe(0);
  });

  it("goes on with the turn when the client goes away in the middle of it", async () => {
    const go = Promise.withResolvers<void>();
    const { host, sessions } = bench(async (_start, sink) => {
      await go.promise;
      await sink.output("late");
    });
    const session = await host.createSession();
    const gone = new AbortController();
    const stream = sessions.exec(hello(session), context(gone.signal));
    await stream.next();
    await stream.next();
    const running = host.controller.running(session);
    gone.abort(new HoldfastError("cancelled", "gone"));
    await expect(collect(stream)).rejects.toMatchObject({ code: "cancelled" });
    go.resolve();
    await expect(running?.outcome).resolves.toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(await host.story(session)).toContain("OUTPUT late");
  });

  it("fails after its records when the turn was interrupted", async () => {
    const { host, sessions } = bench(async (_start, sink) => {
      await sink.output("so far");
      throw new Error("the harness broke");
    });
    const session = await host.createSession();
    const { words, error } = await listen(sessions.exec(hello(session), context()));
    expect(words).toContain("OUTPUT so far");
    expect(words.at(-1)).toMatch(/^ERROR/);
    expect(error).toBeInstanceOf(HoldfastError);
    expect(error?.message).not.toContain("the harness broke");
  });

  it("records the caller as the actor of the inputs", async () => {
    const { host, sessions } = bench();
    const session = await host.createSession();
    await collect(sessions.exec(hello(session), { ...context(), caller: { identity: create(IdentityRefSchema, somebody) } }));
    const records = await host.records(session);
    expect(records.map((record) => record.event?.actor?.principal)).toContain("ada");
  });
});

describe("an Exec that may not be", () => {
  it("is NOT_FOUND for a session that nobody created", async () => {
    const { sessions } = bench();
    await expect(collect(sessions.exec(hello("nobody" as SessionUid), context()))).rejects.toMatchObject({
      code: "not_found",
      field: "session",
    });
  });

  it("is ABORTED while another turn runs, after the session was told", async () => {
    const go = Promise.withResolvers<void>();
    const { host, sessions } = bench(() => go.promise);
    const session = await host.createSession();
    const first = collect(sessions.exec(hello(session), context()));
    while (host.controller.running(session) === undefined) await Promise.resolve();
    const { words, error } = await listen(sessions.exec(hello(session), context()));
    expect(words.length).toBe(1);
    expect(error?.code).toBe("aborted");
    go.resolve();
    await first;
  });

  it("is ABORTED at another head than the expected one, and writes nothing", async () => {
    const { host, sessions } = bench();
    const session = await host.createSession();
    const { error } = await listen(sessions.exec(hello(session, { expectedLastSeq: 3n }), context()));
    expect(error?.code).toBe("aborted");
    await collect(sessions.exec(hello(session, { expectedLastSeq: 0n }), context()));
    expect((await host.journal.get(session))?.projection.lastEnd).toBe("COMPLETED");
  });

  it("is ABORTED for a head that a new session cannot have, and creates none", async () => {
    const { host, sessions } = bench();
    await expect(collect(sessions.exec(hello("", { expectedLastSeq: 1n }), context()))).rejects.toMatchObject({
      code: "aborted",
      field: "expected_last_seq",
    });
    expect((await host.journal.list({ limit: 10 })).rows).toEqual([]);
  });

  const refusals: readonly (readonly [what: string, request: MessageInitShape<typeof ExecRequestSchema>, code: ErrorCode])[] = [
    ["an unknown harness", { harness: "nobody" }, "invalid_argument"],
    ["a deadline in the past", { deadlineUnix: 1n }, "deadline_exceeded"],
    ["a part without content", { inputs: [create(MessageSchema, { role: "user", parts: [{}] })] }, "invalid_argument"],
  ];
  for (const [what, request, code] of refusals) {
    it(`creates no session for ${what}`, async () => {
      const { host, sessions } = bench();
      await expect(collect(sessions.exec(hello("", request), context()))).rejects.toMatchObject({ code });
      expect((await host.journal.list({ limit: 10 })).rows).toEqual([]);
    });
  }

  it("is FAILED_PRECONDITION for a deleted session", async () => {
    const { host, sessions } = bench();
    const session = await host.createSession();
    await host.controller.delete(session, undefined);
    await expect(collect(sessions.exec(hello(session), context()))).rejects.toMatchObject({ code: "failed_precondition" });
  });

  it("is UNAVAILABLE while the host shuts down", async () => {
    const { host, sessions } = bench();
    const session = await host.createSession();
    await host.controller.shutdown({ graceMs: 0 });
    await expect(collect(sessions.exec(hello(session), context()))).rejects.toMatchObject({ code: "unavailable" });
  });

  it("is PERMISSION_DENIED for a caller who may not, with the reason", async () => {
    const denied: string[] = [];
    const { host, sessions } = bench(echo, {
      authorize: async (_caller, action, subject) => {
        denied.push(`${action} ${subject.session === undefined ? "project" : "session"}`);
        return { kind: "denied", reason: "exec: ask an operator" };
      },
    });
    const session = await host.createSession();
    await expect(collect(sessions.exec(hello(session), context()))).rejects.toMatchObject({
      code: "permission_denied",
      message: "exec: ask an operator",
    });
    await expect(collect(sessions.exec(hello(""), context()))).rejects.toMatchObject({ code: "permission_denied" });
    expect(denied).toEqual(["session.exec session", "session.create project"]);
    expect((await host.journal.list({ limit: 10 })).rows.length).toBe(1);
  });
});
