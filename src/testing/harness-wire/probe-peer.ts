/** A program that serves the probe harness, or one of the conformance suite's, where its environment says. */

import { serveHarness } from "../../harness-sdk/node/index.ts";
import { conformanceHarnesses } from "../conformance/harnesses.ts";
import { probeHarness } from "./probe-harness.ts";

const [name = "probe", history] = process.argv.slice(2);
const harness = name === "probe" ? probeHarness() : conformanceHarnesses()[name];
if (harness === undefined) throw new Error(`no harness is called ${name}`);
// What a program prints does no harm to the line.
// oxlint-disable-next-line no-console -- it is what is tested.
console.log("a program that prints");
await serveHarness(harness, { history: history === "pushed" ? "pushed" : "pulled" });
process.stdout.write("and goes on printing\n");
