import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { newSessionUid, type Seq, type SessionUid } from "../base/index.ts";
import { UsageSchema } from "../gen/agentsessions/v1/common_pb.ts";
import type { JournalStore } from "../journal/index.ts";
import { textMessage, type ModelChunk, type ModelFacts } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import {
  decide,
  emptySeed,
  gatedCall,
  parkedSession,
  resumed,
  silent,
  TestModel,
  toolCall,
  ToolWorld,
  type HarnessRun,
  type TestHost,
} from "../testing/index.ts";
import { SPAWNED_BY_ANNOTATION, type BudgetConfig } from "./budgets.ts";

/** Answers with so many tokens at such a cost. */
const costing = (tokens: number, facts: ModelFacts = {}): TestModel =>
  new TestModel(async function* (): AsyncGenerator<ModelChunk, void, undefined> {
    const usage = create(UsageSchema, { model: "test", inputTokens: BigInt(tokens - 1), outputTokens: 1n });
    yield { kind: "completed", response: { message: textMessage("assistant", "ok"), usage }, facts };
  });

/** Asks the model so often as the turn's input says; says the usage or keeps it to itself. */
const talker =
  (reports = false): HarnessRun =>
  async (start, sink) => {
    const [input] = start.inputs;
    const times = Number(input?.parts[0]?.part.case === "text" ? input.parts[0].part.value.text : 0);
    for (let index = 0; index < times; index++) {
      const { usage } = await sink.model({ model: "test", messages: [textMessage("user", `${index}`)] });
      if (reports) await sink.usage(usage);
    }
  };

const newWorld = (run: HarnessRun = talker()): ToolWorld =>
  new ToolWorld(({ clock, digest }) => createMemoryStore({ clock, digest }), run, {
    look: async () => ({ output: {} }),
    pay: async () => ({ output: {} }),
  });

/** A turn that asks the model `times`; how it ended. */
async function turn(host: TestHost, session: SessionUid, times: number): Promise<string> {
  const begun = await host.begin(session, [String(times)]).catch((error: unknown) => error);
  if (begun instanceof Error) return begun.message;
  const { outcome } = begun as Awaited<ReturnType<TestHost["begin"]>>;
  await outcome;
  const end = (await host.records(session)).at(-1)?.event?.body;
  if (end?.case !== "end") return end?.case ?? "nothing";
  return end.value.error === undefined ? end.value.state : `${end.value.error.code} ${end.value.error.description}`;
}

const calls = async (host: TestHost, session: SessionUid): Promise<number> =>
  (await host.story(session)).filter((line) => line === "MODEL_CALL").length;

