import { afterAll, beforeAll, describe, it } from "vitest";
import { SILENT_LOG } from "../../base/index.ts";
import { cryptoRandom, nodeDigest, systemClock as clock } from "../../node/index.ts";
import type { Harness } from "../../spi/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import { CONFORMANCE_ABILITIES as abilities, conformanceHarnesses, conformanceTools, contractTests } from "../conformance/index.ts";
import { inProcessTransport } from "../in-process.ts";
import { openGrpcLine, openMemoryLine, type OpenLine } from "./lines.ts";

/** The conformance suite of the public API, unchanged, with every harness of the host at the other end of a line. */

const ports = { clock, random: cryptoRandom, digest: nodeDigest };

const LINES: Readonly<Record<string, (harness: Harness) => Promise<OpenLine>>> = {
  "lines in memory": (harness) => openMemoryLine(harness, { clock }),
  "the harness wire on unix sockets": (harness) => openGrpcLine(harness, { clock, over: "unix", wire: true }),
  "gRPC lines on ports, histories pushed": (harness) =>
    openGrpcLine(harness, { clock, over: "tcp", wire: true, stream: false, pullsHistory: false }),
  "the contract's Connect": (harness) => openGrpcLine(harness, { clock, over: "unix", wire: false }),
};

describe.each(Object.entries(LINES))("a host whose harnesses are behind %s", (_name, open) => {
  const lines: OpenLine[] = [];
  const harnesses: Record<string, Harness> = {};
  beforeAll(async () => {
    for (const [name, harness] of Object.entries(conformanceHarnesses())) {
      const line = await open(harness);
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
