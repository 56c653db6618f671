import { describe, expect, it } from "vitest";
import { Tail } from "./tail.ts";

describe("the end of a text", () => {
  const ended = (bytesMax: number, ...chunks: string[]): string => {
    const tail = new Tail(bytesMax);
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
    const tail = new Tail(10);
    tail.push(Buffer.from("first line\ntwo\n"));
    expect(tail.take()).toBe("two\n");
    expect(tail.take()).toBe("");
    tail.push(Buffer.from("six\n"));
    expect(tail.text()).toBe("six\n");
  });

  it("holds little more than it keeps, however it comes", () => {
    const tail = new Tail(1_000);
    for (let index = 0; index < 100_000; index++) tail.push(Buffer.from(`${index}\n`));
    expect(tail.text().length).toBeLessThanOrEqual(1_000);
    expect(tail.text().endsWith("99998\n99999\n")).toBe(true);
  });
});
