import { describe, expect, it } from "vitest";
import { HoldfastError, SILENT_LOG, type Seq } from "../base/index.ts";
import { createPlacedHarness } from "../placement/index.ts";
import { describeHarness, Resumability } from "../spi/index.ts";
import { createMemoryBlobStore } from "../stores/blobs/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { MemoryRuntime, seededPorts, TestHost } from "../testing/index.ts";
import { READY_MAX_MS } from "./ready.ts";

const describing = (version: string) => () =>
  describeHarness({ id: "counter", version, capabilities: { resumability: Resumability.STATELESS_REPLAY, forkSafe: true } });

function world() {
  const ports = seededPorts();
  const journal = createMemoryStore({ ...ports, log: SILENT_LOG });
  const appends: string[] = [];
  const append = journal.append.bind(journal);
  journal.append = (request) => {
    appends.push(`${request.writer.kind} ${request.events.length}`);
    return append(request);
  };
  const runtime = new MemoryRuntime({
    describe: describing("1"),
    run: (_memory, _start, sink) => sink.output("hello"),
    captures: createMemoryBlobStore(ports),
  });
  const entry = createPlacedHarness({ name: "test", source: "static", runtime, sandboxed: true });
  const host = new TestHost({ journal, ports, harnesses: {}, placed: [entry], limits: { leaseMs: 60_000 } });
  return { ports, journal, appends, runtime, host };
}

describe("a harness that is made ready for a turn", () => {
  it("costs an append of its own where a sandbox has to be started, and none where one lives", async () => {
    const { host, appends, journal } = world();
    const session = await host.createSession();
    await (
      await host.begin(session, ["go"])
    ).outcome;
    expect(appends.slice(0, 2)).toEqual(["claim 0", "claim 2"]);
    expect((await journal.get(session))?.fence).toBe(1);
    appends.length = 0;
    await (
      await host.begin(session, ["go"])
    ).outcome;
    expect(appends[0]).toBe("claim 2");
    expect((await journal.get(session))?.fence).toBe(1);
  });

  it("that cannot be had is asked once, and the turn is interrupted with why", async () => {
    const { host, runtime } = world();
    let asked = 0;
    runtime.create = async () => {
      asked += 1;
      throw new HoldfastError("unavailable", "runtime: it has no room");
    };
    const session = await host.createSession();
    expect(await (await host.begin(session, ["go"])).outcome).toMatchObject({
      kind: "interrupted",
      error: { code: "unavailable", message: "runtime: it has no room" },
    });
    expect(asked).toBe(1);
    expect(await host.story(session)).toEqual(["EXECUTION_START", "INPUT go", "ERROR 14"]);
  });

  it("keeps a turn waiting for so long at most: then it begins as planned, and can be cancelled", async () => {
    const { ports, host, runtime } = world();
    runtime.create = () => new Promise(() => undefined);
    const session = await host.createSession();
    const begun = host.begin(session, ["go"]);
    const settled = async () => {
      for (let tick = 0; tick < 20; tick++) await new Promise((resolve) => setImmediate(resolve));
    };
    await settled();
    ports.clock.advance(READY_MAX_MS - 1);
    await settled();
    expect(await host.story(session)).toEqual([]);
    // A cancel that comes while the turn starts is a cancel of that turn.
    const cancelled = host.controller.cancel({ session, executionId: "", reason: "USER" });
    ports.clock.advance(1);
    await cancelled;
    expect(await (await begun).outcome).toMatchObject({ kind: "ended", state: "CANCELED" });
    expect((await host.story(session)).slice(0, 2)).toEqual(["EXECUTION_START", "INPUT go"]);
  });

  it("goes again where the turn does not come to be, and the session is free", async () => {
    const { host, journal, runtime } = world();
    const session = await host.createSession();
    const append = journal.append;
    journal.append = (request) =>
      request.events.length > 0 ? Promise.reject(new HoldfastError("unavailable", "journal: it is full")) : append(request);
    await expect(host.begin(session, ["go"])).rejects.toMatchObject({ code: "unavailable" });
    journal.append = append;
    expect(runtime.living).toBe(0);
    expect((await journal.get(session))?.holder).toBeUndefined();
  });

  it("takes nothing from a session whose head is elsewhere", async () => {
    const { host, journal, runtime } = world();
    const session = await host.createSession();
    await expect(host.begin(session, ["go"], { expectedLastSeq: 7 as Seq })).rejects.toMatchObject({ code: "aborted" });
    expect(runtime.calls).toEqual([]);
    expect(await journal.get(session)).toMatchObject({ fence: 0, holder: undefined });
  });
});
