import { describe, expect, it } from "vitest";
import type { LineHarness } from "../../harness-wire/index.ts";
import { systemClock as clock } from "../../node/index.ts";
import { HoldfastError } from "../../spi/index.ts";
import { openGrpcLine, openMemoryLine } from "./lines.ts";
import { probeHarness } from "./probe-harness.ts";
import { wireCases, type WireUnderTest } from "./wire-conformance.ts";

/** Every line, with histories that are pulled and pushed. */

/** The contract has no frame for a refused effect that a harness could catch. Tokens are minted by the host's own service, which is not here. */
const NOT_OF_THE_CONTRACT = [
  "an effect that is refused, and caught",
  "a report of a call that the host refused",
  "a token",
  "a token that is refused",
];

const LINES: Readonly<Record<string, WireUnderTest>> = {
  "in memory, pulling": { connect: () => openMemoryLine(probeHarness(), { clock }) },
  "in memory, pushed": { connect: () => openMemoryLine(probeHarness(), { clock, pullsHistory: false }) },
  "a unix socket": { connect: () => openGrpcLine(probeHarness(), { clock, over: "unix", wire: true }) },
  "a port, pushed": { connect: () => openGrpcLine(probeHarness(), { clock, over: "tcp", wire: true, pullsHistory: false }) },
  "gRPC on a unix socket": { connect: () => openGrpcLine(probeHarness(), { clock, over: "unix", wire: true, stream: false }) },
  "gRPC on a port, pushed": {
    connect: () => openGrpcLine(probeHarness(), { clock, over: "tcp", wire: true, stream: false, pullsHistory: false }),
  },
  "the contract's Connect on a unix socket": {
    connect: () => openGrpcLine(probeHarness(), { clock, over: "unix", wire: false }),
    without: NOT_OF_THE_CONTRACT,
  },
};

describe.each(Object.entries(LINES))("a harness over %s", (_name, line) => {
  it.each(wireCases(line))("$name", ({ run }) => run());
});

describe("the cases", () => {
  /** A line with a fault, by what it does to runs. */
  const faulty = (run: LineHarness["run"]): WireUnderTest => ({
    connect: async () => {
      const open = await openMemoryLine(probeHarness(), { clock });
      return {
        ...open,
        remote: { ...open.remote, closed: open.remote.closed, openExchanges: 0, describe: () => open.remote.describe(), run },
      };
    },
  });

  it.each([
    ["an outcome that is lost", async () => undefined],
    ["an effect that is made up", async (_start, sink) => sink.output("made up")],
    ["an error of its own", () => Promise.reject(new HoldfastError("internal", "another"))],
  ] satisfies [string, LineHarness["run"]][])("find %s", async (_name, run) => {
    const failed = await Promise.all(
      wireCases(faulty(run))
        .filter(({ name }) => name.startsWith("is as in process"))
        .map(({ run: check }) =>
          check().then(
            () => "passed",
            () => "failed",
          ),
        ),
    );
    expect(failed.filter((one) => one === "failed").length).toBeGreaterThan(15);
  });
});
