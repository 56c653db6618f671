/** The gVisor runtime: an unmodified program in a runsc sandbox, with captures of its memory. */

export { createGvisorRuntime } from "./gvisor-runtime.ts";
export { gvisorCaptureParts } from "./image-store.ts";
export type { GvisorRuntimeOptions } from "./options.ts";
export { whyNoGvisor } from "./probe.ts";
