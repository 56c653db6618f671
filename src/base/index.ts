/** Errors, identifiers, assertions and ports: what every layer stands on. */

export * from "./assert.ts";
export * from "./bytes.ts";
export * from "./errors.ts";
export * from "./frozen.ts";
export * from "./ids.ts";
export * from "./ports.ts";
export * from "./until-aborted.ts";
