import { describe, expect, it } from "vitest";
import { OpenedParts } from "./opened-parts.ts";

describe("the parts that a server has opened", () => {
  it("are closed the last one first, each once, whatever becomes of another", async () => {
    const closed: string[] = [];
    const part = (name: string, fault?: string): AsyncDisposable => ({
      [Symbol.asyncDispose]: async () => {
        closed.push(name);
        if (fault !== undefined) throw new Error(fault);
      },
    });
    const opened = new OpenedParts();
    const first = part("first");
    expect(opened.add(first)).toBe(first);
    opened.add(part("second", "it is stuck"));
    opened.add(part("third", "it is away"));
    await expect(opened[Symbol.asyncDispose]()).rejects.toThrow("it is away");
    expect(closed).toEqual(["third", "second", "first"]);
    await opened[Symbol.asyncDispose]();
    expect(closed).toHaveLength(3);
  });
});
