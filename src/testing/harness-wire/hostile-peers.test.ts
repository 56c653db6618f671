import { afterEach, describe, expect, it } from "vitest";
import { SILENT_LOG } from "../../base/index.ts";
import { createLineHarness, type LineHarness } from "../../harness-wire/index.ts";
import { cryptoRandom, nodeDigest, systemClock as clock } from "../../node/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import { TestHost } from "../host.ts";
import { WIRE_FAULTS, faultyLine } from "./fault-peers.ts";

/** What a peer that breaks the wire makes of its turn, and what it cannot write. */

const ports = { clock, random: cryptoRandom, digest: nodeDigest };
const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one[Symbol.asyncDispose]();
});

function hostWith(remote: LineHarness): TestHost {
  const journal = createMemoryStore({ ...ports, log: SILENT_LOG });
  const host = new TestHost({ journal, ports, harnesses: { test: remote } });
  open.push(journal, remote, host);
  return host;
}

describe.each(Object.entries(WIRE_FAULTS))("a peer with %s", (_name, { act, verdict, recorded = [], pushed = false }) => {
  it("fails its turn with a clear error, and writes nothing that it may not", async () => {
    const { host: line } = faultyLine(act, { pullsHistory: !pushed });
    const host = hostWith(createLineHarness({ line, clock, limits: { endGraceMs: 30 } }));
    const session = await host.createSession();
    const turn = await host.begin(session, ["hello"]);
    const outcome = await turn.outcome;
    const story = await host.story(session);
    const before = ["EXECUTION_START", "INPUT hello", ...recorded];
    if ("failed" in verdict) {
      expect(outcome).toMatchObject({ kind: "ended", state: "FAILED" });
      expect(story).toEqual([...before, "END FAILED"]);
      const { body } = (await host.records(session)).at(-1)!.event!;
      expect(body.case === "end" && body.value.error).toMatchObject({ code: 13, description: `harness wire: ${verdict.failed}` });
    } else {
      expect(outcome).toMatchObject({ kind: "interrupted", error: { code: "unavailable", message: verdict.interrupted } });
      expect(story.filter((event) => event !== "ERROR 14")).toEqual(before);
    }
  });
});
