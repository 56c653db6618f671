/** The controller: the single writer that drives turns. */

export * from "./contract.ts";
export * from "./limits.ts";
export { createController } from "./controller.ts";
