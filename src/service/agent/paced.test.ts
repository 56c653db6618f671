import { describe, expect, it } from "vitest";
import { VirtualClock } from "../../testing/ports.ts";
import { Paced } from "./paced.ts";

describe("updates at a rate", () => {
  const paced = (last?: string) => {
    const clock = new VirtualClock();
    const out: string[] = [];
    const updates = new Paced<string>(
      { clock, max: 4, spanMs: 1_200, keyOf: (update) => update, emit: (update) => out.push(update) },
      last,
    );
    return { clock, out, updates };
  };

  it("go out at once up to so many in a span, and the last one then, those between lost", () => {
    const { clock, out, updates } = paced("idle");
    for (const update of ["a", "b", "c", "d", "e", "f"]) updates.set(update);
    expect(out).toEqual(["a", "b", "c", "d"]);
    clock.advance(1_199);
    expect(out).toEqual(["a", "b", "c", "d"]);
    clock.advance(1);
    expect(out).toEqual(["a", "b", "c", "d", "f"]);
  });

  it("are never more often than four times a second, whenever they come", () => {
    const { clock, updates } = paced();
    const times: number[] = [];
    const busy = new Paced<string>({
      clock,
      max: 4,
      spanMs: 1_200,
      keyOf: (update) => update,
      emit: () => times.push(clock.monotonicMs()),
    });
    for (let step = 0; step < 400; step++) {
      busy.set(String(step));
      clock.advance(17);
    }
    for (const [index, time] of times.entries()) expect((times[index + 4] ?? Number.POSITIVE_INFINITY) - time).toBeGreaterThan(1_000);
    expect(times.length).toBeGreaterThan(15);
    updates.stop();
  });

  it("are none where nothing changed, and no timer runs then", () => {
    const { clock, out, updates } = paced("idle");
    updates.set("idle");
    updates.set("a");
    updates.set("a");
    for (const update of ["b", "c", "d", "e"]) updates.set(update);
    updates.set("d");
    expect(clock.pending).toBe(0);
    clock.advance(5_000);
    expect(out).toEqual(["a", "b", "c", "d"]);
    updates.set("e");
    updates.stop();
    expect(clock.pending).toBe(0);
  });
});
