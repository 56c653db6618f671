import { EventEmitter } from "node:events";
import { describe, expect, it } from "vitest";
import { HoldfastError } from "../../base/index.ts";
import { stillHeld } from "../../testing/still-held.ts";
import { answered, type UploadCall } from "./upload.ts";

/** A call that counts what it is sent, and has room for `room` requests. */
class Counted extends EventEmitter implements UploadCall<Uint8Array> {
  sent = 0;
  hasEnded = false;
  readonly #room: number;
  readonly #onSent: (sent: number) => void;

  constructor({ room = Number.POSITIVE_INFINITY, onSent = () => undefined }: { room?: number; onSent?: (sent: number) => void } = {}) {
    super();
    this.#room = room;
    this.#onSent = onSent;
  }

  write(): boolean {
    this.sent += 1;
    this.#onSent(this.sent);
    return this.sent < this.#room;
  }

  end(): void {
    this.hasEnded = true;
  }
}

async function* requests(count: number, onMade: (request: Uint8Array) => void = () => undefined): AsyncGenerator<Uint8Array> {
  for (let made = 0; made < count; made++) {
    await new Promise(setImmediate);
    const request = new Uint8Array(64 * 1024);
    onMade(request);
    yield request;
  }
}

describe("an upload", () => {
  it("sends everything, ends its side, and comes to the answer", async () => {
    const call = new Counted();
    const answer = Promise.withResolvers<string>();
    const upload = answered(call, requests(3), answer.promise);
    while (!call.hasEnded) await new Promise(setImmediate);
    answer.resolve("done");
    expect([await upload, call.sent]).toEqual(["done", 3]);
  });

  it("waits for room, and stops with an answer that comes before its end", async () => {
    const answer = Promise.withResolvers<string>();
    const call = new Counted({ room: 2 });
    const upload = answered(call, requests(9), answer.promise);
    while (call.sent < 2) await new Promise(setImmediate);
    for (let ticks = 0; ticks < 5; ticks++) await new Promise(setImmediate);
    expect(call.sent).toBe(2);
    call.emit("drain");
    while (call.sent < 3) await new Promise(setImmediate);
    answer.reject(new HoldfastError("invalid_argument", "no"));
    await expect(upload).rejects.toMatchObject({ code: "invalid_argument" });
    expect([call.sent, call.hasEnded]).toEqual([3, false]);
  });

  it("keeps nothing of what it has sent, however long it is", async () => {
    const count = 200;
    const made: WeakRef<Uint8Array>[] = [];
    const answer = Promise.withResolvers<string>();
    const call = new Counted();
    const upload = answered(
      call,
      requests(count, (request) => made.push(new WeakRef(request))),
      answer.promise,
    );
    while (!call.hasEnded) await new Promise(setImmediate);
    expect(await stillHeld(made)).toBeLessThan(count / 10);
    answer.resolve("done");
    await upload;
  });
});
