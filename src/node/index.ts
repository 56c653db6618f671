/** The ports of `base/ports.ts` on Node. */

export * from "./clock.ts";
export * from "./digest.ts";
export * from "./log.ts";
export * from "./random.ts";
export * from "./signer.ts";
