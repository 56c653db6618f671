import { toBinary, type Message } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { SILENT_LOG } from "../../base/index.ts";
import type { Transport } from "../../client/index.ts";
import { cryptoRandom, nodeDigest, systemClock } from "../../node/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import { inProcessTransport } from "../in-process.ts";
import { DELETE_FAULTS, LIST_FAULTS, SESSION_FAULTS } from "./faults-of-sessions.ts";
import { CANCEL_FAULTS, EXEC_FAULTS, LIFECYCLE_FAULTS } from "./faults-of-turns.ts";
import { FORK_FAULTS, JOURNAL_FAULTS, READ_FAULTS } from "./faults-of-journals.ts";
import { APPROVE_FAULTS, TOOL_FAULTS } from "./faults-of-tools.ts";
import { faultyTransport, type Fault } from "./faulty-transport.ts";
import { CONFORMANCE_ABILITIES as abilities, conformanceHarnesses, conformanceTools, CONTRACT_CASES, runConformance } from "./index.ts";

const FAULTS = [
  ...SESSION_FAULTS,
  ...LIST_FAULTS,
  ...EXEC_FAULTS,
  ...CANCEL_FAULTS,
  ...DELETE_FAULTS,
  ...READ_FAULTS,
  ...FORK_FAULTS,
  ...LIFECYCLE_FAULTS,
  ...JOURNAL_FAULTS,
  ...TOOL_FAULTS,
  ...APPROVE_FAULTS,
];

const ports = { clock: systemClock, random: cryptoRandom, digest: nodeDigest };

function connect(fault: Fault): Transport {
  const inner = inProcessTransport({
    journal: createMemoryStore({ ...ports, log: SILENT_LOG }),
    ports,
    harnesses: conformanceHarnesses(),
    tools: conformanceTools(),
  });
  return faultyTransport(inner, fault, (desc, message) => toBinary(desc, message as Message));
}

describe("a server that breaks a promise", () => {
  it.each(FAULTS)("is caught: $name", async ({ caughtBy, says, plant }) => {
    const { results } = await runConformance({ connect: () => connect(plant()), abilities, only: caughtBy, caseTimeoutMs: 10_000 });
    expect(results.map(({ id, outcome }) => `${id} ${outcome}`).toSorted()).toEqual(caughtBy.map((id) => `${id} failed`).toSorted());
    const first = results.find(({ id }) => id === caughtBy[0]);
    expect(first?.outcome === "failed" ? first.reason : "").toMatch(says);
  });

  it("is not the door that the faults are built into: without one every promise is kept", async () => {
    const { failed, skipped } = await runConformance({ connect: () => connect({}), abilities });
    expect([failed, skipped]).toEqual([0, 0]);
  });
});

describe("every case", () => {
  it("can fail: some planted fault is caught by it", () => {
    const catching = new Set(FAULTS.flatMap(({ caughtBy }) => caughtBy));
    expect(CONTRACT_CASES.map(({ id }) => id).filter((id) => !catching.has(id))).toEqual([]);
  });
});
