import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SILENT_LOG } from "../../base/index.ts";
import { cryptoRandom, nodeDigest, systemClock as clock } from "../../node/index.ts";
import type { Harness } from "../../spi/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import { CONFORMANCE_ABILITIES as abilities, conformanceHarnesses, conformanceTools, contractTests } from "../conformance/index.ts";
import { inProcessTransport } from "../in-process.ts";
import { openChildLine, type OpenLine } from "./lines.ts";
import { inputHistory, outcomeOf, ProbeSink, probeStart } from "./probe-host.ts";
import { wireCases } from "./wire-conformance.ts";

/** Lines to the standard streams of real programs, which print besides. */

const ports = { clock, random: cryptoRandom, digest: nodeDigest };
const PEER = fileURLToPath(new URL("probe-peer.ts", import.meta.url));

/** The most memory that a process has had, where the system tells; 0 elsewhere. */
function peakMebibytes(pid: number): number {
  const status = `/proc/${pid}/status`;
  const [, kibibytes = "0"] = /VmHWM:\s+(\d+) kB/.exec(existsSync(status) ? readFileSync(status, "utf8") : "") ?? [];
  return Number(kibibytes) / 1024;
}

describe("a harness that is a child, over its standard streams", () => {
  it.each(wireCases({ connect: () => openChildLine([PEER], { clock }) }))("$name", ({ run }) => run());
  it.each([
    ["pulled", 80],
    ["pushed", 600],
  ])("gets a history of 100,000 events %s, and needs less than %d MB more for it", async (how, mebibytesMax) => {
    await using line = await openChildLine([PEER, "probe", how], { clock });
    const sink = new ProbeSink();
    await line.remote.run(probeStart("nothing at all"), sink, { signal: new AbortController().signal });
    const before = peakMebibytes(line.pid);
    const start = probeStart("how long the history is", { history: inputHistory(100_000, 512, 200) });
    await line.remote.run(start, sink, { signal: new AbortController().signal });
    expect(sink.asked).toEqual(["output 100000 of 100000 events"]);
    expect(peakMebibytes(line.pid) - before).toBeLessThan(mebibytesMax);
  });

  it("gets its history pushed where it asks for that", async () => {
    await using line = await openChildLine([PEER, "probe", "pushed"], { clock });
    const sink = new ProbeSink();
    await line.remote.run(probeStart("a part of the history"), sink, { signal: new AbortController().signal });
    expect(sink.asked).toEqual(["output 3:1:event 3 4:1:event 4 5:1:event 5"]);
  });

  it("interrupts its turn at once when it is killed, and can be resumed elsewhere", async () => {
    await using line = await openChildLine([PEER], { clock });
    const sink = new ProbeSink();
    const running = line.remote.run(probeStart("a wait"), sink, { signal: new AbortController().signal }).catch(outcomeOf);
    await line.remote.run(probeStart("nothing at all"), sink, { signal: new AbortController().signal });
    process.kill(line.pid, "SIGKILL");
    expect(await running).toBe("threw unavailable harness: the line to it was closed; its turn is interrupted and can be resumed");
    await expect(line.remote.describe()).rejects.toMatchObject({ code: "unavailable" });
  });
});

describe("a host whose harnesses are children", () => {
  const lines: OpenLine[] = [];
  const harnesses: Record<string, Harness> = {};
  beforeAll(async () => {
    for (const name of Object.keys(conformanceHarnesses())) {
      // So many programs that begin at once take their time on a busy machine.
      const line = await openChildLine([PEER, name], { clock, limits: { helloTimeoutMs: 60_000 } });
      lines.push(line);
      harnesses[name] = line.remote;
    }
  });
  afterAll(async () => {
    for (const line of lines) await line[Symbol.asyncDispose]();
  });
  const connect = () =>
    inProcessTransport({ journal: createMemoryStore({ ...ports, log: SILENT_LOG }), ports, harnesses, tools: conformanceTools() });
  it.each(contractTests({ connect, abilities }))("$name", ({ run }) => run());
});
