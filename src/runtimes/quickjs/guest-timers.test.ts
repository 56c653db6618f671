import { describe, expect, it } from "vitest";
import { VirtualClock } from "../../testing/ports.ts";
import { GuestTimers, type WaitingTimer } from "./guest-timers.ts";

function timers(clock = new VirtualClock(1000), isAwake = true) {
  const fired: WaitingTimer[] = [];
  let calls = 0;
  const set: GuestTimers = new GuestTimers(clock, () => {
    calls++;
    fired.push(...set.takeDue());
  });
  if (isAwake) set.wake();
  return { clock, fired, timers: set, calls: () => calls };
}

describe("a guest's timers", () => {
  it("fire once, when they are due, and tell the time that the guest then sees", () => {
    const { clock, fired, timers: set } = timers();
    set.set(1, 50, 7000);
    set.set(2, 10, 7000);
    clock.advance(49);
    expect(fired.map(({ id }) => id)).toEqual([2]);
    clock.advance(1000);
    expect(fired).toEqual([
      { id: 2, dueMs: 1010, guestDueMs: 7010 },
      { id: 1, dueMs: 1050, guestDueMs: 7050 },
    ]);
    expect(set.size).toBe(0);
  });

  it("do not fire when they are cleared, or all of them are", () => {
    const { clock, fired, timers: set } = timers();
    for (const id of [1, 2, 3]) set.set(id, 5, 0);
    set.clear(2);
    clock.advance(5);
    expect(fired.map(({ id }) => id)).toEqual([1, 3]);
    set.set(4, 5, 0);
    set.clearAll();
    clock.advance(5);
    expect(fired).toHaveLength(2);
    expect(clock.pending).toBe(0);
  });

  it("take four milliseconds at least, and are due together at most once in four, however many they are", () => {
    const { clock, fired, timers: set, calls } = timers();
    set.set(1, 0, 0);
    clock.advance(3);
    expect(fired).toEqual([]);
    clock.advance(1);
    expect(fired).toHaveLength(1);
    for (let id = 2; id < 102; id++) set.set(id, id, 0);
    for (let ms = 0; ms < 110; ms++) clock.advance(1);
    expect(fired).toHaveLength(101);
    expect(calls()).toBeLessThanOrEqual(1 + 110 / 4);
  });

  it("are silent while they sleep, and what is overdue is due at once afterwards, in its order", () => {
    const { clock, fired, timers: set } = timers(undefined, false);
    set.set(1, 50, 0);
    set.set(2, 5, 0);
    set.set(3, 5000, 0);
    clock.advance(100);
    expect(set.takeDue()).toEqual([]);
    expect([fired, clock.pending]).toEqual([[], 0]);
    set.wake();
    clock.advance(0);
    expect(fired.map(({ id }) => id)).toEqual([2, 1]);
    set.sleep();
    clock.advance(5000);
    expect(set.facts().map(({ id }) => id)).toEqual([3]);
    set.wake();
    clock.advance(0);
    expect(fired.map(({ id }) => id)).toEqual([2, 1, 3]);
  });

  it("wait again after a restore, until the same time of day", () => {
    const before = timers();
    before.timers.set(1, 500, 0);
    before.clock.advance(100);
    const facts = before.timers.facts();
    const after = timers(new VirtualClock(1200));
    for (const fact of facts) after.timers.add(fact);
    after.clock.advance(299);
    expect(after.fired).toEqual([]);
    after.clock.advance(1);
    expect(after.fired).toEqual(facts);
  });
});
