/** The process runtime: a child process for every incarnation. */

export type { Confinement, ProcessRuntimeOptions } from "./options.ts";
export { createProcessRuntime } from "./process-runtime.ts";
