import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, describe, it } from "vitest";
import { cryptoRandom, systemClock } from "../../node/index.ts";
import { bundleProgram, type BundledProgram } from "../../testing/harness-programs/bundle.ts";
import { runtimeCases, type OpenRuntimeUnderTest } from "../../testing/runtime-conformance/index.ts";
import { createProcessRuntime, type ProcessRuntimeOptions } from "./index.ts";

let bundle: BundledProgram;

beforeAll(async () => {
  bundle = await bundleProgram("program.ts");
});

afterAll(() => bundle[Symbol.dispose]());

const openWith =
  (options: Partial<ProcessRuntimeOptions>): OpenRuntimeUnderTest =>
  async () => {
    const ports = { clock: systemClock, random: cryptoRandom };
    const runtime = createProcessRuntime({ command: process.execPath, args: [bundle.file], cwd: bundle.folder, ports, ...options });
    return { runtime, sandboxed: true, [Symbol.asyncDispose]: () => runtime[Symbol.asyncDispose]() };
  };

const IS_CONFINABLE = spawnSync("bwrap", ["--unshare-all", "--ro-bind", "/", "/", "true"]).status === 0;

describe.each(["stdio", "unix"] as const)("the process runtime over %s", (line) => {
  it.each(runtimeCases(openWith({ line })))("$name", ({ run }) => run());
});

describe.runIf(IS_CONFINABLE)("the process runtime, confined", () => {
  it.each(runtimeCases(openWith({ confine: true })))("$name", ({ run }) => run());
});
