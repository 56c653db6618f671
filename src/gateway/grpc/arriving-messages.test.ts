import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { HoldfastError } from "../../base/index.ts";
import { arrivingMessages } from "./arriving-messages.ts";

/** A call whose client sends these. */
function callOf(messages: AsyncIterable<Uint8Array>): Parameters<typeof arrivingMessages>[0] {
  return { iterator: () => messages[Symbol.asyncIterator]() as NodeJS.AsyncIterator<Uint8Array> };
}

async function* sent(count: number, bytes: number): AsyncGenerator<Uint8Array, void, undefined> {
  for (let index = 0; index < count; index++) {
    await new Promise(setImmediate);
    yield new Uint8Array(bytes).fill(index);
  }
}

/** Collects garbage, as far as that goes at once. */
function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  if (typeof collect === "function") Reflect.apply(collect, undefined, []);
}

describe("the messages of a client's stream", () => {
  it("come in their order and end with the stream", async () => {
    const messages = arrivingMessages(callOf(sent(3, 1)), new AbortController().signal);
    expect((await Array.fromAsync(messages)).map(([first]) => first)).toEqual([0, 1, 2]);
  });

  it("end with the signal's reason, also while nothing comes", async () => {
    const gone = new AbortController();
    const silent = { [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => undefined) }) };
    const next = arrivingMessages(callOf(silent), gone.signal).next();
    gone.abort(new HoldfastError("cancelled", "gone"));
    await expect(next).rejects.toMatchObject({ code: "cancelled" });
  });

  it("are not kept once they were handed out, however long the stream is", async () => {
    const [count, bytes] = [200, 64 * 1024];
    const messages = arrivingMessages(callOf(sent(count, bytes)), new AbortController().signal);
    const seen: WeakRef<Uint8Array>[] = [];
    while (seen.length < count) seen.push(new WeakRef((await messages.next()).value!));
    await new Promise(setImmediate);
    collectGarbage();
    // The last ones may be on the stack yet.
    expect(seen.filter((message) => message.deref() !== undefined).length).toBeLessThan(count / 10);
    await messages.return();
  });
});
