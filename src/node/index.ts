/** The ports of `base/ports.ts` on Node, and what adapters share of it. */

export * from "./clock.ts";
export * from "./digest.ts";
export * from "./hidden-paths.ts";
export * from "./log.ts";
export * from "./make-folder.ts";
export * from "./random.ts";
export * from "./signer.ts";
export * from "./start-gate.ts";
export * from "./tail.ts";
