/** The REST and SSE front door. `docs/rest.md` describes it for callers. */

export { createRestApp, type RestOptions } from "./app.ts";
export { REST_LIMITS, type RestLimits } from "./limits.ts";
export type { Problem } from "./problem.ts";
