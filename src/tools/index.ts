/** Tool executors: what the host runs for harnesses. */

export * from "./function-tools.ts";
export * from "./mcp-tools.ts";
export { compileSchema, type SchemaCheck } from "./schema-check.ts";
