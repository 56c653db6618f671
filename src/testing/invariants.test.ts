/** Each checker must be able to fail: a sound world passes, and with one thing in it falsified it does not. */

import { describe, expect, it } from "vitest";
import { create } from "@bufbuild/protobuf";
import type { Clock, Fence, Seq, SessionUid } from "../base/index.ts";
import { EventKind, EventSchema } from "../gen/agentsessions/v1/common_pb.ts";
import type { StoredRecord } from "../journal/index.ts";
import { textMessage } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { SessionEvidence, violationsOf, violationText, type Promised, type Violation } from "./invariants.ts";
import { testDigest } from "./ports.ts";
import { soundWorld, type Sound } from "./simulator/sound-world.ts";

const inMemory = async (clock: Clock) => createMemoryStore({ clock, digest: testDigest });

/** The first entry that fits. */
function one<T>(entries: readonly T[], fits: (entry: T) => boolean): T {
  const entry = entries.find(fits);
  if (entry === undefined) throw new Error("the sound world has no such entry");
  return entry;
}

function index<T>(entries: readonly T[], fits: (entry: T) => boolean): number {
  return entries.indexOf(one(entries, fits));
}

type Plant = (sound: Sound) => void;

/** Replaces what was read of a session, record by record. */
function rewrite({ journals }: Sound, session: SessionUid, change: (records: StoredRecord[]) => readonly StoredRecord[]): void {
  const evidence = new SessionEvidence(session, testDigest);
  for (const record of change([...(journals.get(session)?.records ?? [])])) evidence.push(record);
  journals.set(session, evidence);
}

