import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { readFileSync } from "node:fs";
import { describe, expect, it, onTestFinished } from "vitest";
import { SILENT_LOG, type HostId, type SessionUid } from "../base/index.ts";
import { decodeLogRecord, normaliseEvent } from "../canon/index.ts";
import { EventSchema, LogRecordSchema, type Event } from "../gen/agentsessions/v1/common_pb.ts";
import { createEchoHarness } from "../harnesses/index.ts";
import { createChainVerifier, type JournalStore } from "../journal/index.ts";
import { createEchoProvider, createModelCatalog } from "../models/index.ts";
import type { Harness } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { openSqliteStore } from "../stores/sqlite/index.ts";
import { harnessCatalog, seededPorts, testHarness, TestHost, TestModel, type HarnessRun } from "../testing/index.ts";
import { TemporaryFolder } from "../testing/temporary-folder.ts";
import { replaySession, type TurnCheck } from "./index.ts";

/** Journals that other implementations of the contract wrote: they are stored hash for hash, verify, replay, and resume where they may. */

const ports = seededPorts(21);

const vector = JSON.parse(readFileSync(new URL("../canon/vectors/journal-hello.json", import.meta.url), "utf8")) as {
  records: JsonValue[];
};
const helloRecords = vector.records.map((record) => fromJson(LogRecordSchema, record));

function memory(): JournalStore {
  return createMemoryStore({ ...ports, log: SILENT_LOG });
}

interface World {
  readonly journal: JournalStore;
  readonly host: TestHost;
  check(session: SessionUid): Promise<TurnCheck[]>;
}

/** A host that serves the echo harness, and `more`. */
function world(journal: JournalStore = memory(), more: Readonly<Record<string, Harness>> = {}): World {
  const harnesses = { echo: createEchoHarness(), ...more };
  const models = createModelCatalog({ routes: [{ match: "echo", provider: createEchoProvider() }], fallback: new TestModel() });
  const host = new TestHost({ journal, ports, harnesses, models });
  onTestFinished(() => host[Symbol.asyncDispose]());
  return {
    journal,
    host,
    async check(session) {
      const row = await journal.get(session);
      return Array.fromAsync(replaySession({ journal, harnesses: harnessCatalog(harnesses), ports }, { row: row! }));
    },
  };
}

/** A session with exactly these events, as its writer recorded them. */
async function imported({ host, journal }: World, events: readonly Event[], harness = "echo"): Promise<SessionUid> {
  const session = await host.createSession({ harness, model: "echo" });
  const writer = { kind: "claim", holder: "another writer" as HostId, leaseMs: 0 } as const;
  const outcome = await journal.append({ session, writer, events: events.map((event) => ({ event })) });
  expect(outcome.kind).toBe("appended");
  return session;
}

const eventsOf = (...events: readonly JsonValue[]): Event[] => events.map((event) => normaliseEvent(fromJson(EventSchema, event)));
const helloHash = helloRecords[1]!.event!.body.case === "model" ? helloRecords[1]!.event!.body.value.inputHash : "";

const text = (role: string, words: string): JsonValue => ({ role, parts: [{ text: { text: words } }] });
const input = (words = "hello"): JsonValue => ({ kind: "EVENT_INPUT", message: text("user", words) });
const call = (hash = helloHash): JsonValue => ({ kind: "EVENT_MODEL_CALL", model: { model: "echo", input_hash: hash, id: "c" } });
const output = (words = "echo:hello"): JsonValue => ({ kind: "EVENT_OUTPUT", message: text("assistant", words) });
const end: JsonValue = { kind: "EVENT_END", end: { state: "COMPLETED" } };
/** The hash of an echo turn's request for these inputs, as this host computes it. */
async function hashOf(...inputs: string[]): Promise<string> {
  const { host } = world();
  const session = await host.createSession({ harness: "echo", model: "echo" });
  await (
    await host.begin(session, inputs)
  ).outcome;
  const body = (await host.records(session)).map(({ event }) => event?.body).find((each) => each?.case === "model");
  return body?.case === "model" ? body.value.inputHash : "";
}

describe("the journal of another implementation", () => {
  it("is stored with the hashes that it came with, verifies, and its echo turn replays the same", async () => {
    using folder = new TemporaryFolder();
    const stores = [memory(), await openSqliteStore({ folder: folder.path, ...ports, log: SILENT_LOG, writer: "inline" })];
    for (const journal of stores) {
      const here = world(journal);
      const session = await imported(
        here,
        helloRecords.map(({ event }) => event!),
      );
      const pages = await Array.fromAsync(journal.read({ session }));
      const records = pages.flat();
      expect(records.map(({ bytes }) => decodeLogRecord(bytes))).toEqual(helloRecords);
      const verifier = createChainVerifier(ports.digest);
      verifier.pushPage(records);
      expect(verifier.finish()).toMatchObject({ kind: "intact", records: 4 });
      expect(await here.check(session)).toMatchObject([
        { executionId: "", startSeq: 1, lastSeq: 4, end: "COMPLETED", outcome: { kind: "same", effects: 1 } },
      ]);
      expect(await here.host.story(session)).toHaveLength(4);
      await journal[Symbol.asyncDispose]();
    }
  });

  it("goes on with turns of ours, and both replay", async () => {
    const here = world();
    const session = await imported(
      here,
      helloRecords.map(({ event }) => event!),
    );
    await (
      await here.host.begin(session, ["hello"])
    ).outcome;
    expect((await here.check(session)).map(({ startSeq, outcome }) => [startSeq, outcome.kind])).toEqual([
      [1, "same"],
      [5, "same"],
    ]);
  });
});

