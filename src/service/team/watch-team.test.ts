import { describe, expect, it } from "vitest";
import { SILENT_LOG, type SessionUid } from "../../base/index.ts";
import type { TeamEvent } from "../../gen/roz/v1/agent_pb.ts";
import type { SessionRow } from "../../journal/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import { answering, seededPorts, testHarness, TestHost, TestModel, TestTools, toolCall, type HarnessRun } from "../../testing/index.ts";
import { workerAnnotations } from "./annotations.ts";
import { workerUid } from "./spawn-call.ts";
import { watchTeam } from "./watch-team.ts";

/** Spawns one worker for each word of its input, all at once, and then ends. */
const lead: HarnessRun = async (start, sink) => {
  const words = start.inputs.flatMap(({ parts }) => (parts[0]?.part.case === "text" ? parts[0].part.value.text.split(" ") : []));
  const calls = words.map((word) => toolCall("spawn", word, { idempotencyKey: `${start.executionId}/${word}`, args: { prompt: word } }));
  await Promise.all(calls.map((call) => sink.toolCall(call)));
};

/** Asks the model, and a tool; `nest` spawns a worker of its own, and `wait` waits until it is let go. */
const workerOf =
  (gate: Promise<void>): HarnessRun =>
  async (start, sink) => {
    const word = start.inputs[0]?.parts[0]?.part.value;
    await sink.model({ model: "test", messages: start.inputs });
    const text = typeof word === "object" && "text" in word ? word.text : "";
    if (text === "nest")
      await sink.toolCall(toolCall("spawn", "inner", { idempotencyKey: `${start.executionId}/inner`, args: { prompt: "inner" } }));
    if (text === "wait") await gate;
    if (text === "throw") throw new Error("a slip");
    await sink.toolCall(toolCall("look", "l", { idempotencyKey: start.executionId }));
    await sink.output(`done ${text}`);
  };

async function setup() {
  const ports = seededPorts();
  const journal = createMemoryStore({ clock: ports.clock, digest: ports.digest, log: SILENT_LOG });
  const gate = Promise.withResolvers<void>();
  const tools: TestTools = new TestTools({
    look: async () => ({}),
    spawn: async (call, run) => {
      const given = call.args?.["prompt"];
      const prompt = typeof given === "string" ? given : "";
      if (prompt === "refused") return { isError: true, error: "too many" };
      ports.clock.advance(10);
      const parent = (await journal.get(run.session))!;
      const uid = workerUid(run.session, call.idempotencyKey, ports.digest);
      await host.createSession({ uid, harness: "worker", annotations: workerAnnotations(parent.seed) });
      if (prompt === "never") return { isError: true, error: "it could not be started" };
      const turn = await host.begin(uid, [prompt]);
      await turn.outcome;
      return {};
    },
  });
  const harnesses = { lead: testHarness(lead), worker: testHarness(workerOf(gate.promise)) };
  const host: TestHost = new TestHost({ journal, ports, tools, harnesses, models: new TestModel(answering("hm")) });
  const session = await host.createSession({ harness: "lead", annotations: { "holdfast.dev/host": "edge" } });
  const stop = new AbortController();
  const watch = async (row?: SessionRow) =>
    watchTeam({ journal, controller: host.controller, digest: ports.digest }, row ?? (await journal.get(session))!, stop.signal);
  return { host, journal, ports, session, gate, stop, watch };
}

/** Counts who watches from here on. `none` resolves once nobody does. */
function countWatchers(journal: ReturnType<typeof createMemoryStore>): { readonly none: () => Promise<void> } {
  const watch = journal.watch.bind(journal);
  let count = 0;
  let ring: () => void = () => undefined;
  journal.watch = (session, listener) => {
    const unwatch = watch(session, listener);
    count += 1;
    return () => {
      unwatch();
      count -= 1;
      ring();
    };
  };
  return {
    none: async () => {
      while (count > 0) await new Promise<void>((resolve) => (ring = resolve));
    },
  };
}

/** A TeamEvent in short words, with a worker by the word that it was given. */
function wordsOf(names: ReadonlyMap<string, string>): (event: TeamEvent) => string {
  return ({ event: { case: kind, value } }) => {
    const name = names.get(value?.workerId ?? "") ?? "?";
    switch (kind) {
      case "workerStarted":
        return `${name} started ${value.hostId}`;
      case "workerPhase":
        return `${name} phase ${value.phase}`;
      case "workerToolCall":
        return `${name} calls ${value.tool}`;
      case "workerCompleted":
        return `${name} completed: ${value.result}`;
      case "workerFailed":
        return `${name} failed: ${value.reason}`;
      case "workerExited":
        return `${name} exited`;
      case undefined:
        return "?";
    }
  };
}

/** The words by the uids of their workers. */
async function namesOf({ journal }: { journal: ReturnType<typeof createMemoryStore> }): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  const { rows } = await journal.list({ limit: 100 });
  for (const { seed } of rows) {
    for await (const page of journal.read({ session: seed.uid })) {
      const text = new TextDecoder().decode(page[1]?.bytes);
      names.set(seed.uid, ["one", "two", "nest", "wait", "inner", "throw"].find((word) => text.includes(word)) ?? "");
    }
  }
  return names;
}

