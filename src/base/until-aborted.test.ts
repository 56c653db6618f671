import { describe, expect, it } from "vitest";
import { HoldfastError } from "./errors.ts";
import { untilAborted } from "./until-aborted.ts";

const gone = new HoldfastError("cancelled", "gone");
const never = new Promise<never>(() => undefined);

describe("a wait that can be given up", () => {
  it("comes to what the work comes to, with a signal and without one", async () => {
    const { signal } = new AbortController();
    expect(await untilAborted(Promise.resolve(1), signal)).toBe(1);
    expect(await untilAborted(Promise.resolve(2), undefined)).toBe(2);
    await expect(untilAborted(Promise.reject(gone), signal)).rejects.toBe(gone);
  });

  it("ends with the reason of a signal that fires, or has fired", async () => {
    const leaving = new AbortController();
    const waiting = untilAborted(never, leaving.signal);
    leaving.abort(gone);
    await expect(waiting).rejects.toBe(gone);
    await expect(untilAborted(never, leaving.signal)).rejects.toBe(gone);
    // What the work comes to afterwards is nobody's, and no fault.
    await expect(untilAborted(Promise.reject(new Error("late")), leaving.signal)).rejects.toBe(gone);
  });

  it("leaves no listener behind", async () => {
    const { signal } = new AbortController();
    const listening = new Set<unknown>();
    signal.addEventListener = (_type: string, listener: unknown) => void listening.add(listener);
    signal.removeEventListener = (_type: string, listener: unknown) => void listening.delete(listener);
    const work = Promise.withResolvers<void>();
    const waiting = untilAborted(work.promise, signal);
    expect(listening.size).toBe(1);
    work.resolve();
    await waiting;
    expect(listening.size).toBe(0);
  });
});