describe("a turn's budget", () => {
  it.each([false, true])(
    "ends it at the call after the one that crossed the limit, whether its harness reports usage (%s) or not",
    async (reports) => {
      const world = newWorld(talker(reports));
      await using host = world.host({ models: costing(60), budgets: { turn: { tokens: 100 } } });
      const session = await host.createSession();
      expect(await turn(host, session, 5)).toBe("8 budget turn.tokens: 120 of 100 are used");
      expect(await calls(host, session)).toBe(2);
      // The next turn has its own.
      expect(await turn(host, session, 1)).toBe("COMPLETED");
      expect(await world.checks(session)).toEqual(["same", "same"]);
    },
  );

  it("is of cost by the price table; a model without a price is asked once", async () => {
    const budgets: BudgetConfig = { turn: { costNanoDollars: 1_500_000_000 } };
    const world = newWorld();
    await using host = world.host({ models: costing(10, { costNanoDollars: 1_000_000_000 }), budgets });
    const session = await host.createSession();
    expect(await turn(host, session, 9)).toBe("8 budget turn.cost: 2 of 1.5 US dollars are used");
    await using free = world.host({ models: costing(10), budgets, hostId: "free" });
    expect(await turn(free, await free.createSession(), 2)).toBe("8 budget turn.cost: a model without a price was asked");
  });

  it("is of tool calls, and none of a group runs that does not fit as a whole", async () => {
    const world = newWorld(async (_, sink) => {
      await Promise.all(["a", "b"].map((id) => sink.toolCall(toolCall("look", id))));
      await Promise.all(["c", "d"].map((id) => sink.toolCall(toolCall("look", id))));
    });
    await using host = world.host({ budgets: { turn: { toolCalls: 3 } } });
    const session = await host.createSession();
    expect(await turn(host, session, 0)).toBe("8 budget turn.toolCalls: 2 of 3 are used");
    expect(world.tools.ran).toEqual(["a", "b"]);
    expect(await world.checks(session)).toEqual(["same"]);
  });

  it("is of time, and ends a turn that waits for a model as well", async () => {
    const world = newWorld();
    await using host = world.host({ models: new TestModel(silent), budgets: { turn: { wallMs: 10_000 } } });
    const session = await host.createSession();
    const begun = await host.begin(session, ["1"]);
    for (let second = 0; second < 10; second++) {
      world.ports.clock.advance(1_000);
      await new Promise(setImmediate);
    }
    expect(await begun.outcome).toMatchObject({ kind: "ended", state: "FAILED" });
    expect(await host.story(session)).toContain("MODEL_CALL");
    expect((await host.records(session)).at(-1)?.event?.body.value).toMatchObject({
      error: { code: 8, description: "budget turn.wallTime: 10 of 10 seconds are used" },
    });
    expect(await world.checks(session)).toEqual(["same"]);
  });

  it("does not count the days that a turn waits for a person", async () => {
    const world = newWorld(async (_, sink) => void (await sink.toolCall(gatedCall("pay", "p1"))));
    const budgets: BudgetConfig = { turn: { wallMs: 60_000 }, session: { wallMs: 60_000 } };
    const first = world.host({ budgets });
    const { session, ref } = await parkedSession(first);
    await first[Symbol.asyncDispose]();
    world.ports.clock.advance(3 * 86_400_000);
    await using host = world.host({ budgets, hostId: "second" });
    await decide(host, session, ref, true);
    world.ports.clock.advance(86_400_000);
    expect(await resumed(host, session)).toMatchObject({ state: "COMPLETED" });
  });

  it("cannot be caught: a harness that goes on gets nothing more", async () => {
    const world = newWorld(async (_, sink) => {
      for (let index = 0; index < 20; index++) {
        await sink.model({ model: "test", messages: [] }).catch(() => undefined);
        await sink.toolCall(toolCall("look", `t${index}`)).catch(() => undefined);
      }
    });
    await using host = world.host({ models: costing(100), budgets: { turn: { tokens: 100 } } });
    const session = await host.createSession();
    expect(await turn(host, session, 0)).toBe("8 budget turn.tokens: 100 of 100 are used");
    expect(world.tools.ran).toEqual([]);
  });
});

