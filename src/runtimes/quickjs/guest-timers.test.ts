import { describe, expect, it } from "vitest";
import { VirtualClock } from "../../testing/ports.ts";
import { GuestTimers, type WaitingTimer } from "./guest-timers.ts";

function timers(clock = new VirtualClock(1000)) {
  const fired: WaitingTimer[] = [];
  return { clock, fired, timers: new GuestTimers(clock, (timer) => fired.push(timer)) };
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

  it("take a millisecond at least, so that nobody spins the host", () => {
    const { clock, fired, timers: set } = timers();
    set.set(1, 0, 0);
    clock.advance(0);
    expect(fired).toEqual([]);
    clock.advance(1);
    expect(fired).toHaveLength(1);
  });

  it("stand still while they are paused, and what is overdue fires at once afterwards", () => {
    const { clock, fired, timers: set } = timers();
    set.set(1, 5, 0);
    set.pause();
    set.set(2, 5000, 0);
    clock.advance(100);
    expect(fired).toEqual([]);
    expect(clock.pending).toBe(0);
    set.resume();
    clock.advance(0);
    expect(fired.map(({ id }) => id)).toEqual([1]);
    clock.advance(5000);
    expect(fired.map(({ id }) => id)).toEqual([1, 2]);
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
