/** What tests of lines to harnesses are made with, and the conformance of a line. */

export { openChildLine, openGrpcLine, openMemoryLine, type LineOptions, type OpenLine } from "./lines.ts";
export { memoryLine, memoryLineTo, type MemoryLine, type PeerEnd } from "./memory-line.ts";
export { playOnce, ProbeSink, probeStart, type Played } from "./probe-host.ts";
export { PLAYS, probeHarness } from "./probe-harness.ts";
export { wireCases, type WireCase, type WireUnderTest } from "./wire-conformance.ts";
