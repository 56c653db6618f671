import { describe, expect, it } from "vitest";
import { HoldfastError } from "../base/index.ts";
import { harnessCatalog, testHarness } from "../testing/index.ts";
import { refuseUnknownAgents, spawnConfig } from "./spawn-config.ts";

const read = (value: unknown) => spawnConfig({ at: "spawn", value });

describe("what a config file says of spawning", () => {
  it("is which agents, and limits with defaults", () => {
    expect(spawnConfig(undefined)).toBeUndefined();
    expect(read({ agents: ["scout"] })).toEqual({
      agents: ["scout"],
      limits: { depthMax: 3, childrenMax: 16, promptBytesMax: 65_536, answerBytesMax: 65_536, timeoutMs: undefined },
    });
    const limits = { depthMax: 16, childrenMax: 1_000, promptBytesMax: 1_048_576, answerBytesMax: 393_216, timeoutMs: 2_073_600_000 };
    expect(read({ agents: ["scout", "clerk"], ...limits })).toEqual({ agents: ["scout", "clerk"], limits });
  });

  it.each([
    [{}, "spawn.agents: must be a list"],
    [{ agents: [] }, "spawn.agents: must name one harness at least"],
    [{ agents: ["a", "a"] }, "spawn.agents: must name each harness once"],
    [{ agents: ["Not A Name"] }, "spawn.agents[0]"],
    [{ agents: [5] }, "spawn.agents[0]: must be a text"],
    [{ agents: Array.from({ length: 65 }, (_, index) => `a${index}`) }, "spawn.agents: must have at most 64"],
    [{ agents: ["a"], depthMax: 17 }, "spawn.depthMax: must be a whole number from 1 to 16"],
    [{ agents: ["a"], depthMax: 0 }, "spawn.depthMax"],
    [{ agents: ["a"], childrenMax: 1_001 }, "spawn.childrenMax"],
    [{ agents: ["a"], promptBytesMax: 1_048_577 }, "spawn.promptBytesMax"],
    [{ agents: ["a"], answerBytesMax: 393_217 }, "spawn.answerBytesMax"],
    [{ agents: ["a"], timeoutMs: 2_073_600_001 }, "spawn.timeoutMs"],
    [{ agents: ["a"], depth: 1 }, "spawn.depth: is no key here"],
  ])("is refused where it is %j", (value, message) => {
    expect(() => read(value)).toThrow(HoldfastError);
    expect(() => read(value)).toThrow(message);
  });

  it("is refused where the host has no such harness", () => {
    const catalog = harnessCatalog({ scout: testHarness(async () => undefined) });
    const config = (agents: readonly string[]) => read({ agents })!;
    expect(() => refuseUnknownAgents(catalog, config(["scout"]))).not.toThrow();
    expect(() => refuseUnknownAgents(catalog, config(["scout", "clerk"]))).toThrow("spawn.agents[1]: must name a harness");
  });
});