describe("a session's budget", () => {
  it("counts over its turns and restarts, and refuses a turn before anything is written", async () => {
    const world = newWorld();
    const budgets: BudgetConfig = { session: { tokens: 250 } };
    const models = costing(100);
    const first = world.host({ models, budgets });
    const session = await first.createSession();
    expect(await turn(first, session, 1)).toBe("COMPLETED");
    await first[Symbol.asyncDispose]();
    const second = world.host({ models, budgets, hostId: "second" });
    expect(await turn(second, session, 4)).toBe("8 budget session.tokens: 300 of 250 are used");
    await second[Symbol.asyncDispose]();
    await using third = world.host({ models, budgets, hostId: "third" });
    const before = (await third.records(session)).length;
    expect(await turn(third, session, 1)).toBe("budget session.tokens: 300 of 250 are used; nothing was done");
    expect((await third.records(session)).length).toBe(before);
    expect(models.requests).toHaveLength(3);
  });

  it("counts what was recorded before there were budgets, and usage alone where nothing else is kept", async () => {
    const world = newWorld(talker(true));
    const first = world.host({ models: costing(100) });
    const session = await first.createSession();
    for (const _ of [1, 2]) expect(await turn(first, session, 1)).toBe("COMPLETED");
    await first[Symbol.asyncDispose]();
    const bare = withoutAsides(world.journal);
    for (const journal of [world.journal, bare]) {
      await using host = world.host({ journal, models: costing(100), budgets: { session: { tokens: 200 } }, hostId: journal.name });
      expect(await turn(host, session, 1)).toContain("budget session.tokens: 200 of 200 are used");
    }
  });

  it("is of turns", async () => {
    const world = newWorld();
    await using host = world.host({ models: costing(1), budgets: { session: { turns: 2 } } });
    const session = await host.createSession();
    expect([await turn(host, session, 1), await turn(host, session, 1)]).toEqual(["COMPLETED", "COMPLETED"]);
    expect(await turn(host, session, 1)).toBe("budget session.turns: 2 of 2 are used; nothing was done");
  });

  it("holds for a turn that goes on after a crash: what is recorded is served, what is not is not spent", async () => {
    const world = newWorld();
    const models = costing(100);
    const budgets: BudgetConfig = { session: { tokens: 150 } };
    let session: SessionUid | undefined;
    await world.dies(
      { atAppend: 5, when: "after" },
      async (host) => {
        session = await host.createSession();
        await (
          await host.begin(session, ["5"])
        ).outcome;
      },
      { models, budgets },
    );
    await using host = world.host({ models, budgets, hostId: "second" });
    expect(await resumed(host, session!)).toMatchObject({ state: "FAILED" });
    expect((await host.records(session!)).at(-1)?.event?.body.value).toMatchObject({ error: { code: 8 } });
    expect(await calls(host, session!)).toBe(2);
    expect(await world.checks(session!)).toEqual(["same"]);
  });

  it("is that of its records, also where its uid has come back with other ones", async () => {
    const world = newWorld();
    const budgets: BudgetConfig = { session: { tokens: 250 } };
    await using host = world.host({ models: costing(100), budgets });
    await using dear = world.host({ models: costing(300), hostId: "dear" });
    const session = await host.createSession();
    const renewed = async (by: TestHost) => {
      await by.controller.delete(session, undefined);
      await world.journal.reclaim(session);
      await by.createSession({ uid: session });
    };
    for (const [by, next] of [
      [dear, "budget session.tokens: 300 of 250 are used; nothing was done"],
      [host, "COMPLETED"],
    ] as const) {
      expect(await turn(host, session, 1)).toBe("COMPLETED");
      // As many records, and not the same.
      await renewed(by);
      await turn(by, session, 1);
      expect(await turn(host, session, 1)).toBe(next);
      await renewed(by);
    }
  });

  it("reads a bounded end of its journal, however long that is", async () => {
    const world = newWorld();
    const models = costing(1);
    const budgets: BudgetConfig = { session: { tokens: 1_000_000 } };
    const first = world.host({ models, budgets });
    const session = await first.createSession();
    for (let index = 0; index < 300; index++) await turn(first, session, 1);
    await first[Symbol.asyncDispose]();
    let read = 0;
    const journal = counting(world.journal, (records) => (read += records));
    await using host = world.host({ journal, models, budgets, hostId: "second" });
    await (
      await host.begin(session, ["1"])
    ).outcome;
    expect(read).toBeLessThan(20);
    read = 0;
    await (
      await host.begin(session, ["1"])
    ).outcome;
    expect(read).toBeLessThan(10);
  });
});

