import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { SILENT_LOG, type HostId } from "../base/index.ts";
import { EventSchema, Lifecycle_Kind } from "../gen/agentsessions/v1/common_pb.ts";
import { baselineAccount, EventKind, HarnessFailure, textMessage } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { harnessCatalog, seededPorts, testHarness, TestHost, type HarnessRun } from "../testing/index.ts";
import { replaySession } from "./index.ts";

function world(run: HarnessRun) {
  const ports = seededPorts();
  const journal = createMemoryStore({ ...ports, log: SILENT_LOG });
  const host = new TestHost({ journal, ports, harnesses: { test: testHarness(run) } });
  return {
    host,
    journal,
    /** How each ended turn replays with a harness that runs like this. */
    async replayed(session: Awaited<ReturnType<TestHost["createSession"]>>, again: HarnessRun = run): Promise<string[]> {
      const row = (await journal.get(session))!;
      const checks = await Array.fromAsync(
        replaySession({ journal, ports, harnesses: harnessCatalog({ test: testHarness(again) }) }, { row }),
      );
      return checks.map(({ outcome }) => (outcome.kind === "diverged" ? outcome.divergence.reason : outcome.kind));
    },
  };
}

const twice =
  (first: string, second: string): HarnessRun =>
  async (_, sink) => {
    await sink.baseline!(first);
    await sink.output("between");
    await sink.baseline!(second);
  };

describe("a baseline", () => {
  it("is recorded where it was asked for, with the harness's account, and replays", async () => {
    const at = world(twice("one", "two"));
    await using host = at.host;
    const session = await host.createSession();
    await (
      await host.begin(session, [])
    ).outcome;
    expect(await host.story(session)).toEqual([
      "EXECUTION_START",
      "LIFECYCLE 4 holdfast:one",
      "OUTPUT between",
      "LIFECYCLE 4 holdfast:two",
      "END COMPLETED",
    ]);
    const accounts = (await host.records(session)).map(({ event }) => baselineAccount(event!));
    expect(accounts).toEqual([undefined, "one", undefined, "two", undefined]);
    expect(await at.replayed(session)).toEqual(["same"]);
    expect(await at.replayed(session, twice("one", "three"))).toEqual(["the baseline differs"]);
    expect(await at.replayed(session, async (_, sink) => sink.output("between"))).toEqual([
      "the harness asks for an output where a baseline is recorded",
    ]);
  });

  it("is no effect when another writer recorded it", async () => {
    const at = world(async (_, sink) => sink.output("x"));
    await using host = at.host;
    const session = await host.createSession();
    const stamp = { executionId: "e1", schemaVersion: 1 };
    const { LIFECYCLE_BASELINE } = Lifecycle_Kind;
    const events = [
      create(EventSchema, {
        ...stamp,
        kind: EventKind.EVENT_EXECUTION_START,
        body: { case: "executionStart", value: { inputCount: 0n, harness: "test" } },
      }),
      create(EventSchema, {
        ...stamp,
        kind: EventKind.EVENT_LIFECYCLE,
        body: { case: "lifecycle", value: { kind: LIFECYCLE_BASELINE, detail: "theirs" } },
      }),
      create(EventSchema, { ...stamp, kind: EventKind.EVENT_OUTPUT, body: { case: "message", value: textMessage("assistant", "x") } }),
      create(EventSchema, { ...stamp, kind: EventKind.EVENT_END, body: { case: "end", value: { state: "COMPLETED" } } }),
    ];
    const writer = { kind: "claim", holder: "another writer" as HostId, leaseMs: 0 } as const;
    await at.journal.append({ session, writer, events: events.map((event) => ({ event })) });
    expect(await at.replayed(session)).toEqual(["same"]);
  });

  it("must be text that a record can hold", async () => {
    const at = world(async (_, sink) => {
      await sink.baseline!("\ud800").catch((error: unknown) => {
        throw new HarnessFailure(3, error instanceof Error ? error.message : "?");
      });
    });
    await using host = at.host;
    const session = await host.createSession();
    await (
      await host.begin(session, [])
    ).outcome;
    expect((await host.records(session)).at(-1)!.event!.body.value).toMatchObject({
      error: { description: "baseline: must have no lone surrogates" },
    });
  });
});
