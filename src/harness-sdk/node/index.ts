/** `holdfast/harness` under Node: what an agent's code is written with, and how its program is served. */

export * from "../exports.ts";
export { serveHarness } from "./serve.ts";
export { LISTEN_VARIABLE } from "./stdio.ts";
