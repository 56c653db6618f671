import { describe, expect, it } from "vitest";
import { isPlainSchema } from "./plain-schema.ts";

/** A schema in every place that holds one. */
const everywhere = (schema: unknown): unknown => ({
  type: "object",
  title: "t",
  description: "d",
  required: ["a"],
  properties: { a: { items: { anyOf: [true, { not: { if: { type: "string" }, else: schema } }] } } },
  additionalProperties: { oneOf: [{ prefixItems: [{ enum: [1, { $ref: "only a value" }] }] }, { const: { pattern: "only a value" } }] },
});

describe("a plain schema", () => {
  it("has types, bounds, values and alternatives, at any place", () => {
    expect(isPlainSchema(everywhere({ minLength: 1, maximum: 2, items: [{ format: "uri" }, true], allOf: [{ multipleOf: 2 }] }))).toBe(
      true,
    );
    expect([isPlainSchema({}), isPlainSchema(true)]).toEqual([true, true]);
  });

  it.each([
    { pattern: "a" },
    { patternProperties: { a: {} } },
    { propertyNames: { maxLength: 1 } },
    { uniqueItems: true },
    { contains: {} },
    { $ref: "#" },
    { $dynamicRef: "#" },
    { $recursiveRef: "#" },
    { $defs: { a: {} } },
    { definitions: { a: {} } },
    { $id: "x" },
    { dependentSchemas: { a: {} } },
    { dependencies: { a: {} } },
    { unevaluatedProperties: false },
    { "a keyword that nobody knows": 1 },
  ])("has nothing like %j, wherever it stands", (schema) => {
    expect(isPlainSchema(schema)).toBe(false);
    expect(isPlainSchema(everywhere(schema))).toBe(false);
  });

  it("is a schema, and is not nested without end", () => {
    for (const none of [null, 1, "a", [], { items: 1 }, { allOf: {} }, { properties: [1] }, { properties: null }]) {
      expect(isPlainSchema(none)).toBe(false);
    }
    let deep: Record<string, unknown> = {};
    for (let depth = 0; depth < 64; depth += 1) deep = { items: deep };
    expect([isPlainSchema(deep), isPlainSchema({ items: deep })]).toEqual([true, false]);
    const circle: Record<string, unknown> = {};
    circle["items"] = circle;
    expect(isPlainSchema(circle)).toBe(false);
  });
});
