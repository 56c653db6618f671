import { afterAll, beforeAll, describe, it } from "vitest";
import { cryptoRandom, systemClock } from "../../node/index.ts";
import { bundleProgram, type BundledProgram } from "../../testing/harness-programs/bundle.ts";
import { startPeer } from "../../testing/harness-programs/peer.ts";
import { runtimeCases, type OpenRuntimeUnderTest } from "../../testing/runtime-conformance/index.ts";
import { createRemoteRuntime } from "./index.ts";

let bundle: BundledProgram;

beforeAll(async () => {
  bundle = await bundleProgram("program.ts");
});

afterAll(() => bundle[Symbol.dispose]());

const openTo =
  (how: "serve" | "contract"): OpenRuntimeUnderTest =>
  async () => {
    const peer = await startPeer(bundle.file, "127.0.0.1:0", { how });
    const runtime = createRemoteRuntime({ address: peer.address, ports: { clock: systemClock, random: cryptoRandom } });
    return {
      runtime,
      sandboxed: false,
      [Symbol.asyncDispose]: async () => {
        await runtime[Symbol.asyncDispose]();
        await peer.kill();
      },
    };
  };

describe.each(["serve", "contract"] as const)("the remote runtime: %s", (how) => {
  it.each(runtimeCases(openTo(how)))("$name", ({ run }) => run());
});
