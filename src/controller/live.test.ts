import { describe, expect, it } from "vitest";
import { SILENT_LOG, type Seq, type SessionUid } from "../base/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { answering, seededPorts, testHarness, TestHost, TestModel, type TestHostOptions } from "../testing/index.ts";
import type { LiveItem } from "./index.ts";

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
