/** The journal: its records, its interface, what is projected from it, and what every store of it is made of. */

export * from "./admission.ts";
export * from "./adoption.ts";
export * from "./cancel.ts";
export * from "./draft.ts";
export * from "./draft-work.ts";
export * from "./group-commit.ts";
export * from "./limits.ts";
export * from "./lineage.ts";
export * from "./listing.ts";
export * from "./pace.ts";
export * from "./paging.ts";
export * from "./projection.ts";
export * from "./projection-at.ts";
export * from "./receipt.ts";
export * from "./reclaim.ts";
export * from "./record.ts";
export * from "./seal.ts";
export * from "./session.ts";
export * from "./session-state.ts";
export * from "./state-cache.ts";
export * from "./store.ts";
export * from "./verify.ts";
export * from "./watch-hub.ts";
