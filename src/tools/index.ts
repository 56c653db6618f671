/** Tool executors: what the host runs for harnesses. */

export { OUTPUT_BYTES_LIMIT } from "./bounded-output.ts";
export * from "./function-tools.ts";
export * from "./mcp-tools.ts";
export { compileSchema, type SchemaCheck } from "./schema-check.ts";
