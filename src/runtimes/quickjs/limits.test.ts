import { describe, expect, it } from "vitest";
import { QUICKJS_LIMITS, quickJsLimits } from "./limits.ts";

describe("the bounds of a VM", () => {
  it("have defaults, and are taken as given", () => {
    expect(quickJsLimits()).toEqual(QUICKJS_LIMITS);
    expect(quickJsLimits({ sliceCpuMs: 5 })).toMatchObject({ sliceCpuMs: 5, turnCpuMs: QUICKJS_LIMITS.turnCpuMs });
  });

  it.each([
    ["memoryBytes", 2 ** 20 - 1, 2 ** 20],
    ["stackBytes", 512 * 2 ** 10 + 1, 512 * 2 ** 10],
    ["sliceCpuMs", 0, 1],
    ["turnCpuMs", 3_600_001, 3_600_000],
    ["frameChars", 1023, 1024],
    ["frameDepth", 15, 16],
    ["framesOutstanding", 1, 2],
    ["timers", -1, 0],
    ["consoleChars", 0.5, 0],
  ])("%s may not be %d and may be %d", (name, wrong, right) => {
    expect(() => quickJsLimits({ [name]: wrong })).toThrow(expect.objectContaining({ code: "invalid_argument", field: `limits.${name}` }));
    expect(quickJsLimits({ [name]: right })).toMatchObject({ [name]: right });
  });

  it("leave room for one frame", () => {
    const limits = { frameChars: 4096, frameCharsOutstanding: 4095 };
    expect(() => quickJsLimits(limits)).toThrow(expect.objectContaining({ field: "limits.frameCharsOutstanding" }));
  });
});