describe("the budgets of a family and of a project", () => {
  const fork = async (world: ToolWorld, host: TestHost, parent: SessionUid): Promise<SessionUid> => {
    const children = () => [emptySeed(newSessionUid(world.ports), world.ports.clock.nowMs())];
    const [row] = await host.controller.fork({ parent, atSeq: 0 as Seq, children });
    return row!.seed.uid;
  };

  it("count a prefix once, however often it is forked, and a child for itself", async () => {
    const world = newWorld();
    const budgets: BudgetConfig = { session: { tokens: 250 }, tree: { tokens: 450 } };
    await using host = world.host({ models: costing(100), budgets });
    const parent = await host.createSession();
    expect(await turn(host, parent, 2)).toBe("COMPLETED");
    const [one, two] = [await fork(world, host, parent), await fork(world, host, parent)];
    // 200 of the parent's: each child begins with none of its own.
    expect(await turn(host, one, 2)).toBe("COMPLETED");
    expect(await turn(host, two, 2)).toBe("8 budget tree.tokens: 500 of 450 are used");
    expect(await turn(host, parent, 1)).toBe("budget tree.tokens: 500 of 450 are used; nothing was done");
    // Another family has its own, also after a restart.
    await using next = world.host({ models: costing(100), budgets, hostId: "next" });
    expect(await turn(next, one, 1)).toBe("budget tree.tokens: 500 of 450 are used; nothing was done");
    expect(await turn(next, await next.createSession(), 1)).toBe("COMPLETED");
  });

  it("count a spawned session with its spawner", async () => {
    const world = newWorld();
    const budgets: BudgetConfig = { tree: { tokens: 150 } };
    const first = world.host({ models: costing(100), budgets });
    const parent = await first.createSession();
    await turn(first, parent, 1);
    const child = await first.createSession({ annotations: { [SPAWNED_BY_ANNOTATION]: parent } });
    expect(await turn(first, child, 1)).toBe("COMPLETED");
    await first[Symbol.asyncDispose]();
    await using host = world.host({ models: costing(100), budgets, hostId: "second" });
    expect(await turn(host, parent, 1)).toContain("budget tree.tokens: 200 of 150");
  });

  it("count a session no more with the spawner that another one under its uid had", async () => {
    const world = newWorld();
    const budgets: BudgetConfig = { tree: { tokens: 150 } };
    await using host = world.host({ models: costing(100), budgets });
    const parent = await host.createSession();
    const child = await host.createSession({ annotations: { [SPAWNED_BY_ANNOTATION]: parent } });
    expect(await turn(host, child, 1)).toBe("COMPLETED");
    await host.controller.delete(child, undefined);
    await world.journal.reclaim(child);
    await host.createSession({ uid: child });
    expect(await turn(host, child, 1)).toBe("COMPLETED");
    expect(await turn(host, parent, 1)).toBe("COMPLETED");
  });

  it("hold for sessions that run at once, and for each project apart", async () => {
    const world = newWorld();
    const budgets: BudgetConfig = { project: { tokens: 1_000 } };
    const models = costing(100);
    await using host = world.host({ models, budgets });
    const sessions = await Promise.all(Array.from({ length: 8 }, () => host.createSession({ project: "a" })));
    await Promise.all(sessions.map((session) => turn(host, session, 5)));
    // Each may have had one call under way when the limit was crossed.
    expect(models.requests.length).toBeGreaterThanOrEqual(10);
    expect(models.requests.length).toBeLessThanOrEqual(10 + 7);
    expect(await turn(host, sessions[0]!, 1)).toContain("budget project.tokens");
    expect(await turn(host, await host.createSession({ project: "b" }), 1)).toBe("COMPLETED");
    await using next = world.host({ models, budgets, hostId: "next" });
    const spent = models.requests.length - 1;
    expect(await turn(next, sessions[0]!, 1)).toBe(`budget project.tokens: ${spent * 100} of 1000 are used; nothing was done`);
  });
});

/** The journal as of a host that kept nothing beside its records. */
function withoutAsides(journal: JournalStore): JournalStore {
  return view(journal, { name: "bare", readAsides: async () => new Map() });
}

function counting(journal: JournalStore, onRead: (records: number) => void): JournalStore {
  const read: JournalStore["read"] = async function* (request) {
    for await (const page of journal.read(request)) {
      onRead(page.length);
      yield page;
    }
  };
  return view(journal, { read });
}

function view(journal: JournalStore, more: Partial<JournalStore>): JournalStore {
  return {
    name: journal.name,
    append: (request, options) => journal.append(request, options),
    create: (seed, options) => journal.create(seed, options),
    get: (session, options) => journal.get(session, options),
    list: (request) => journal.list(request),
    read: (request) => journal.read(request),
    readAsides: (request) => journal.readAsides(request),
    receipts: (session, query) => journal.receipts(session, query),
    reclaim: (session, options) => journal.reclaim(session, options),
    adopt: (request, options) => journal.adopt(request, options),
    complete: (sessions, options) => journal.complete(sessions, options),
    fork: (request, options) => journal.fork(request, options),
    renew: (request) => journal.renew(request),
    watch: (session, listener) => journal.watch(session, listener),
    ready: (options) => journal.ready(options),
    [Symbol.asyncDispose]: async () => undefined,
    ...more,
  };
}