describe("replaying a journal without markers and execution ids", () => {
  it("takes all inputs up to the END for those of one invocation", async () => {
    const here = world();
    const session = await imported(here, eventsOf(input("a"), input("b"), call(await hashOf("a", "b")), output("echo:b"), end));
    expect(await here.check(session)).toMatchObject([{ startSeq: 1, lastSeq: 5, outcome: { kind: "same" } }]);
  });

  it("takes each END for the end of an invocation", async () => {
    const here = world();
    const turn = [input(), call(), output(), end];
    const session = await imported(here, eventsOf(...turn, ...turn));
    expect((await here.check(session)).map(({ startSeq, lastSeq, outcome }) => [startSeq, lastSeq, outcome.kind])).toEqual([
      [1, 4, "same"],
      [5, 8, "same"],
    ]);
  });

  it("passes over what has no END yet, and says where a request differs", async () => {
    const here = world();
    const session = await imported(here, eventsOf(input(), call("0".repeat(64)), output(), end, input(), call(), output()));
    expect(await here.check(session)).toMatchObject([{ startSeq: 1, outcome: { kind: "diverged", divergence: { seq: 2 } } }]);
  });
});

describe("resuming an unfinished journal without markers and execution ids", () => {
  it("goes on from the last input, and what came before it is history", async () => {
    const seen: unknown[] = [];
    const harness = testHarness(async (start, sink) => {
      const past: string[] = [];
      for await (const page of start.history.read()) past.push(...page.events.map(({ body }) => body.case ?? ""));
      seen.push([start.inputs.length, past, start.config.length, start.resumeFromSeq]);
      await sink.output("more");
    });
    const here = world(memory(), { other: harness });
    const session = await imported(here, eventsOf(input("a"), call(), output(), input("b"), output("more")), "other");
    const { turn } = await here.host.controller.resume(session, undefined);
    expect(await turn?.outcome).toMatchObject({ kind: "ended", state: "COMPLETED", lastSeq: 6 });
    expect(seen).toEqual([[1, ["message", "model", "message"], 0, 0n]]);
  });

  it("resumes the second invocation after a first that ended, and leaves that as it is", async () => {
    const here = world();
    const session = await imported(here, eventsOf(input(), call(), output(), end, input(), call(), output()));
    const { turn } = await here.host.controller.resume(session, undefined);
    expect(await turn?.outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect((await here.host.story(session)).slice(4)).toEqual(["INPUT hello", "MODEL_CALL", "OUTPUT echo:hello", "END COMPLETED"]);
    expect((await here.check(session)).map(({ outcome }) => outcome.kind)).toEqual(["same", "same"]);
  });

  it("has nothing to do where every invocation ended", async () => {
    const here = world();
    const turn = [input(), call(), output(), end];
    const session = await imported(here, eventsOf(...turn, ...turn));
    expect((await here.host.controller.resume(session, undefined)).turn).toBeUndefined();
    expect(await here.host.story(session)).toHaveLength(8);
  });

  it("is refused where a completion is missing, and writes nothing", async () => {
    const here = world();
    const session = await imported(here, eventsOf(input(), call()));
    await expect(here.host.controller.resume(session, undefined)).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringContaining("without a completion at seq 2") as string,
    });
    expect(await here.host.story(session)).toHaveLength(2);
  });

  it("is refused where the session's harness is not served, and stops where it diverges", async () => {
    const here = world();
    const unknown = await imported(here, eventsOf(input()), "gone");
    await expect(here.host.controller.resume(unknown, undefined)).rejects.toMatchObject({ code: "failed_precondition" });
    const other = await imported(here, eventsOf(input(), call("0".repeat(64)), output()));
    const { turn } = await here.host.controller.resume(other, undefined);
    expect(await turn?.outcome).toMatchObject({ kind: "interrupted", error: { code: "failed_precondition", details: { seq: 2 } } });
    expect(await here.host.story(other)).toHaveLength(3);
  });
});

