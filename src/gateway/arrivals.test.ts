import { describe, expect, it } from "vitest";
import { Arrivals } from "./arrivals.ts";

/** What a piece costs beside its bytes. */
const PIECE = 256;

function door(bytesMax: number) {
  const arrivals = new Arrivals(bytesMax);
  const refused: string[] = [];
  const begin = (name: string) => arrivals.begin((error) => refused.push(`${name} ${error.code}`));
  return { arrivals, refused, begin };
}

describe("requests that are arriving", () => {
  it("may keep as much as is allowed, and not a byte more: the oldest makes room", () => {
    const { arrivals, refused, begin } = door(3_000);
    const [first, second] = [begin("first"), begin("second")];
    first.add(1_000 - PIECE);
    second.add(2_000 - PIECE);
    expect([arrivals.bytes, refused]).toEqual([3_000, []]);
    const third = begin("third");
    expect(refused).toEqual([]);
    third.add(0);
    expect([arrivals.bytes, refused]).toEqual([2_000 + PIECE, ["first resource_exhausted"]]);
  });

  it("are forgotten when they are whole, and when they were refused", () => {
    const { arrivals, refused, begin } = door(1_000);
    const [first, second] = [begin("first"), begin("second")];
    first.add(500);
    first.end();
    expect(arrivals.bytes).toBe(0);
    second.add(1_000);
    expect(refused).toEqual(["second resource_exhausted"]);
    for (const arrival of [first, second]) {
      arrival.add(10_000);
      arrival.end();
    }
    expect([arrivals.bytes, refused.length]).toEqual([0, 1]);
  });

  it("cost something by the piece, so that single bytes are bounded too", () => {
    const { refused, begin } = door(10 * (PIECE + 1));
    const drip = begin("drip");
    for (let byte = 0; byte < 10; byte++) drip.add(1);
    expect(refused).toEqual([]);
    drip.add(1);
    expect(refused.length).toBe(1);
  });

  it("that keep nothing make no room", () => {
    const { refused, begin } = door(1_000);
    begin("empty");
    begin("full").add(2_000);
    expect(refused).toEqual(["full resource_exhausted"]);
  });
});
