/** Whether a harness may run on a runtime: what it needs against what there is. Pure. */

import { HoldfastError } from "../base/errors.ts";
import { Resumability, type HarnessDescriptor, type HarnessEntry } from "../spi/index.ts";

/** Whether a harness can be placed, and which capability is missing where it cannot. */
export type Placement =
  | { readonly kind: "placed" }
  | { readonly kind: "refused"; readonly missing: "memory_snapshot" | "gpu_state"; readonly reason: string };

/**
 * Matches a harness's needs with a runtime's capabilities. A need that is not said is the least one: no memory, no accelerator. Nothing
 * is written for a harness that cannot be placed.
 */
export function canPlace(harness: HarnessDescriptor, runtime: HarnessEntry["runtime"]): Placement {
  const needs = harness.capabilities;
  if (needs?.resumability === Resumability.REQUIRES_MEMORY_SNAPSHOT && !runtime.capabilities.memorySnapshot) {
    return refused(runtime, "memory_snapshot", "it keeps state in memory, which the runtime does not capture");
  }
  if (needs?.requiresGpu === true && !runtime.capabilities.gpuState) {
    return refused(runtime, "gpu_state", "it needs an accelerator, whose state the runtime does not keep");
  }
  return { kind: "placed" };
}

/** Whether a harness keeps its state in memory, so that a turn needs the memory of the one before. */
export function keepsMemory(harness: HarnessDescriptor): boolean {
  return harness.capabilities?.resumability === Resumability.REQUIRES_MEMORY_SNAPSHOT;
}

/** The descriptor, if it can be placed. Throws FAILED_PRECONDITION that names the missing capability. */
export function placedDescriptor(harness: HarnessDescriptor, runtime: HarnessEntry["runtime"]): HarnessDescriptor {
  const placement = canPlace(harness, runtime);
  if (placement.kind === "refused") throw new HoldfastError("failed_precondition", `harness: ${placement.reason}`, { field: "harness" });
  return harness;
}

function refused(runtime: HarnessEntry["runtime"], missing: "memory_snapshot" | "gpu_state", why: string): Placement {
  const reason = `${why} (runtime ${runtime.name} has no ${missing}); serve it on one that has`;
  return { kind: "refused", missing, reason };
}
