/**
 * Which schemas are checked in a time that their size and the value's say: those without patterns, references, and what compares items with
 * one another. Nearly every tool's is one, and nobody need watch over its check.
 */

/** Keywords that hold no schema. What they cost is at most their own length for each value that they are applied to. */
const LEAVES = wordsOf(`
  type enum const required format
  minimum maximum exclusiveMinimum exclusiveMaximum multipleOf
  minLength maxLength minItems maxItems minProperties maxProperties
  title description default examples deprecated readOnly writeOnly $comment
`);
/** Keywords that hold one schema; `items` may hold a list. */
const HOLDERS = wordsOf("items additionalItems additionalProperties not if then else");
/** Keywords that hold a list of schemas. */
const LISTS = wordsOf("allOf anyOf oneOf prefixItems");

const DEPTH_MAX = 64;

/** Whether a schema is one of these. What is not known counts against it. */
export function isPlainSchema(schema: unknown, depth = 0): boolean {
  if (typeof schema === "boolean") return true;
  if (typeof schema !== "object" || schema === null || Array.isArray(schema) || depth > DEPTH_MAX) return false;
  return Object.entries(schema).every(([keyword, value]: [string, unknown]) => {
    if (LEAVES.has(keyword)) return true;
    if (HOLDERS.has(keyword)) return Array.isArray(value) ? arePlain(value, depth) : isPlainSchema(value, depth + 1);
    if (LISTS.has(keyword)) return Array.isArray(value) && arePlain(value, depth);
    if (keyword !== "properties" || typeof value !== "object" || value === null) return false;
    return arePlain(Object.values(value), depth);
  });
}

function arePlain(schemas: readonly unknown[], depth: number): boolean {
  return schemas.every((schema) => isPlainSchema(schema, depth + 1));
}

function wordsOf(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/));
}
