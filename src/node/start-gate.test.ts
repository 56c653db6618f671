import { describe, expect, it } from "vitest";
import { StartGate } from "./start-gate.ts";

describe("a gate for starts", () => {
  it("lets so many pass at once, in order, and the next when one has settled", async () => {
    const gate = new StartGate(2);
    const begun: number[] = [];
    const tasks = Array.from({ length: 5 }, () => Promise.withResolvers<void>());
    const passed = tasks.map(({ promise }, index) =>
      gate.pass(() => {
        begun.push(index);
        return promise;
      }, undefined),
    );
    await Promise.resolve();
    expect(begun).toEqual([0, 1]);
    tasks[1]?.reject(new Error("it failed"));
    await expect(passed[1]).rejects.toThrow("it failed");
    await new Promise((resolve) => setImmediate(resolve));
    expect(begun).toEqual([0, 1, 2]);
    for (const { resolve } of tasks) resolve();
    await Promise.all(passed.filter((_, index) => index !== 1));
    expect(begun).toEqual([0, 1, 2, 3, 4]);
  });

  it("starts nothing for a caller that gave up, whose place the next one has", async () => {
    const gate = new StartGate(1);
    const first = Promise.withResolvers<void>();
    const abort = new AbortController();
    const holding = gate.pass(() => first.promise, undefined);
    const given = gate.pass(() => Promise.reject(new Error("it was started")), abort.signal);
    const third = gate.pass(async () => "third", undefined);
    abort.abort(new Error("enough"));
    first.resolve();
    await holding;
    await expect(given).rejects.toThrow("enough");
    expect(await third).toBe("third");
  });
});
