import { describe, expect, it } from "vitest";
import { compileSchema } from "./schema-check.ts";

/** Schemas of anybody, applied to what anybody made. */

const timed = <T>(work: () => T): { readonly value: T; readonly ms: number } => {
  const startMs = performance.now();
  const value = work();
  return { value, ms: performance.now() - startMs };
};

/** References that double at each of so many steps. */
function doubling(steps: number): Record<string, unknown> {
  const next = (step: number) => ({ $ref: `#/$defs/s${step + 1}` });
  const defs = Array.from({ length: steps }, (_, step) => [`s${step}`, { allOf: [next(step), next(step)] }] as const);
  return { $defs: { ...Object.fromEntries(defs), [`s${steps}`]: { type: "object" } }, $ref: "#/$defs/s0" };
}

describe("a check by a schema", () => {
  it("says what is wrong, by its place, and repeats no value", () => {
    const check = compileSchema({ type: "object", properties: { n: { type: "integer" } }, additionalProperties: false }, "schema");
    expect(check({ n: 1 })).toBeUndefined();
    expect(check({ n: "secret", x: 1 })).toBe(
      "do not fit the tool's schema: they must NOT have additional properties (x); n must be integer",
    );
  });

  it.each([
    ["a pattern that backtracks", { properties: { a: { pattern: "^(a+)+$" } } }, { a: `${"a".repeat(60)}!` }],
    ["references that double", doubling(40), {}],
    [
      "many alternatives of many items",
      { items: { allOf: Array.from({ length: 2_000 }, () => ({ type: "string" })) } },
      Array(100_000).fill(1),
    ],
  ])("is given up when it takes too long: %s", (_, schema, value) => {
    const check = compileSchema(schema, "schema");
    const done = timed(() => check(value));
    expect(done.value).toBe("do not fit the tool's schema: it cannot be applied within 100 ms");
    expect(done.ms).toBeLessThan(5_000);
    // What was given up leaves the next check as it is.
    expect(compileSchema({ type: "object" }, "schema")({})).toBeUndefined();
  });

  it.each([
    ["leads in a circle", { $ref: "#" }],
    ["has a pattern that is too large", { properties: { a: { pattern: "(?:(?:a{1,1000}){1,1000}){1,1000}b" } } }],
  ])("that %s fits nothing, and throws nothing", (_, schema) => {
    const fault = compileSchema(schema, "schema")({ a: "aaa" });
    expect(fault).toMatch(/^do not fit the tool's schema: /);
  });
});

describe("compiling a schema", () => {
  it.each([
    ["a type that is none", { type: "thing" }],
    ["a pattern that is none", { properties: { a: { pattern: "(" } } }],
    ["a reference to elsewhere", { $ref: "https://example.org/schema" }],
    ["keywords of the wrong form", { required: "a" }],
    ["the wrong form of an old draft", { $schema: "http://json-schema.org/draft-07/schema#", required: [1] }],
  ])("refuses %s, by its field", (_, schema) => {
    expect(() => compileSchema(schema, "tools[0].parameters_schema")).toThrow("tools[0].parameters_schema: must be a JSON Schema");
  });

  it("takes drafts, ids that others have, and the schema of schemas", () => {
    const old = { $schema: "http://json-schema.org/draft-07/schema#", $id: "same", items: [{ type: "string" }] };
    for (let again = 0; again < 2; again++) expect(compileSchema(old, "schema")([1])).toContain("0 must be string");
    expect(compileSchema({ $id: "same", prefixItems: [{ type: "string" }] }, "schema")([1])).toContain("0 must be string");
    expect(
      compileSchema({ properties: { s: { $ref: "https://json-schema.org/draft/2020-12/schema" } } }, "schema")({ s: { type: 1 } }),
    ).toContain("s.type");
  });

  it("takes no more than a second", () => {
    const properties = Object.fromEntries(
      Array.from({ length: 60_000 }, (_, index) => [`p${index}`, { type: "string", pattern: `^a${index}` }]),
    );
    const done = timed(() => {
      try {
        compileSchema({ properties }, "schema");
        return "compiled";
      } catch (error) {
        return error instanceof Error ? error.message : "";
      }
    });
    expect(done.value).toBe("schema: must take less than 1000 ms to compile");
    expect(done.ms).toBeLessThan(10_000);
  });

  it("of many tools takes little: what all have in common is made once", () => {
    compileSchema({}, "schema");
    const { ms } = timed(() => {
      for (let index = 0; index < 256; index++)
        compileSchema({ type: "object", properties: { [`p${index}`]: { type: "string" } } }, "schema");
    });
    // It took 15 s when each schema had a schema of schemas of its own.
    expect(ms).toBeLessThan(3_000);
  });
});
