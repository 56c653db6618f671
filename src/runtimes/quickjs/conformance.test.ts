import { fileURLToPath } from "node:url";
import { beforeAll, describe, it } from "vitest";
import { cryptoRandom, nodeDigest, systemClock } from "../../node/index.ts";
import { openFileBlobStore } from "../../stores/blobs/index.ts";
import { runtimeCases, type RuntimeUnderTest } from "../../testing/runtime-conformance/index.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { bundleHarness, createQuickJsRuntime } from "./index.ts";

const ports = { clock: systemClock, random: cryptoRandom, digest: nodeDigest };

let script: string;
beforeAll(async () => {
  const file = fileURLToPath(new URL("../../harnesses/counter.ts", import.meta.url));
  script = await bundleHarness({ file, exportName: "createCounterHarness" });
});

async function open(): Promise<RuntimeUnderTest> {
  const folder = new TemporaryFolder();
  const start = () =>
    createQuickJsRuntime({ script, ports, workers: 1, blobs: openFileBlobStore({ folder: folder.path, clock: systemClock }) });
  let runtime = await start();
  return {
    get runtime() {
      return runtime;
    },
    sandboxed: true,
    reopen: async () => {
      await runtime[Symbol.asyncDispose]();
      runtime = await start();
    },
    [Symbol.asyncDispose]: async () => {
      await runtime[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

describe("the quickjs runtime is a runtime", () => {
  it.each([...runtimeCases(open)])("$name", ({ run }) => run());
});
