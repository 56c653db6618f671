import { describe, expect, it } from "vitest";
import { systemClock as clock } from "../../node/index.ts";
import { testHarness } from "../host.ts";
import { openGrpcLine, openMemoryLine, type OpenLine } from "./lines.ts";
import { ProbeSink, probeStart } from "./probe-host.ts";
import type { Harness } from "../../spi/index.ts";

/** A harness that sends faster than its host takes is stopped by the line, whichever it is. */

const OUTPUTS = 20_000;
const TEXT = "x".repeat(4_000);

const LINES: Readonly<Record<string, (harness: Harness) => Promise<OpenLine>>> = {
  "in memory": (harness) => openMemoryLine(harness, { clock }),
  "a unix socket": (harness) => openGrpcLine(harness, { clock, over: "unix", wire: true }),
  "gRPC on a unix socket": (harness) => openGrpcLine(harness, { clock, over: "unix", wire: true, stream: false }),
  "the contract's Connect": (harness) => openGrpcLine(harness, { clock, over: "unix", wire: false }),
};

describe.each(Object.entries(LINES))("a flood over %s", (_name, open) => {
  it("waits for the host, and arrives whole", async () => {
    let sent = 0;
    const harness = testHarness(async (_start, sink) => {
      for (; sent < OUTPUTS; sent++) await sink.output(TEXT);
    });
    await using line = await open(harness);
    const sink = new ProbeSink();
    const gate = Promise.withResolvers<void>();
    let taken = 0;
    sink.output = async () => {
      await gate.promise;
      taken += 1;
    };
    const running = line.remote.run(probeStart(""), sink, { signal: new AbortController().signal });
    // The harness comes to a stop by itself: nothing is taken, so nothing more is sent.
    for (let [before, still] = [0, 0]; still < 5; before = sent) {
      await clock.sleep(50);
      still = sent > 0 && sent === before ? still + 1 : 0;
    }
    expect(sent).toBeGreaterThanOrEqual(256);
    expect(sent).toBeLessThan(2_000);
    gate.resolve();
    await running;
    expect([sent, taken]).toEqual([OUTPUTS, OUTPUTS]);
  });
});
