/**
 * The conformance suite of `agentsessions.v1`: the promises of the contract as cases that anybody can run against any server of it, by
 * address or in process, through its public API alone.
 *
 * @example
 * ```ts
 * import { createNodeTransport } from "holdfast/client/node";
 * import { runConformance } from "holdfast/testing";
 *
 * const report = await runConformance({ connect: () => createNodeTransport({ address: "http://127.0.0.1:8080" }) });
 * for (const result of report.results) if (result.outcome === "failed") console.log(result.id, result.reason);
 * ```
 */

export { CONFORMANCE_GROUPS, CONTRACT_CASES } from "./cases.ts";
export {
  BrokenPromise,
  type Abilities,
  type CaseResult,
  type ConformanceOptions,
  type ConformanceReport,
  type ContractCase,
  type Need,
} from "./contract.ts";
export { CONFORMANCE_ABILITIES, conformanceHarnesses, conformanceTools } from "./harnesses.ts";
export { contractTests, runConformance } from "./run.ts";
