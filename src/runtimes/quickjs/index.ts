/** The `quickjs` runtime: harnesses in WebAssembly VMs, with captures of their memory. */

export { bundleHarness, type BundleOptions } from "./bundle.ts";
export { QUICKJS_LIMITS, quickJsLimits, type QuickJsLimits } from "./limits.ts";
export type { QuickJsRuntimeOptions } from "./options.ts";
export { createQuickJsRuntime } from "./runtime.ts";
export { quickJsCaptureParts } from "./snapshot-format.ts";
