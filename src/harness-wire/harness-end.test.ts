import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { HoldfastError } from "../base/index.ts";
import { ControllerFrameSchema } from "../gen/agentsessions/v1/harness_pb.ts";
import { HostFrameSchema } from "../gen/holdfast/v1/harness_wire_pb.ts";
import { HarnessFailure, textMessage, type Harness } from "../spi/index.ts";
import { testHarness, type HarnessRun } from "../testing/host.ts";
import { HarnessEnd, type HarnessFrameInit, type HostFrameInit } from "./index.ts";

type Body = NonNullable<HostFrameInit["frame"]>;
type ControllerInit = MessageInitShape<typeof ControllerFrameSchema>;
type Controller = ControllerInit["frame"];

/** A harness's end, and the host's side of it played by hand. */
class Played {
  readonly sent: HarnessFrameInit[] = [];
  readonly end: HarnessEnd;
  bytesMax = 0;

  constructor(harness: Harness | HarnessRun) {
    const line = {
      send: async (frame: HarnessFrameInit) => void this.sent.push(frame),
      limitFrames: (bytesMax: number) => void (this.bytesMax = bytesMax),
    };
    this.end = new HarnessEnd(typeof harness === "function" ? testHarness(harness) : harness, line);
  }

  give(frame: Body, exchange = 1): this {
    this.end.receive(create(HostFrameSchema, { exchange, frame }));
    return this;
  }

  control(frame: Controller, ids: { readonly session?: string; readonly executionId?: string } = {}): this {
    const init = { session: "s", executionId: "e", ...ids, ...(frame === undefined ? {} : { frame }) } as ControllerInit;
    return this.give({ case: "controller", value: create(ControllerFrameSchema, init) });
  }

  start(): this {
    return this.give({ case: "open", value: { model: "m" } }).control({ case: "start", value: { inputs: [textMessage("user", "hi")] } });
  }

  /** What was sent, in words. */
  get said(): unknown[] {
    return this.sent.map(({ frame }) => {
      if (frame?.case === "event") return frame.value.body?.case === "end" ? `END ${frame.value.body.value.state}` : frame.value.body?.case;
      return frame?.case === "end" ? `end ${frame.value.code}` : frame?.case;
    });
  }
}

