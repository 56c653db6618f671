import { beforeAll, afterAll, describe, it } from "vitest";
import { cryptoRandom, systemClock } from "../../node/index.ts";
import { createMemoryBlobStore } from "../../stores/blobs/index.ts";
import { bundleProgram, type BundledProgram } from "../../testing/harness-programs/bundle.ts";
import { runtimeCases, type RuntimeUnderTest } from "../../testing/runtime-conformance/index.ts";
import { createGvisorRuntime, whyNoGvisor } from "./index.ts";

const ports = { clock: systemClock, random: cryptoRandom };
const why = await whyNoGvisor({ ports, blobs: createMemoryBlobStore(ports) });
if (why !== undefined) process.stderr.write(`skipped: the gvisor runtime's conformance, since ${why}\n`);

let bundle: BundledProgram;

beforeAll(async () => {
  bundle = await bundleProgram("program.ts");
});

afterAll(() => bundle[Symbol.dispose]());

async function open(): Promise<RuntimeUnderTest> {
  const blobs = createMemoryBlobStore(ports);
  const start = () => createGvisorRuntime({ command: process.execPath, args: [bundle.file], cwd: bundle.folder, blobs, ports });
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
    [Symbol.asyncDispose]: () => runtime[Symbol.asyncDispose](),
  };
}

describe.runIf(why === undefined)("the gvisor runtime", () => {
  it.concurrent.each(runtimeCases(open))("$name", ({ run }) => run());
});
