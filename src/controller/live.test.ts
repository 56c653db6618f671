import { describe, expect, it } from "vitest";
import { HoldfastError, SILENT_LOG, type Seq, type SessionUid } from "../base/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { answering, seededPorts, testHarness, TestHost, TestModel, textResponse, type TestHostOptions } from "../testing/index.ts";
import type { FollowItem, LiveItem } from "./index.ts";

const chat = testHarness(async (start, sink) => {
  await sink.model({ model: "test", messages: start.inputs });
  await sink.model({ model: "test", messages: start.inputs });
});

function newHost(options: Partial<TestHostOptions> = {}): TestHost {
  const ports = seededPorts();
  const journal = createMemoryStore({ clock: ports.clock, digest: ports.digest, log: SILENT_LOG });
  return new TestHost({ journal, ports, harnesses: { test: chat }, models: new TestModel(answering("one two three")), ...options });
}

function word(item: LiveItem): string {
  return item.kind === "record" ? `#${item.record.seq}` : item.delta.done ? "done" : item.delta.chunk;
}

async function wordsOfTurn(host: TestHost, session: SessionUid): Promise<string[]> {
  const turn = await host.begin(session, ["hi"]);
  const words: string[] = [];
  const until = turn.outcome.then(({ lastSeq }) => lastSeq);
  for await (const item of host.controller.watch({ session, fromSeq: turn.startSeq, until })) words.push(word(item));
  return words;
}

describe("watching a session", () => {
  it("delivers each record once, in order, with the deltas of an output before it", async () => {
    await using host = newHost();
    const session = await host.createSession();
    const completion = ["one ", "two ", "three", "done"];
    expect(await wordsOfTurn(host, session)).toEqual(["#1", "#2", "#3", ...completion, "#4", "#5", ...completion, "#6", "#7"]);
  });

  it("changes nothing in the journal", async () => {
    await using host = newHost();
    const [watched, alone] = [await host.createSession(), await host.createSession()];
    await wordsOfTurn(host, watched);
    await (
      await host.begin(alone, ["hi"])
    ).outcome;
    expect(await host.story(watched)).toEqual(await host.story(alone));
  });

  it("begins at its cursor, however much is there already, and goes on live without a gap", async () => {
    await using host = newHost();
    const session = await host.createSession();
    for (let turn = 0; turn < 60; turn++) await (await host.begin(session, ["hi"])).outcome;
    const seqs: number[] = [];
    let lastSeq = Number.POSITIVE_INFINITY;
    for await (const item of host.controller.watch({ session, fromSeq: 5 as Seq, deltas: false })) {
      if (item.kind === "record") seqs.push(item.record.seq);
      if (item.kind === "record" && item.record.seq === 420) {
        lastSeq = (await (await host.begin(session, ["more"])).outcome).lastSeq;
      }
      if (seqs.at(-1) === lastSeq) break;
    }
    expect(seqs).toEqual(Array.from({ length: 427 - 4 }, (_, index) => index + 5));
  });

  it("waits for a cursor past the head", async () => {
    await using host = newHost();
    const session = await host.createSession();
    const first = host.controller.watch({ session, fromSeq: 6 as Seq, deltas: false }).next();
    await (
      await host.begin(session, ["hi"])
    ).outcome;
    expect(await first).toMatchObject({ value: { record: { seq: 6 } } });
  });

  it("serves a watcher that fell behind from the store: deltas may be lost, records never", async () => {
    await using host = newHost({ limits: { watchQueueItemsMax: 4, watchQueueBytesMax: 1_000 } });
    const session = await host.createSession();
    const live = host.controller.watch({ session, fromSeq: 1 as Seq });
    const first = live.next();
    for (let turn = 0; turn < 20; turn++) await (await host.begin(session, ["hi"])).outcome;
    const seqs: number[] = [];
    const firstItem = await first;
    if (firstItem.value?.kind === "record") seqs.push(firstItem.value.record.seq);
    for await (const item of live) {
      if (item.kind === "record") seqs.push(item.record.seq);
      if (seqs.at(-1) === 140) break;
    }
    expect(seqs).toEqual(Array.from({ length: 140 }, (_, index) => index + 1));
  });

  it("ends quietly when its signal fires, and leaves no listener", async () => {
    await using host = newHost();
    const session = await host.createSession();
    const stop = new AbortController();
    const live = host.controller.watch({ session, fromSeq: 1 as Seq, signal: stop.signal });
    const waiting = live.next();
    stop.abort(new Error("gone"));
    expect(await waiting).toEqual({ done: true, value: undefined });
  });
});