const life = (name: string, ...middle: readonly string[]) => [
  `${name} started edge`,
  `${name} phase 1`,
  ...middle,
  `${name} calls look`,
  `${name} completed: done ${name}`,
  `${name} exited`,
];

const begun = async (host: TestHost, session: SessionUid, input: string) => host.begin(session, [input]);

describe("watching a team", () => {
  it("tells all of one that has ended, and ends", async () => {
    const world = await setup();
    await using host = world.host;
    await (
      await begun(host, world.session, "one")
    ).outcome;
    const events = await Array.fromAsync(await world.watch());
    expect(events.map(wordsOf(await namesOf(world)))).toEqual(life("one"));
  });

  it("tells the same again to whoever watches later, and of several workers each in its order", async () => {
    const world = await setup();
    await using host = world.host;
    await (
      await begun(host, world.session, "one two")
    ).outcome;
    const [first, second] = [await Array.fromAsync(await world.watch()), await Array.fromAsync(await world.watch())];
    expect(second).toEqual(first);
    const words = first.map(wordsOf(await namesOf(world)));
    for (const name of ["one", "two"]) expect(words.filter((line) => line.startsWith(name))).toEqual(life(name));
  });

  it("tells of workers that workers spawned, and of a spawn that was refused nothing", async () => {
    const world = await setup();
    await using host = world.host;
    await (
      await begun(host, world.session, "nest refused")
    ).outcome;
    const words = (await Array.fromAsync(await world.watch())).map(wordsOf(await namesOf(world)));
    const inner = words.filter((line) => line.startsWith("inner"));
    expect(inner).toEqual(life("inner"));
    expect(words.filter((line) => line.startsWith("nest"))).toEqual(life("nest", "nest calls spawn"));
    expect(words.indexOf("inner started edge")).toBeGreaterThan(words.indexOf("nest calls spawn"));
    expect(words).toHaveLength(inner.length + 6);
  });

  it("tells what happened before it, then what happens, each once, and ends with the team", async () => {
    const world = await setup();
    await using host = world.host;
    const turn = await begun(host, world.session, "wait");
    const early = await world.watch();
    const events: TeamEvent[] = [];
    for (let seen = 0; seen < 2; seen++) events.push((await early.next()).value!);
    const late = await world.watch();
    const lateEvents: TeamEvent[] = [(await late.next()).value!];
    world.gate.resolve();
    await turn.outcome;
    for await (const event of early) events.push(event);
    for await (const event of late) lateEvents.push(event);
    const words = wordsOf(await namesOf(world));
    expect(events.map(words)).toEqual(life("wait"));
    expect(lateEvents.map(words)).toEqual(life("wait"));
  });

  it("tells of a worker that was interrupted no end, and ends where it is stopped", async () => {
    const world = await setup();
    await using host = world.host;
    await begun(host, world.session, "wait");
    const events = await world.watch();
    const first = await events.next();
    expect(first.done).toBe(false);
    await host.controller.shutdown({ graceMs: 0 });
    world.stop.abort();
    const rest: TeamEvent[] = [];
    for await (const event of events) rest.push(event);
    expect(rest.map(({ event }) => event.case)).not.toContain("workerExited");
  });

  it("leaves nothing behind of a watch whose reader goes while there is more to tell", async () => {
    const world = await setup();
    await using host = world.host;
    const turn = await begun(host, world.session, "wait");
    const watching = countWatchers(world.journal);
    const events = await world.watch();
    const kinds: (string | undefined)[] = [];
    for (let seen = 0; seen < 3; seen++) {
      if (seen === 2) world.gate.resolve();
      kinds.push((await events.next()).value?.event.case);
    }
    expect(kinds).toEqual(["workerStarted", "workerPhase", "workerToolCall"]);
    await turn.outcome;
    await events.return();
    await watching.none();
  });

  const slipped = ["throw started edge", "throw phase 1", "throw failed: model_error", "throw exited"];

  it("ends though a worker never began, or was left with an error, once its spawner has been told so", async () => {
    const world = await setup();
    await using host = world.host;
    await (
      await begun(host, world.session, "never throw")
    ).outcome;
    const words = (await Array.fromAsync(await world.watch())).map(wordsOf(await namesOf(world)));
    expect(words).toEqual(slipped);
  });

  it("ends likewise where all that was watched as it happened", async () => {
    const world = await setup();
    await using host = world.host;
    const events = await world.watch();
    const all = Array.fromAsync(events);
    await (
      await begun(host, world.session, "never throw")
    ).outcome;
    expect((await all).map(wordsOf(await namesOf(world)))).toEqual(slipped);
  });

  it("ends at once for a lead that spawned nobody", async () => {
    const world = await setup();
    await using host = world.host;
    await (
      await host.begin(world.session, [])
    ).outcome;
    expect(await Array.fromAsync(await world.watch())).toEqual([]);
  });
});
