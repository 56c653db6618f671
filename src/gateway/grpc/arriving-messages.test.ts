import { describe, expect, it } from "vitest";
import { HoldfastError } from "../../base/index.ts";
import { stillHeld } from "../../testing/still-held.ts";
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
    expect(await stillHeld(seen)).toBeLessThan(count / 10);
    await messages.return();
  });
});
