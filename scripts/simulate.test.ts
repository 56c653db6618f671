import { describe, expect, it } from "vitest";
import { run } from "./run.ts";

const simulate = (...args: string[]) => run(["node", "scripts/simulate.ts", ...args]);

describe("npm run simulate", () => {
  it("runs the seeds that it is asked for, and says what they came to", async () => {
    const { exitCode, output } = await simulate("--from", "3", "--seeds", "2", "--steps", "5");
    expect(exitCode).toBe(0);
    expect(output).toMatch(/^2 seeds, \d+ records, \d+ model calls, no broken promise, \d+ s$/m);
  });

  it("shows what happens in one seed, on a file as well", async () => {
    const { exitCode, output } = await simulate("--seed", "5", "--steps", "5", "--sqlite", "--trace");
    expect(exitCode).toBe(0);
    expect(output).toMatch(/^0\.000 h1 starts with version 1$/m);
    expect(output).toMatch(/^1 seed, /m);
  });

  it("refuses what it cannot read", async () => {
    expect(await simulate("--seeds", "many")).toMatchObject({
      exitCode: 2,
      output: expect.stringContaining("--seeds must be a whole number"),
    });
    expect(await simulate("--sead", "1")).toMatchObject({ exitCode: 2 });
    expect((await simulate("--help")).output).toContain("--forever");
  });
});
