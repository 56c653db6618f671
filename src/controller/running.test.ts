import { describe, expect, it } from "vitest";
import { SILENT_LOG, type HostId, type SessionUid } from "../base/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { SeededRandom, seededPorts } from "../testing/index.ts";
import { CONTROLLER_LIMITS } from "./limits.ts";
import { RunningTurns } from "./running.ts";

function seats(turnsRunningMax: number): RunningTurns {
  const { clock, digest } = seededPorts();
  const store = createMemoryStore({ clock, digest, log: SILENT_LOG });
  const limits = { ...CONTROLLER_LIMITS, turnsRunningMax };
  return new RunningTurns({ store, hostId: "here" as HostId, clock, log: SILENT_LOG, limits });
}

const [a, b, worker, below] = ["a", "b", "worker", "below"] as [SessionUid, SessionUid, SessionUid, SessionUid];

describe("the seats of a full host", () => {
  it("are lent to one at a time, and come back with either", () => {
    const running = seats(1);
    running.reserve(a);
    expect([running.hasRoom(undefined), running.hasRoom(a), running.hasRoom(b)]).toEqual([false, true, false]);
    running.reserve(worker, a);
    expect(running.hasRoom(a)).toBe(false);
    expect(() => running.reserve(b, a)).toThrow(/it runs 1 turns already/);
    running.free(worker);
    running.reserve(worker, a);
    running.free(a);
    expect(running.hasRoom(undefined)).toBe(false);
    running.free(worker);
    expect(running.hasRoom(undefined)).toBe(true);
  });

  it("count once however often they were lent on, also when one in the middle ends first", () => {
    const running = seats(2);
    for (const session of [a, b]) running.reserve(session);
    running.reserve(worker, a);
    running.reserve(below, worker);
    running.free(worker);
    // What the middle had lent on is still lent: there is no second one.
    expect([running.hasRoom(undefined), running.hasRoom(a), running.hasRoom(b)]).toEqual([false, false, true]);
    running.free(below);
    expect([running.hasRoom(undefined), running.hasRoom(a)]).toEqual([false, true]);
    running.free(b);
    expect(running.hasRoom(undefined)).toBe(true);
  });

  it("are all there again after whatever order of beginnings and ends, and no more of them", () => {
    const random = new SeededRandom(11);
    for (let round = 0; round < 300; round++) {
      const running = seats(3);
      const seated = new Set<SessionUid>();
      for (let step = 0; step < 40; step++) {
        const there = [...seated];
        const lentBy = random.below(3) === 0 ? undefined : there[random.below(Math.max(1, there.length))];
        const session = `s${step}` as SessionUid;
        if (random.below(3) > 0 && running.hasRoom(lentBy)) {
          running.reserve(session, lentBy);
          seated.add(session);
        } else if (there.length > 0) {
          const ended = there[random.below(there.length)]!;
          running.free(ended);
          seated.delete(ended);
        }
      }
      for (const session of seated) running.free(session);
      for (const session of [a, b, worker]) running.reserve(session);
      expect(running.hasRoom(undefined)).toBe(false);
    }
  });
});