/** Lets everything happen that waits for nothing but its turn. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));
const waits: HarnessRun = (_start, _sink, { signal }) =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));

describe("the harness's end", () => {
  it("answers the hello, and keeps to the size that the host takes", () => {
    const played = new Played(waits).give({ case: "hello", value: { protocol: 1, frameBytesMax: 77 } }, 0);
    expect(played.sent).toMatchObject([{ exchange: 0, frame: { case: "hello", value: { protocol: 1, pullsHistory: true } } }]);
    expect(played.bytesMax).toBe(77);
  });

  it("says why it cannot describe itself", async () => {
    const played = new Played({ describe: () => Promise.reject(new HoldfastError("not_found", "x: gone")), run: waits });
    played.give({ case: "describe", value: {} });
    await played.end.idle();
    expect(played.sent).toMatchObject([{ exchange: 1, frame: { case: "end", value: { code: 5, description: "x: gone" } } }]);
  });

  it.each([
    ["completed", async () => undefined, ["END COMPLETED", "end 0"]],
    ["failed for good", () => Promise.reject(new HarnessFailure(9, "no")), ["END FAILED", "end 0"]],
    ["threw with a code", () => Promise.reject(new HoldfastError("aborted", "x")), ["end 10"]],
    ["threw anything", () => Promise.reject(new TypeError("x")), ["end 2"]],
  ] satisfies [string, HarnessRun, string[]][])("ends as the run did: %s", async (_name, run, said) => {
    const played = new Played(run).start();
    await played.end.idle();
    expect(played.said).toEqual(said);
  });

  it("stops at a cancel and says so; what the run does then goes nowhere", async () => {
    const played = new Played(async (start, sink, { signal }) => {
      await waits(start, sink, { signal }).catch(() => undefined);
      await sink.output("late");
    }).start();
    played.control({ case: "cancel", value: { reason: "USER" } });
    await played.end.idle();
    expect(played.said).toEqual(["end 1"]);
  });

  it("gives every call that is under way the cancel's reason", async () => {
    const seen: unknown[] = [];
    const played = new Played(async (start, sink) => {
      await sink.model({ model: "m", messages: start.inputs }).catch((error: unknown) => seen.push(error));
    }).start();
    played.control({ case: "cancel", value: { reason: "TIMEOUT" } });
    await played.end.idle();
    expect(seen).toMatchObject([{ code: "cancelled", message: "turn: it was cancelled (TIMEOUT)" }]);
  });

  it.each([
    ["another session", (played: Played) => played.control({ case: "cancel", value: {} }, { session: "t" })],
    ["another execution", (played: Played) => played.control({ case: "cancel", value: {} }, { executionId: "f" })],
    ["a second start", (played: Played) => played.control({ case: "start", value: {} })],
    ["nothing in a frame", (played: Played) => played.control({ case: undefined })],
  ])("ends the exchange where the host breaks a rule: %s", async (_name, act) => {
    const played = new Played(waits).start();
    act(played);
    await played.end.idle();
    expect(played.sent.map(({ frame }) => frame)).toMatchObject([
      { case: "end", value: { code: 13, description: expect.stringMatching(/^harness wire: /) as string } },
    ]);
  });

  it("does not run before its start, nor twice", async () => {
    let runs = 0;
    const played = new Played(async () => void (runs += 1));
    played.give({ case: "open", value: {} }).control({ case: "cancel", value: {} });
    await settled();
    expect([runs, played.said, played.end.openExchanges]).toEqual([0, ["end 13"], 0]);
  });

  it("takes a completion without usage for one that consumed nothing, and refuses one without a message", async () => {
    const seen: unknown[] = [];
    const played = new Played(async (start, sink) => {
      seen.push((await sink.model({ model: "m", messages: start.inputs })).usage.inputTokens);
      await sink.model({ model: "m", messages: start.inputs }).catch((error: unknown) => seen.push(error));
    }).start();
    await settled();
    played.control({ case: "model", value: { modelCallId: "m1", message: textMessage("assistant", "x") } });
    await settled();
    played.control({ case: "model", value: { modelCallId: "m2" } });
    await played.end.idle();
    expect(seen).toMatchObject([0n, { code: "internal" }]);
  });

  it("does not mind a result that nobody waits for any more", async () => {
    const gone = new AbortController();
    const played = new Played(async (start, sink) => {
      const asked = sink.model({ model: "m", messages: start.inputs }, { signal: gone.signal });
      gone.abort(new Error("the author lost patience"));
      await asked.catch(() => undefined);
      await sink.output("went on");
    }).start();
    await settled();
    played.control({ case: "model", value: { modelCallId: "m1", message: textMessage("assistant", "late"), usage: {} } });
    played.control({ case: "tool", value: { id: "never asked" } });
    await played.end.idle();
    expect(played.said).toEqual(["model", "message", "END COMPLETED", "end 0"]);
  });

  it("does not complete a run whose last output was refused", async () => {
    const release = Promise.withResolvers<void>();
    const played = new Played(async (_start, sink) => {
      await sink.output("too much");
      await release.promise;
    }).start();
    await settled();
    played.give({ case: "refused", value: { eventOrdinal: 1n, error: { code: 8, description: "output: no room" } } });
    release.resolve();
    await played.end.idle();
    expect(played.sent.at(-1)?.frame).toMatchObject({ case: "end", value: { code: 8, description: "output: no room" } });
  });

  it("refuses what is used after the run has ended", async () => {
    let leaked: Parameters<HarnessRun>[1] | undefined;
    const played = new Played(async (_start, sink) => void (leaked = sink)).start();
    await played.end.idle();
    await expect(leaked?.output("late")).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringMatching(/^turn: it has ended/) as string,
    });
    expect(played.said).toEqual(["END COMPLETED", "end 0"]);
  });

  it("counts no effect that could not be sent: what is too large is its author's affair, and the run goes on", async () => {
    const seen: unknown[] = [];
    const end: HarnessEnd = new HarnessEnd(
      testHarness(async (start, sink) => {
        await sink.output("x".repeat(1_000)).catch((error: unknown) => seen.push(error));
        await sink.model({ model: "m", messages: start.inputs }).catch((error: unknown) => seen.push(error));
      }),
      {
        send: (frame) => {
          if (frame.frame?.case === "event" && frame.frame.value.body?.case === "message")
            throw new HoldfastError("resource_exhausted", "frame: too large");
          if (frame.frame?.case === "event" && frame.frame.value.body?.case === "model") {
            const error = { code: 14, description: "model: later" };
            queueMicrotask(() =>
              end.receive(create(HostFrameSchema, { exchange: 1, frame: { case: "refused", value: { eventOrdinal: 1n, error } } })),
            );
          }
          return Promise.resolve();
        },
      },
    );
    end.receive(create(HostFrameSchema, { exchange: 1, frame: { case: "open", value: {} } }));
    const frame = { case: "start", value: {} } as const;
    end.receive(create(HostFrameSchema, { exchange: 1, frame: { case: "controller", value: { session: "s", executionId: "e", frame } } }));
    await end.idle();
    expect(seen).toMatchObject([{ code: "resource_exhausted" }, { code: "unavailable", message: "model: later" }]);
  });

  it("lets go of everything when its line closes", async () => {
    const played = new Played(waits).start();
    played.end.close();
    await played.end.idle();
    expect(played.said).toEqual([]);
  });
});
