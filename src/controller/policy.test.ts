import { describe, expect, it } from "vitest";
import { toolCall } from "../testing/index.ts";
import { isGlobOf, ruleFor, type ArgumentTest, type PolicyRule } from "./policy.ts";

const rule = (name: string, more: Partial<PolicyRule>): PolicyRule => ({ name, tool: "*", args: {}, do: "deny", reason: "", ...more });

/** Whether a rule that does `word` speaks of a call with this one argument. */
function speaks(word: PolicyRule["do"], test: ArgumentTest, value: unknown): boolean {
  const call = toolCall("t", "1", { args: { a: value } as never });
  return ruleFor([rule("r", { do: word, args: { a: test } })], call) !== undefined;
}

describe("the rule of a call", () => {
  it("is the first that matches by tool and by every argument; none where none does", () => {
    const rules = [
      rule("one", { tool: "fs__*", args: { path: { prefix: "/tmp/" }, mode: { equals: "w" } } }),
      rule("two", { tool: "fs__*" }),
      rule("three", { tool: "pay" }),
    ];
    const name = (tool: string, args: Record<string, string>) => ruleFor(rules, toolCall(tool, "1", { args }))?.name;
    expect(name("fs__write", { path: "/tmp/x", mode: "w" })).toBe("one");
    expect(name("fs__write", { path: "/tmp/x", mode: "r" })).toBe("two");
    expect(name("fs__write", { path: "/tmp/x" })).toBe("two");
    expect(name("pay", {})).toBe("three");
    expect(name("payment", {})).toBeUndefined();
    expect(name("Fs__write", {})).toBeUndefined();
  });

  it("finds an argument by its name or at a path, never on a prototype", () => {
    const args = { "a/b": 1, deep: { list: [{ x: "y" }], to: "here" } };
    const found = (path: string, test: ArgumentTest) =>
      ruleFor([rule("r", { args: { [path]: test } })], toolCall("t", "1", { args })) !== undefined;
    expect(found("a/b", { equals: 1 })).toBe(true);
    expect(found("/deep/to", { equals: "here" })).toBe(true);
    expect(found("/deep/list/0/x", { equals: "y" })).toBe(true);
    expect(found("/deep/none", { equals: "here" })).toBe(false);
    expect(found("toString", { glob: "*" })).toBe(false);
    expect(ruleFor([rule("r", { args: { a: { equals: 1 } } })], toolCall("t", "1"))).toBeUndefined();
  });

  it("compares values in full and without turning one kind into another", () => {
    expect(speaks("deny", { equals: 1 }, 1)).toBe(true);
    expect(speaks("deny", { equals: 1 }, "1")).toBe(false);
    expect(speaks("deny", { equals: null }, null)).toBe(true);
    expect(speaks("deny", { prefix: "1" }, 1)).toBe(false);
    expect(speaks("deny", { prefix: "a", glob: "*z" }, "abz")).toBe(true);
    expect(speaks("deny", { prefix: "a", glob: "*z" }, "aby")).toBe(false);
  });

  it("lets every element of a list count where it allows, and any where it does not", () => {
    const test = { prefix: "/tmp/" };
    expect(speaks("allow", test, ["/tmp/a", "/tmp/b"])).toBe(true);
    expect(speaks("allow", test, ["/tmp/a", "/etc/b"])).toBe(false);
    expect(speaks("allow", test, [])).toBe(false);
    expect(speaks("deny", test, ["/tmp/a", "/etc/b"])).toBe(true);
    expect(speaks("ask", test, ["/etc/b"])).toBe(false);
  });

  it.each([
    ["/data", "/data", true],
    ["/data", "/data/x/../y", true],
    ["/data", "//data//./x", true],
    ["/data/", "/data/x", true],
    ["/data", "/data/../etc/passwd", false],
    ["/data", "/database", false],
    ["/data", "/../data/x", true],
    ["/data", "data/x", false],
    ["src", "src/a.ts", true],
    ["src", "./src/a.ts", true],
    ["src", "src/../b", false],
    ["/", "/etc", true],
  ])("takes %j to hold %j or not: %j", (folder, path, holds) => {
    for (const word of ["allow", "deny", "ask"] as const) expect(speaks(word, { under: folder }, path)).toBe(holds);
  });

  it.each(["../x", "src/../../x", "/data\\..\\..\\etc", "/data/x\0"])(
    "never allows the path %j, which leads nobody knows where, and denies it",
    (path) => {
      expect(speaks("allow", { under: "/data" }, path)).toBe(false);
      expect(speaks("allow", { under: "src" }, path)).toBe(false);
      expect(speaks("deny", { under: "/data" }, path)).toBe(true);
    },
  );
});

describe("a glob", () => {
  it.each([
    ["", "", true],
    ["a", "a", true],
    ["a", "ab", false],
    ["*", "", true],
    ["a*a", "a", false],
    ["a*a", "aa", true],
    ["a*b*c", "a-b-b-c", true],
    ["a*b*c", "acb", false],
    ["*ab*ab", "ab", false],
    ["*ab*ab", "abab", true],
    ["a.c", "abc", false],
    ["**", "x/y", true],
  ])("%j of %j is %j", (glob, text, is) => expect(isGlobOf(glob, text)).toBe(is));

  it("takes its time by the text, whatever its stars", () => {
    const text = "a".repeat(1_000_000);
    expect(isGlobOf(`${"a*".repeat(100)}b*a`, text)).toBe(false);
  });
});