const FALSIFIED: Readonly<Record<string, { readonly plant: Plant; readonly breaks: Promised; readonly says: RegExp }>> = {
  "a request is not what its MODEL_CALL says": {
    plant: ({ ledger }) => Object.assign(ledger.calls[0]!, { inputHash: "0".repeat(64) }),
    breaks: "I0",
    says: /asked for something else/,
  },
  "a run asks a model after it has diverged": {
    plant: ({ ledger }) => {
      const { session, host, fence, executionId } = ledger.calls.at(-1)!;
      ledger.divergences.push({ session, host, fence, executionId, callsBefore: ledger.calls.length - 1 });
    },
    breaks: "I0",
    says: /asked a model after it had diverged/,
  },
  "a run records something after it has diverged": {
    plant: ({ ledger }) => {
      const { session, host, fence, executionId } = ledger.starts[0]!;
      ledger.divergences.push({ session, host, fence, executionId, callsBefore: ledger.calls.length });
    },
    breaks: "I0",
    says: /recorded something although/,
  },
  "a turn diverges when it is replayed": {
    plant: ({ ledger }) => {
      const replay = one(ledger.replays, ({ checks }) => checks.length > 0);
      const divergence = { seq: 3 as Seq, recorded: undefined, asked: undefined, reason: "planted" };
      Object.assign(replay.checks[0]!, { outcome: { kind: "diverged", divergence } });
    },
    breaks: "I0",
    says: /diverged at 3: planted/,
  },
  "a turn is not replayed": {
    plant: ({ ledger }) => {
      const at = index(ledger.replays, ({ checks }) => checks.length > 1);
      ledger.replays[at] = { ...ledger.replays[at]!, checks: ledger.replays[at]!.checks.slice(1) };
    },
    breaks: "I5",
    says: /were replayed/,
  },
  "a replay asks a model": {
    plant: ({ ledger }) => (ledger.replays[0] = { ...ledger.replays[0]!, calls: 1 }),
    breaks: "I1",
    says: /a replay asked a model 1 times/,
  },
  "a replaying run asks a model": {
    plant: ({ ledger }) => ledger.calls.push({ ...ledger.calls[0]!, fence: "replay" }),
    breaks: "I1",
    says: /a replay asked a model/,
  },
  "a recorded completion is not the model's": {
    plant: ({ ledger }) => {
      const call = one(ledger.calls, ({ response }) => response !== undefined);
      call.response!.parts[0]!.part = { case: "reasoning", value: textReasoning(9) };
    },
    breaks: "I2",
    says: /not what a model answered/,
  },
  "a recorded completion is asked for again": {
    plant: ({ ledger, resumed }) => {
      const first = one(ledger.calls, ({ session }) => session === resumed);
      const recovery = one(ledger.starts, ({ session, fence }) => session === resumed && fence !== first.fence && fence !== "replay");
      ledger.calls.push({ ...first, fence: recovery.fence, host: recovery.host });
    },
    breaks: "I3",
    says: /again for a completion that the run found recorded/,
  },
  "one run asks twice under one MODEL_CALL": {
    plant: ({ ledger }) => ledger.calls.push({ ...ledger.calls[0]! }),
    breaks: "I3",
    says: /one run asked a model twice/,
  },
  "a call is made more often than its turn was taken up": {
    plant: ({ ledger, child }) => {
      const call = one(ledger.calls, ({ session }) => session === child);
      ledger.calls.push({ ...call, fence: 77 as Fence });
    },
    breaks: "I3",
    says: /asked 2 times under one MODEL_CALL, 1 are allowed/,
  },
  "a run is served another completion than the recorded one": {
    plant: ({ ledger, resumed }) => {
      const at = index(ledger.served, ({ session, fence }) => session === resumed && fence !== "replay");
      ledger.served[at] = { ...ledger.served[at]!, message: textMessage("assistant", "forged") };
    },
    breaks: "I3",
    says: /served another completion/,
  },
  "a run gets other inputs": {
    plant: ({ ledger }) => (ledger.starts[0] = { ...ledger.starts[0]!, inputs: [textMessage("user", "other")] }),
    breaks: "I4",
    says: /other inputs/,
  },
  "a run gets another config": {
    plant: ({ ledger }) => (ledger.starts[0] = { ...ledger.starts[0]!, config: new Uint8Array() }),
    breaks: "I4",
    says: /another config/,
  },
  "a run's history ends elsewhere": {
    plant: ({ ledger }) => (ledger.starts[0] = { ...ledger.starts[0]!, lastSeq: 7 as Seq }),
    breaks: "I4",
    says: /does not end before its start/,
  },
  "a run reads another history": {
    plant: ({ ledger }) => {
      const { pages } = one(ledger.starts, (start) => start.pages.length > 0);
      pages[0] = { ...pages[0]!, firstSeq: 2 as Seq };
    },
    breaks: "I4",
    says: /read another history/,
  },
  "a record is written by nobody": {
    plant: (sound) => {
      const at = index(sound.ledger.appends, ({ session, records }) => session === sound.resumed && records.length > 0);
      sound.ledger.appends.splice(at, 1);
    },
    breaks: "I6",
    says: /nobody asked for this record/,
  },
  "two hosts write under one fence": {
    plant: ({ ledger }) => {
      const at = index(ledger.appends, ({ writer, answer }) => writer.kind === "hold" && answer === "appended");
      ledger.appends[at] = { ...ledger.appends[at]!, host: "another" };
    },
    breaks: "I6",
    says: /host another wrote under fence/,
  },
  "a fence is minted twice": {
    plant: ({ ledger }) => ledger.appends.push(one(ledger.appends, ({ writer }) => writer.kind === "claim")),
    breaks: "I6",
    says: /was minted twice/,
  },
  "an append is taken under another fence": {
    plant: ({ ledger }) => {
      const at = index(ledger.appends, ({ writer, answer }) => writer.kind === "hold" && answer === "appended");
      ledger.appends[at] = { ...ledger.appends[at]!, writer: { kind: "hold", fence: 99 as Fence } };
    },
    breaks: "I6",
    says: /an append under fence 99 was taken under/,
  },
  "half of an append is there": {
    plant: (sound) => {
      const append = one(sound.ledger.appends, ({ session, events }) => session === sound.resumed && events.length === 2);
      Object.assign(append, { answer: "threw", records: [] });
      rewrite(sound, sound.resumed, (records) => records.slice(0, 1));
    },
    breaks: "I6",
    says: /of an append of 2 events 1 are in the journal/,
  },
  "a refused append is there": {
    plant: ({ ledger, resumed }) => {
      const append = one(ledger.appends, ({ session, events }) => session === resumed && events.length === 2);
      Object.assign(append, { answer: "conflict", records: [] });
    },
    breaks: "I6",
    says: /refused as conflict 2 events 2 are in the journal/,
  },
  "a model is asked without a durable MODEL_CALL": {
    plant: ({ ledger }) => (ledger.calls[0] = { ...ledger.calls[0]!, callSeq: undefined }),
    breaks: "I7",
    says: /without a durable MODEL_CALL/,
  },
  "a harness runs without a durable start": {
    plant: ({ ledger }) => (ledger.starts[0] = { ...ledger.starts[0]!, executionId: "unknown" as never }),
    breaks: "I7",
    says: /without a durable EXECUTION_START/,
  },
  "a harness that can act by itself is served early": {
    plant: ({ ledger }) => {
      const at = index(ledger.served, ({ actsItself, fence }) => actsItself && fence !== "replay");
      ledger.served[at] = { ...ledger.served[at]!, durableSeq: 2 as Seq };
    },
    breaks: "I7",
    says: /completion that was not durable/,
  },
  "an acknowledged record is not there": {
    plant: (sound) => rewrite(sound, sound.resumed, (records) => records.slice(0, -1)),
    breaks: "I8",
    says: /acknowledged and is not in the journal/,
  },
  "an acknowledged record is another": {
    plant: ({ ledger }) => {
      const append = one(ledger.appends, ({ records }) => records.length > 0);
      append.records = append.records.map((record) => ({ ...record, bytes: new Uint8Array(3) }));
    },
    breaks: "I8",
    says: /not the one that was acknowledged/,
  },
  "a watcher misses a record": {
    plant: ({ ledger }) => one(ledger.streams, ({ records }) => records.length > 2).records.splice(1, 1),
    breaks: "I8",
    says: /where \d+ is due/,
  },
  "a watcher is told a record twice": {
    plant: ({ ledger }) => {
      const { records } = one(ledger.streams, (stream) => stream.records.length > 2);
      records.splice(1, 0, records[1]!);
    },
    breaks: "I8",
    says: /where \d+ is due/,
  },
  "a watcher is told of a record that is not there": {
    plant: ({ ledger }) => {
      const { records } = one(ledger.streams, (stream) => stream.records.length > 2);
      records[0] = { ...records[0]!, contentHash: "0".repeat(64) };
    },
    breaks: "I8",
    says: /told a record that is not in the journal/,
  },
  "a client is told another end": {
    plant: ({ ledger }) => {
      const at = index(ledger.told, ({ kind }) => kind === "ended");
      ledger.told[at] = { ...one(ledger.told, ({ kind }) => kind === "ended"), state: "FAILED" } as (typeof ledger.told)[number];
    },
    breaks: "I8",
    says: /told that its turn has ended/,
  },
  "a client is told of a turn that has not begun": {
    plant: ({ ledger }) => {
      const at = index(ledger.told, ({ kind }) => kind === "begun");
      ledger.told[at] = { ...ledger.told[at]!, seq: 4 as Seq };
    },
    breaks: "I8",
    says: /told that its turn has begun/,
  },
};

