import { describe, expect, it } from "vitest";
import { HoldfastError, newSessionUid, SILENT_LOG, type Seq, type SessionUid } from "../base/index.ts";
import { createPlacedHarness } from "../placement/index.ts";
import { describeHarness, Resumability } from "../spi/index.ts";
import { createMemoryBlobStore } from "../stores/blobs/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { emptySeed, MemoryRuntime, seededPorts, TestHost } from "../testing/index.ts";
import { CONTROLLER_LIMITS } from "./limits.ts";

const COUNTER = describeHarness({
  id: "counter",
  version: "1",
  capabilities: { resumability: Resumability.REQUIRES_MEMORY_SNAPSHOT, forkSafe: true },
});

function world() {
  const ports = seededPorts();
  const journal = createMemoryStore({ ...ports, log: SILENT_LOG });
  const captures = createMemoryBlobStore(ports);
  let held: { readonly reached: () => void; readonly gate: Promise<void> } | undefined;
  /** Holds the next turn up after its output. */
  const hold = () => {
    const [reached, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    held = { reached: reached.resolve, gate: gate.promise };
    const goOn = () => {
      held = undefined;
      gate.resolve();
    };
    return { reached: reached.promise, goOn };
  };
  const newHost = (hostId: string) => {
    const runtime = new MemoryRuntime({
      describe: () => COUNTER,
      run: async (memory, _start, sink) => {
        memory["count"] = Number(memory["count"] ?? 0) + 1;
        await sink.output(`count ${String(memory["count"])}`);
        held?.reached();
        await held?.gate;
      },
      captures,
    });
    const entry = createPlacedHarness({ name: "test", source: "static", runtime, sandboxed: true });
    const host = new TestHost({ journal, ports, harnesses: {}, placed: [entry], hostId });
    const turn = async (session: SessionUid) => {
      const outcome = await (await host.begin(session, ["go"])).outcome;
      return outcome.kind === "interrupted" ? outcome.error.code : (await host.story(session)).at(-2);
    };
    const fork = (parent: SessionUid) =>
      host.controller.fork({ parent, atSeq: 0 as Seq, children: () => [emptySeed(newSessionUid(ports), ports.clock.nowMs())] });
    return { host, runtime, entry, turn, fork };
  };
  return { ports, journal, captures, hold, newHost };
}

const codeOf = async (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "none",
    (error: unknown) => (error instanceof HoldfastError ? error.code : String(error)),
  );

describe("a session that keeps state in memory", () => {
  it("is suspended as its last turn left it, also by a host that holds an older memory of it", async () => {
    const { newHost } = world();
    const [one, two] = [newHost("one"), newHost("two")];
    const session = await one.host.createSession();
    expect(await one.turn(session)).toBe("OUTPUT count 1");
    expect(await two.turn(session)).toBe("OUTPUT count 2");
    await one.host.controller.suspend(session, undefined);
    expect(one.runtime.living).toBe(0);
    expect(await two.turn(session)).toBe("OUTPUT count 3");
  });

  it("is not forked at a head that its memory has gone past", async () => {
    const { journal, hold, newHost } = world();
    const { host, turn, fork } = newHost("one");
    const session = await host.createSession();
    const { goOn } = hold();
    const running = await host.begin(session, ["go"]);
    const get = journal.get.bind(journal);
    journal.get = async (uid) => {
      // The turn ends between the look at the head and the capture.
      journal.get = get;
      const row = await get(uid);
      goOn();
      await running.outcome;
      return row;
    };
    expect(await codeOf(fork(session))).toBe("aborted");
    expect(await fork(session)).toHaveLength(1);
    expect(await turn(session)).toBe("OUTPUT count 2");
  });

  it("loses nothing of a turn that begins while it is forked", async () => {
    const { newHost } = world();
    const { host, runtime, turn, fork } = newHost("one");
    const session = await host.createSession();
    await turn(session);
    const renew = runtime.renew.bind(runtime);
    runtime.renew = async (snapshot) => {
      runtime.renew = renew;
      expect(await turn(session)).toBe("OUTPUT count 2");
      return renew(snapshot);
    };
    expect(await codeOf(fork(session))).toBe("aborted");
    expect(await turn(session)).toBe("OUTPUT count 3");
  });

  it("is said to have gone on, not to have lost its memory, where it did so while it was brought back", async () => {
    const { ports, newHost } = world();
    const [one, two] = [newHost("one"), newHost("two")];
    const session = await one.host.createSession();
    for (let turns = 0; turns < 3; turns++) await one.turn(session);
    await one.host.controller.suspend(session, undefined);
    const restore = one.runtime.restore.bind(one.runtime);
    one.runtime.restore = async (snapshot, options) => {
      one.runtime.restore = restore;
      // It takes longer than the lease. What was to be restored is replaced meanwhile, and gone.
      ports.clock.advance(CONTROLLER_LIMITS.leaseMs + 1);
      for (let turns = 0; turns < 4; turns++) await two.turn(session);
      return restore(snapshot, options);
    };
    expect(await codeOf(one.host.controller.resume(session, undefined))).toBe("aborted");
    expect(await one.turn(session)).toBe("OUTPUT count 8");
  });

  it("has no END without the memory that it ended with: a turn whose sandbox was destroyed is resumed", async () => {
    const { hold, newHost } = world();
    const { host, entry, turn } = newHost("one");
    const session = await host.createSession();
    await turn(session);
    const { reached, goOn } = hold();
    const running = await host.begin(session, ["go"]);
    await reached;
    await entry.release(session);
    goOn();
    expect(await running.outcome).toMatchObject({ kind: "interrupted", error: { code: "unavailable" } });
    const { turn: resumed } = await host.controller.resume(session, undefined);
    expect(await resumed?.outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(await turn(session)).toBe("OUTPUT count 3");
  });

  it("is not forked where a part of its stored memory is missing, and the answer names it", async () => {
    const { journal, captures, newHost } = world();
    const { host, turn, fork } = newHost("one");
    const session = await host.createSession();
    for (let count = 1; count <= 3; count++) await turn(session);
    const { lastSeq } = (await host.controller.suspend(session, undefined)).projection;
    const [first] = await Array.fromAsync(captures.list());
    await captures.delete(first!);
    await expect(fork(session)).rejects.toMatchObject({
      code: "failed_precondition",
      message: `session: a part of its stored memory is missing (${first!.digest}), so no child could begin with it; put it back where captures are kept`,
    });
    expect((await journal.list({ limit: 10 })).rows).toHaveLength(1);
    expect((await journal.get(session))?.projection.lastSeq).toBe(lastSeq);
  });
});