describe("a start marker of another writer", () => {
  const start = (more: { readonly [key: string]: JsonValue }, id = "e1"): JsonValue => ({
    execution_id: id,
    kind: "EVENT_EXECUTION_START",
    execution_start: { input_count: "1", harness: "echo", harness_version: "1", ...more },
  });
  const of = (id: string, event: JsonValue): JsonValue => ({ ...(event as Readonly<Record<string, JsonValue>>), execution_id: id });
  const without = { execution_id: "e1", kind: "EVENT_EXECUTION_START", execution_start: { harness: "echo" } };

  it.each<[string, JsonValue, RegExp]>([
    ["no input count", without, /does not say how many inputs/],
    ["a negative input count", start({ input_count: "-1" }), /negative input count/],
    ["another input count", start({ input_count: "2" }), /says 2 inputs, the journal has 1/],
    ["an unknown harness", start({ harness: "gone" }), /harness is not served/],
    ["another version of its harness", start({ harness_version: "0" }), /version is not the one/],
  ])("with %s is refused by Resume before the harness runs, and writes nothing", async (_, marker, reason) => {
    const here = world();
    const session = await imported(here, eventsOf(marker, of("e1", input())));
    const resumed = here.host.controller.resume(session, undefined);
    await expect(resumed).rejects.toMatchObject({ code: "failed_precondition", message: expect.stringMatching(reason) as string });
    expect(await here.host.story(session)).toHaveLength(2);
  });

  it.each<[string, JsonValue]>([
    ["no input count", without],
    ["a negative input count", start({ input_count: "-1" })],
    ["another input count", start({ input_count: "2" })],
    ["an unknown harness", start({ harness: "gone" })],
  ])("with %s is refused by a replay, and the turns around it are checked all the same", async (_, marker) => {
    const here = world();
    const turn = (id: string, first: JsonValue) => [first, of(id, input()), of(id, call()), of(id, output()), of(id, end)];
    const session = await imported(here, eventsOf(...turn("e0", start({}, "e0")), ...turn("e1", marker), ...turn("e2", start({}, "e2"))));
    const checks = await here.check(session);
    expect(checks.map(({ outcome }) => outcome.kind)).toEqual(["same", "refused", "same"]);
    expect(checks[1]?.outcome).toMatchObject({ error: { code: "failed_precondition" } });
  });

  it("with an empty name means the session's harness; an empty version is not compared", async () => {
    const here = world();
    const session = await imported(here, eventsOf(start({ harness: "", harness_version: "" }), of("e1", input())));
    const { turn } = await here.host.controller.resume(session, undefined);
    expect(await turn?.outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(await here.check(session)).toMatchObject([{ outcome: { kind: "same" } }]);
  });

  const ended = [of("e1", input()), of("e1", end)];
  const abandoned = [of("e1", input())];
  it.each<[string, readonly JsonValue[]]>([
    ["a turn that ended", ended],
    ["a turn that was left behind", abandoned],
    [
      "a turn that ended long ago",
      [...ended, ...Array.from({ length: 300 }, (_, n) => [start({ input_count: "0" }, `x${n}`), of(`x${n}`, end)]).flat()],
    ],
  ])("with the execution id of %s is refused by Resume", async (_, before) => {
    const here = world();
    const session = await imported(here, eventsOf(start({}), ...before, start({}), of("e1", input())));
    const resumed = here.host.controller.resume(session, undefined);
    await expect(resumed).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringContaining("two start markers have one execution id") as string,
    });
  });

  it.each<[string, readonly JsonValue[], readonly string[]]>([
    ["a turn that ended", ended, ["diverged", "refused"]],
    ["a turn that was left behind", abandoned, ["refused"]],
  ])("with the execution id of %s is refused by a replay", async (_, before, outcomes) => {
    const here = world();
    const session = await imported(here, eventsOf(start({}), ...before, start({}), ...ended));
    expect((await here.check(session)).map(({ outcome }) => outcome.kind)).toEqual(outcomes);
  });

  it("does not make Resume of a turn of ours read the past: its id is younger than the END before it", async () => {
    const reads: number[] = [];
    let broken = false;
    const run: HarnessRun = async (_, sink) => {
      await sink.output("x");
      if (broken) throw new Error("crash");
    };
    const here = world(memory(), { test: testHarness(run) });
    const session = await here.host.createSession();
    for (let turn = 0; turn < 500; turn++) {
      ports.clock.advance(1);
      await (
        await here.host.begin(session, ["a"])
      ).outcome;
    }
    ports.clock.advance(1);
    broken = true;
    await (
      await here.host.begin(session, ["b"])
    ).outcome;
    broken = false;
    const read = here.journal.read.bind(here.journal);
    here.journal.read = (request) => {
      reads.push(request.fromSeq ?? 1);
      return read(request);
    };
    await (
      await here.host.controller.resume(session, undefined)
    ).turn?.outcome;
    expect(Math.min(...reads)).toBeGreaterThan(1_700);
    expect((await here.host.story(session)).at(-1)).toBe("END COMPLETED");
  });
});
