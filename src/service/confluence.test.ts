import { describe, expect, it } from "vitest";
import { Confluence } from "./confluence.ts";

/** A stream of items, and what tells that it was left. */
function stream(...items: readonly string[]): { readonly items: AsyncIterable<string>; readonly left: Promise<void> } {
  const left = Promise.withResolvers<void>();
  const flow = async function* () {
    try {
      yield* items;
    } finally {
      left.resolve();
    }
  };
  return { items: flow(), left: left.promise };
}

describe("a confluence", () => {
  it("has the items of all of its streams, each stream's in order, and ends with the last of them", async () => {
    using confluence = new Confluence<string>();
    confluence.join(stream("a1", "a2").items);
    confluence.join(stream("b1").items);
    const items: string[] = [];
    for (let item = await confluence.next(); item !== undefined; item = await confluence.next()) items.push(item);
    expect(items.filter((item) => item.startsWith("a"))).toEqual(["a1", "a2"]);
    expect(items.toSorted()).toEqual(["a1", "a2", "b1"]);
  });

  it("lets go of streams whose items nobody took when its reader leaves, and of one that joins afterwards", async () => {
    const [one, other, late] = [stream("a1", "a2"), stream("b1", "b2"), stream("c1")];
    const confluence = new Confluence<string>();
    confluence.join(one.items);
    confluence.join(other.items);
    expect(await confluence.next()).toBe("a1");
    confluence[Symbol.dispose]();
    confluence.join(late.items);
    await Promise.all([one.left, other.left, late.left]);
  });

  it("throws what a stream threw once the items before it were taken", async () => {
    using confluence = new Confluence<string>();
    confluence.join(
      (async function* () {
        yield "a1";
        throw new Error("gone");
      })(),
    );
    expect(await confluence.next()).toBe("a1");
    await expect(confluence.next()).rejects.toThrow("gone");
  });
});
