/** Placement: which harness serves a session, and where. */

export * from "./catalog.ts";