function textReasoning(byte: number) {
  const part = create(EventSchema, {
    body: {
      case: "message",
      value: { parts: [{ part: { case: "reasoning", value: { opaque: { case: "opaqueBytes", value: new Uint8Array([byte]) } } } }] },
    },
  });
  const made = part.body.case === "message" ? part.body.value.parts[0]?.part : undefined;
  if (made?.case !== "reasoning") throw new Error("no reasoning was made");
  return made.value;
}

const found = ({ ledger, journals }: Sound): readonly Violation[] => violationsOf(ledger, journals);

describe("the checkers of I0 to I8", () => {
  it("find nothing in a sound world", async () => {
    const sound = await soundWorld(inMemory);
    expect(found(sound).map(violationText)).toEqual([]);
    expect(sound.ledger.calls.length).toBeGreaterThan(5);
    expect(sound.ledger.replays.flatMap(({ checks }) => checks).length).toBeGreaterThan(5);
  });

  it.each(Object.entries(FALSIFIED))("find: %s", async (_, { plant, breaks, says }) => {
    const sound = await soundWorld(inMemory);
    plant(sound);
    const texts = found(sound).map(violationText);
    expect(texts.filter((text) => text.startsWith(breaks) && says.test(text))).not.toEqual([]);
  });

  it("find a turn that replays as it was, although its harness asks for something else each time", async () => {
    const { ledger, journals } = await soundWorld(inMemory);
    const texts = violationsOf(ledger, journals, { worker: { kind: EventKind.EVENT_TOOL_RESULT, count: 1 } }).map(violationText);
    expect(texts).toContainEqual(expect.stringMatching(/^I0 .*although its harness asked for something else/));
  });
});