describe("following a session", () => {
  const summary = (item: FollowItem): string =>
    item.kind === "record" ? `#${item.record.seq}` : item.partial.pieces.map(({ kind, text }) => `${kind}:${text.toString()}`).join("|");

  /** A model that thinks, then answers word by word; it waits before each word until it is told to go on. */
  function stepping(): { readonly model: TestModel; readonly step: () => void } {
    let step = Promise.withResolvers<void>();
    const model = new TestModel(async function* () {
      yield { kind: "reasoning", partIndex: 0, text: "hm" };
      for (const chunk of ["one ", "two"]) {
        await step.promise;
        step = Promise.withResolvers<void>();
        yield { kind: "text", partIndex: 1, text: chunk };
      }
      await step.promise;
      step = Promise.withResolvers<void>();
      yield { kind: "completed", response: textResponse("one two"), facts: {} };
    });
    return { model, step: () => step.resolve() };
  }

  const once = testHarness(async (start, sink) => void (await sink.model({ model: "test", messages: start.inputs })));

  it("tells the completion in progress as it is, reasoning with it, after the records before it", async () => {
    const { model, step } = stepping();
    await using host = newHost({ models: model, harnesses: { test: once } });
    const session = await host.createSession();
    const turn = await host.begin(session, ["hi"]);
    const items: string[] = [];
    for await (const item of host.controller.follow({
      session,
      fromSeq: turn.startSeq,
      until: turn.outcome.then(({ lastSeq }) => lastSeq),
    })) {
      items.push(summary(item));
      if (item.kind === "partial") step();
    }
    expect(items).toEqual(["#1", "#2", "#3", "reasoning:hm", "reasoning:hm|text:one ", "reasoning:hm|text:one two", "#4", "#5"]);
  });

  it("gives whoever comes late what has come so far", async () => {
    const { model, step } = stepping();
    await using host = newHost({ models: model, harnesses: { test: once } });
    const session = await host.createSession();
    const turn = await host.begin(session, ["hi"]);
    const early = host.controller.follow({ session, fromSeq: 4 as Seq });
    expect(summary((await early.next()).value!)).toBe("reasoning:hm");
    step();
    expect(summary((await early.next()).value!)).toBe("reasoning:hm|text:one ");
    const late = host.controller.follow({ session, fromSeq: 3 as Seq });
    expect([summary((await late.next()).value!), summary((await late.next()).value!)]).toEqual(["#3", "reasoning:hm|text:one "]);
    step();
    expect(summary((await late.next()).value!)).toBe("reasoning:hm|text:one two");
    step();
    await turn.outcome;
    expect(summary((await late.next()).value!)).toBe("#4");
    await Promise.all([early.return(), late.return()]);
  });

  it("tells nothing of a completion that ended, and of one that failed", async () => {
    const failing = new TestModel(async function* () {
      yield { kind: "text", partIndex: 0, text: "one " };
      throw new HoldfastError("unavailable", "model: it is gone");
    });
    await using host = newHost({ models: failing, harnesses: { test: once } });
    const session = await host.createSession();
    const { lastSeq } = await (await host.begin(session, ["hi"])).outcome;
    const items: string[] = [];
    for await (const item of host.controller.follow({ session, fromSeq: 1 as Seq, until: Promise.resolve(lastSeq) }))
      items.push(summary(item));
    expect(items).toEqual(Array.from({ length: lastSeq }, (_, index) => `#${index + 1}`));
  });
});
