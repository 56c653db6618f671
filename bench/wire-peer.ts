/** A program that serves the echo harness where its environment says; it is told to end by the end of its input. */

import { createEchoHarness } from "../src/harnesses/index.ts";
import { serveHarness } from "../src/harness-sdk/node/index.ts";

const served = await serveHarness(createEchoHarness());
if (served.address !== "stdio") {
  process.stdout.write(`${served.address}\n`);
  process.stdin.resume().once("end", () => void served[Symbol.asyncDispose]());
}
