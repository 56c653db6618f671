/** The journal: its records, its interface, what is projected from it and how it is verified. */

export * from "./limits.ts";
export * from "./projection.ts";
export * from "./record.ts";
export * from "./seal.ts";
export * from "./session.ts";
export * from "./store.ts";
