/** Placement: which harness serves a session, and where. */

export * from "./can-place.ts";
export * from "./catalog.ts";
