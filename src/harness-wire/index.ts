/** The wire between a host and a harness, as pure state machines over a line. */

export * from "./line.ts";
