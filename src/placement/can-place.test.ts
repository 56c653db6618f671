import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { RuntimeCapabilitiesSchema } from "../gen/agentsessions/v1/session_pb.ts";
import { describeHarness, Resumability, type Capabilities, type RuntimeCapabilities } from "../spi/index.ts";
import { canPlace, placedDescriptor } from "./can-place.ts";

const harness = (capabilities: Partial<Omit<Capabilities, "$typeName" | "$unknown">>) =>
  describeHarness({ id: "h", version: "1", capabilities });
const runtime = (capabilities: Partial<Omit<RuntimeCapabilities, "$typeName" | "$unknown">> = {}) => ({
  name: "process",
  capabilities: create(RuntimeCapabilitiesSchema, capabilities),
});

describe("placing a harness", () => {
  it.each([
    ["keeps nothing in memory", { resumability: Resumability.STATELESS_REPLAY }, {}],
    ["does not say", {}, {}],
    ["keeps memory, where memory is captured", { resumability: Resumability.REQUIRES_MEMORY_SNAPSHOT }, { memorySnapshot: true }],
    ["needs an accelerator, where its state is kept", { requiresGpu: true }, { gpuState: true }],
  ])("succeeds for one that %s", (_what, needs, has) => {
    expect(canPlace(harness(needs), runtime(has))).toEqual({ kind: "placed" });
  });

  it.each([
    ["memory_snapshot", { resumability: Resumability.REQUIRES_MEMORY_SNAPSHOT }, { cowFork: true, gpuState: true }],
    ["gpu_state", { requiresGpu: true }, { memorySnapshot: true }],
  ] as const)("is refused for want of %s, which the reason names", (missing, needs, has) => {
    const placement = canPlace(harness(needs), runtime(has));
    expect(placement).toMatchObject({ kind: "refused", missing });
    expect(placement.kind === "refused" && placement.reason).toContain(`runtime process has no ${missing}`);
    expect(() => placedDescriptor(harness(needs), runtime(has))).toThrow(expect.objectContaining({ code: "failed_precondition" }));
  });
});
