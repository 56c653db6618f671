import { describe, expect, it } from "vitest";
import { Outbox, type MessageSink, type OutgoingMessage } from "./outbox.ts";

/** A reader that takes messages when it is told to. */
class SlowSink implements MessageSink {
  readonly messages: Uint8Array[] = [];
  #waiting: OutgoingMessage[] = [];

  write(message: OutgoingMessage): boolean {
    this.messages.push(message.bytes);
    this.#waiting.push(message);
    return true;
  }

  take(count: number): void {
    for (const message of this.#waiting.splice(0, count)) message.onSent();
  }
}

const KILOBYTE = new Uint8Array(1_024);

async function isSettled(promise: Promise<void> | undefined): Promise<boolean> {
  return Promise.race([promise?.then(() => true) ?? true, Promise.resolve().then(() => false)]);
}

describe("an outbox", () => {
  it("lets messages through while few bytes wait", () => {
    const sink = new SlowSink();
    const outbox = new Outbox(sink, 10_000, new AbortController().signal);
    for (let count = 0; count < 6; count++) expect(outbox.send(KILOBYTE)).toBeUndefined();
    expect(sink.messages.length).toBe(6);
  });

  it("pauses its source once enough bytes wait, and lets it go on when half have gone", async () => {
    const sink = new SlowSink();
    const outbox = new Outbox(sink, 10_000, new AbortController().signal);
    let room: Promise<void> | undefined;
    while (room === undefined) room = outbox.send(KILOBYTE);
    expect(sink.messages.length).toBe(7);
    sink.take(3);
    expect(await isSettled(room)).toBe(false);
    sink.take(1);
    expect(await isSettled(room)).toBe(true);
    expect(outbox.waitingBytes).toBeLessThanOrEqual(5_000);
  });

  it("counts small messages too, so that empty ones cannot pile up", () => {
    const sink = new SlowSink();
    const outbox = new Outbox(sink, 10_000, new AbortController().signal);
    while (outbox.send(new Uint8Array()) === undefined);
    expect(sink.messages.length).toBeLessThan(25);
  });

  it("sends a message that is larger than the limit by itself", async () => {
    const sink = new SlowSink();
    const outbox = new Outbox(sink, 100, new AbortController().signal);
    const room = outbox.send(KILOBYTE);
    expect(await isSettled(room)).toBe(false);
    sink.take(1);
    expect(await isSettled(room)).toBe(true);
  });

  it("holds nobody up when the stream is over, whose reader takes nothing any more", async () => {
    const sink = new SlowSink();
    const over = new AbortController();
    const outbox = new Outbox(sink, 100, over.signal);
    const room = outbox.send(KILOBYTE);
    over.abort();
    expect(await isSettled(room)).toBe(true);
    expect(outbox.send(KILOBYTE)).toBeUndefined();
    expect(sink.messages.length).toBe(1);
    expect(new Outbox(sink, 100, over.signal).send(KILOBYTE)).toBeUndefined();
  });
});
