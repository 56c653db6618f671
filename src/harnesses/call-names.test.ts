import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CallNames } from "./call-names.ts";

const namesOf = (ids: readonly string[], names = new CallNames()): string[] => ids.map((id) => names.nameOf(id));

describe("the names of a session's calls", () => {
  it("are the models' ids, with a number where an id was given before, and a word where there is none", () => {
    expect(namesOf(["a", "b", "a", "a", "", ""])).toEqual(["a", "b", "a~2", "a~3", "call", "call~2"]);
  });

  it("pass over what a model has called so itself", () => {
    expect(namesOf(["a~2", "a", "a", "a~2", "call", ""])).toEqual(["a~2", "a", "a~3", "a~2~2", "call", "call~2"]);
  });

  it("are unique, and the same wherever they were copied", () => {
    const ids = fc.array(fc.constantFrom("a", "b", "", "a~2", "a~2~2", "call"), { maxLength: 60 });
    fc.assert(
      fc.property(ids, fc.array(fc.boolean(), { maxLength: 60 }), (given, copies) => {
        const whole = namesOf(given);
        let names = new CallNames();
        const cut = given.map((id, index) => {
          if (copies[index] === true) names = names.copy();
          return names.nameOf(id);
        });
        expect(cut).toEqual(whole);
        expect(new Set(whole).size).toBe(whole.length);
      }),
      { seed: 11, numRuns: 2_000 },
    );
  });

  it("go on apart in a copy and in what it was copied from", () => {
    const names = new CallNames();
    names.nameOf("a");
    const copy = names.copy();
    expect([names.nameOf("a"), copy.nameOf("a"), names.nameOf("a"), copy.nameOf("b")]).toEqual(["a~2", "a~2", "a~3", "b"]);
  });
});
