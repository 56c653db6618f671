import { describe, expect, it } from "vitest";
import { PartialText } from "../../controller/partial-text.ts";
import { saying } from "../../testing/agent-world.ts";
import { ToldCompletion } from "./told-completion.ts";

const piece = (kind: "text" | "reasoning", partIndex: number, text: string) => ({ kind, partIndex, text: PartialText.of(text) });

describe("a completion that is told", () => {
  it("is told once: what is new in each part, and the rest when it is whole", () => {
    const told = new ToldCompletion();
    expect(told.partial([piece("text", 0, "Hel")], 99)).toEqual([{ kind: "text", text: "Hel" }]);
    expect(told.partial([piece("text", 0, "Hel")], 99)).toEqual([]);
    const both = [piece("text", 0, "Hello"), piece("reasoning", 1, "Hm")];
    expect(told.partial(both, 99)).toEqual([{ kind: "text", text: "lo" }]);
    expect(told.partial(both, 99)).toEqual([{ kind: "reasoning", text: "Hm" }]);
    expect(told.partial(both, 99)).toEqual([]);
    const whole = saying({ text: "Hello there" });
    expect(told.whole(whole)).toEqual([{ kind: "text", text: " there" }]);
    expect(new ToldCompletion().whole(whole)).toEqual([{ kind: "text", text: "Hello there" }]);
  });

  it("tells no character in halves, and nothing that no wire carries", () => {
    const told = new ToldCompletion();
    expect(told.partial([piece("text", 0, "a\ud83d")], 99)).toEqual([{ kind: "text", text: "a" }]);
    expect(told.partial([piece("text", 0, "a\ud83d\ude00")], 99)).toEqual([{ kind: "text", text: "😀" }]);
    expect(told.partial([piece("text", 0, "a\ud83d\ude00\ude00b")], 99)).toEqual([{ kind: "text", text: "\ufffdb" }]);
    expect(told.partial([piece("text", 0, "a😀\ude00b😀😀")], 3)).toEqual([{ kind: "text", text: "😀" }]);
    expect(told.whole(saying({ text: "a😀\ufffdb😀😀!" }))).toEqual([{ kind: "text", text: "😀!" }]);
  });
});
