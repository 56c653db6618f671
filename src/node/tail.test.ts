import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { systemClock } from "./clock.ts";
import { Tail } from "./tail.ts";

const tailOf = (bytesMax: number) => new Tail({ bytesMax, clock: systemClock });

describe("the end of a text", () => {
  const ended = (bytesMax: number, ...chunks: string[]): string => {
    const tail = tailOf(bytesMax);
    for (const chunk of chunks) tail.push(Buffer.from(chunk));
    return tail.text();
  };

  it("is the whole where that is short", () => {
    expect(ended(10)).toBe("");
    expect(ended(10, "one\n", "two\n")).toBe("one\ntwo\n");
  });

  it("begins with a whole line where there is one", () => {
    expect(ended(10, "first line\n", "two\n")).toBe("two\n");
    expect(ended(10, `${"x".repeat(100)}\ntwo\n`)).toBe("two\n");
    expect(ended(10, "x".repeat(100))).toBe("x".repeat(10));
  });

  it("is taken once, and goes on with what comes then", () => {
    const tail = tailOf(10);
    tail.push(Buffer.from("first line\ntwo\n"));
    expect(tail.take()).toBe("two\n");
    expect(tail.take()).toBe("");
    tail.push(Buffer.from("six\n"));
    expect(tail.text()).toBe("six\n");
  });

  it("holds little more than it keeps, however it comes", () => {
    const tail = tailOf(1_000);
    for (let index = 0; index < 100_000; index++) tail.push(Buffer.from(`${index}\n`));
    expect(tail.text().length).toBeLessThanOrEqual(1_000);
    expect(tail.text().endsWith("99998\n99999\n")).toBe(true);
  });

  it("is told once its streams have ended, or after a wait, whichever comes first", async () => {
    const tail = tailOf(10);
    const [one, other] = [new PassThrough(), new PassThrough()];
    tail.follow(one);
    tail.follow(other);
    one.end("one\n");
    other.write("two\n");
    const told = tail.lastText(60_000);
    other.end();
    expect((await told).split("\n").toSorted()).toEqual(["", "one", "two"]);
    const endless = new PassThrough();
    tail.follow(endless);
    await tail.lastText(1);
    expect(endless.destroyed).toBe(true);
  });

  it("is read at a bounded pace: who says more waits", async () => {
    const tail = tailOf(10);
    const stream = new PassThrough({ highWaterMark: 64 * 1024 * 1024 });
    tail.follow(stream);
    const startedMs = systemClock.monotonicMs();
    for (let written = 0; written < 8; written++) stream.write(Buffer.alloc(1024 * 1024, "x"));
    stream.end();
    await tail.lastText(60_000);
    expect(systemClock.monotonicMs() - startedMs).toBeGreaterThan(200);
  });
});
