import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DeltaTail, type DeltaKind, type RetractedChars } from "./delta-tail.ts";

/** What a consumer has, which takes each step in. */
class Transcript {
  readonly tail = new DeltaTail();
  readonly has: Record<DeltaKind, string> = { text: "", thinking: "" };

  take(kind: DeltaKind, content: string): void {
    const { retracted, fresh } = this.tail.take(kind, content);
    this.retract(retracted);
    this.has[kind] += fresh;
  }

  retract(chars: RetractedChars | undefined): void {
    for (const kind of ["text", "thinking"] as const)
      this.has[kind] = this.has[kind].slice(0, this.has[kind].length - (chars?.[kind] ?? 0));
  }
}

describe("the tail of deltas", () => {
  it("passes over what is told again, in whatever pieces", () => {
    const { tail } = new Transcript();
    tail.take("text", "one two");
    tail.rewind();
    expect(tail.take("text", "one")).toEqual({ retracted: undefined, fresh: "" });
    expect(tail.take("text", " two three")).toEqual({ retracted: undefined, fresh: " three" });
  });

  it("takes back what is told differently from where it differs", () => {
    const { tail } = new Transcript();
    tail.take("text", "the answer is 41");
    tail.rewind();
    expect(tail.take("text", "the answer is 42")).toEqual({ retracted: { text: 1, thinking: 0 }, fresh: "2" });
  });

  it("takes back what is not told again", () => {
    const { tail } = new Transcript();
    tail.take("text", "ab");
    tail.take("thinking", "xyz");
    tail.rewind();
    tail.take("thinking", "x");
    expect(tail.settle()).toEqual({ text: 2, thinking: 2 });
    expect(tail.settle()).toBeUndefined();
  });

  it("forgets what a cursor covers", () => {
    const { tail } = new Transcript();
    tail.take("text", "old");
    expect(tail.cover()).toBeUndefined();
    tail.rewind();
    expect(tail.take("text", "new")).toEqual({ retracted: undefined, fresh: "new" });
  });

  it("does not take a character apart", () => {
    const { tail } = new Transcript();
    tail.take("text", "\u{1f600}");
    tail.rewind();
    expect(tail.take("text", "\u{1f601}")).toEqual({ retracted: { text: 2, thinking: 0 }, fresh: "\u{1f601}" });
  });

  it("gives its consumer what an uncut stream tells, cut wherever and told again in other pieces", () => {
    const deltas = fc.array(fc.tuple(fc.constantFrom<DeltaKind>("text", "thinking"), fc.string({ maxLength: 4 })), { maxLength: 12 });
    const before = fc.array(fc.tuple(deltas, fc.nat({ max: 12 })), { maxLength: 3 });
    fc.assert(
      fc.property(before, deltas, (attempts, last) => {
        const transcript = new Transcript();
        for (const [told, cut] of attempts) {
          for (const [kind, content] of told.slice(0, cut)) transcript.take(kind, content);
          transcript.tail.rewind();
        }
        for (const [kind, content] of last) transcript.take(kind, content);
        transcript.retract(transcript.tail.cover());
        const whole = (kind: DeltaKind): string => last.map(([of, content]) => (of === kind ? content : "")).join("");
        expect(transcript.has).toEqual({ text: whole("text"), thinking: whole("thinking") });
      }),
    );
  });
});
