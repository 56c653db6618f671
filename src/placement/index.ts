/** Placement: which harness serves a session, and where. */

export * from "./can-place.ts";
export * from "./catalog.ts";
export * from "./residence.ts";
export * from "./registry.ts";
export * from "./registry-spec.ts";
export * from "./registry-catalog.ts";
