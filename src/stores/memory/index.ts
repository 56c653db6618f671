/** The journal in memory. */

export * from "./store.ts";
