/**
 * The wire between a host and a harness, as pure state machines over a line. A bundle for a sandbox imports `harness-end.ts`
 * alone, which needs no protobuf library.
 */

export { encodeControllerFrame, encodeHostFrame } from "./encode-frame.ts";
export { HarnessEnd, type HarnessEndOptions } from "./harness-end.ts";
export { HOST_FRAME_BYTES_MAX, WIRE_LIMITS, type WireLimits } from "./limits.ts";
export * from "./line.ts";
export { createLineHarness, type LineHarness, type LineHarnessOptions } from "./line-harness.ts";
export { lineResumptionOf, type LineResumption } from "./resumption.ts";
export { noAnswer } from "./protocol.ts";
export { HarnessThrewError, thrownErrorOf, wireErrorOf, type WireError } from "./status.ts";
