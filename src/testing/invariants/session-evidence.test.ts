import { describe, expect, it } from "vitest";
import type { Clock, Fence, Seq } from "../../base/index.ts";
import { encodeLogRecord } from "../../canon/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import { JournalMonitor, Ledger, SessionEvidence, violationText } from "../invariants.ts";
import { testDigest } from "../ports.ts";
import { soundWorld, type Sound } from "../simulator/sound-world.ts";

const inMemory = async (clock: Clock) => createMemoryStore({ clock, digest: testDigest });

describe("what is read of a session", () => {
  async function evidence(): Promise<{ own: SessionEvidence; again: SessionEvidence; sound: Sound }> {
    const sound = await soundWorld(inMemory);
    return { own: sound.journals.get(sound.resumed)!, again: new SessionEvidence(sound.resumed, testDigest), sound };
  }

  it("shows a broken chain (I5)", async () => {
    const { own, again } = await evidence();
    again.push(own.at(1)!);
    expect(again.push(own.at(3)!).map(violationText)).toEqual([expect.stringMatching(/^I5 .*the chain breaks \(seq\)/)]);
  });

  it("shows a fence that goes back (I6), which no hash covers", async () => {
    const { own, again } = await evidence();
    const faults = own.records.flatMap((record) => {
      const { event, seq, contentHash } = record;
      const fence = seq === own.lastSeq ? (0 as Fence) : record.fence;
      const prevHash = own.at(seq - 1)?.contentHash ?? "";
      return [...again.push({ ...record, fence, bytes: encodeLogRecord({ seq, prevHash, contentHash, fence, event }) })];
    });
    expect(faults.map(violationText)).toEqual([expect.stringMatching(/^I6 .*older than the one before/)]);
  });

  it("shows a row that is not what its journal folds to (I5), and one whose fence is old (I6)", async () => {
    const { own, sound } = await evidence();
    const row = await sound.world.journal.get(sound.resumed);
    expect(own.rowViolations(row!)).toEqual([]);
    const wrong = own.rowViolations({ ...row!, fence: 0 as Fence, projection: { ...row!.projection, lastEnd: "FAILED" } });
    expect(wrong.map(({ promised }) => promised)).toEqual(["I5", "I6"]);
  });

  it("shows a child whose prefix is not its parent's (I5), or that begins under the parent's fence (I6)", async () => {
    const { sound } = await evidence();
    const child = sound.journals.get(sound.child)!;
    const parent = sound.journals.get(sound.ledger.forks[0]!.parent)!;
    expect(child.prefixViolations(parent, 3 as Seq)).toEqual([]);
    expect(child.prefixViolations(sound.journals.get(sound.resumed)!, 3 as Seq)).toMatchObject([{ promised: "I5", seq: 1 }]);
    expect(child.prefixViolations(parent, 2 as Seq)).toMatchObject([{ promised: "I5", what: expect.stringMatching(/FORK marker/) }]);
    child.records[2] = { ...child.records[2]!, fence: child.records[3]!.fence };
    expect(child.prefixViolations(child, 3 as Seq)).toMatchObject([{ promised: "I6" }]);
  });
});

describe("the monitor", () => {
  it("shows a record that was there and is another one now, or is gone (I8)", async () => {
    const { world, resumed } = await soundWorld(inMemory);
    const ledger = new Ledger();
    const monitor = new JournalMonitor(world.journal, ledger, testDigest);
    await monitor.refresh(resumed);
    await monitor.rereadAll();
    expect(ledger.found).toEqual([]);
    const evidence = monitor.of(resumed);
    const [first] = evidence.records.splice(0, 1, { ...evidence.records[0]!, bytes: new Uint8Array([1]) });
    await monitor.rereadAll();
    expect(ledger.found.map(violationText)).toEqual([expect.stringMatching(/^I8 .*@1: a record is not what it was/)]);
    evidence.records.splice(0, 1, first!);
    evidence.records.push({ ...first!, seq: (evidence.lastSeq + 1) as Seq });
    await monitor.rereadAll();
    expect(ledger.found.map(violationText)).toContainEqual(expect.stringMatching(/^I8 .*records can be read where there were/));
  });
});
