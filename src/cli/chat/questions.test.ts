import { describe, expect, it } from "vitest";
import { ALONE_MS, ARM_MS, Questions, type Answer, type Question } from "./questions.ts";

const question = (callId: string, canAlways = true): Question => ({
  callId,
  by: "chat",
  tool: "run",
  summary: "run x",
  details: "x",
  canAlways,
});

/** Questions of which the first is asked about the call `c` and can have been read. */
function armed(canAlways = true): Questions {
  const questions = new Questions();
  questions.ask(question("c", canAlways));
  questions.quiet("c");
  return questions;
}

/** What keys answer that come one right after the other. */
function typed(questions: Questions, keys: Iterable<string | undefined>): Answer | undefined {
  for (const key of keys) questions.key(key);
  return questions.quiet("c");
}

describe("a key at a question", () => {
  it("answers it when it comes alone", () => {
    const answers = Object.entries({ y: "yes", n: "no", a: "always", d: "details", Y: "yes" });
    for (const [key, answer] of answers) {
      const questions = armed();
      expect([questions.key(key), questions.quiet("c")]).toEqual([ALONE_MS, answer]);
    }
  });

  it("answers nothing as a part of a word", () => {
    for (const word of ["break", "abba", "yes", "no", "dad", "aa", "y!", "bra"]) {
      expect([word, typed(armed(), word)]).toEqual([word, undefined]);
    }
  });

  it("answers nothing when another comes right after it, also one without a letter", () => {
    expect(typed(armed(), ["a", undefined])).toBeUndefined();
    expect(typed(armed(), [undefined, "a"])).toBeUndefined();
  });

  it("that is no answer makes the question wait again, and so does every key until it is quiet", () => {
    const questions = armed();
    for (const key of "brea") expect([questions.key(key), questions.isArmed]).toEqual([ARM_MS, false]);
    expect([questions.quiet("c"), questions.isArmed]).toEqual([undefined, true]);
    expect(typed(questions, "y")).toBe("yes");
  });

  it("that would allow a tool for the session is no answer where that cannot be", () => {
    const questions = armed(false);
    expect([questions.key("a"), questions.quiet("c")]).toEqual([ARM_MS, undefined]);
  });

  it("counts only for the question that it was pressed at", () => {
    const questions = armed();
    questions.ask(question("d"));
    questions.key("y");
    expect(questions.quiet("d")).toBeUndefined();
    questions.drop("c");
    expect([questions.isArmed, questions.quiet("c"), questions.quiet("d")]).toEqual([false, undefined, undefined]);
  });

  it("asks for nothing where no question is", () => {
    expect(new Questions().key("y")).toBeUndefined();
  });
});
