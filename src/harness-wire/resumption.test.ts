import { describe, expect, it } from "vitest";
import { create } from "@bufbuild/protobuf";
import { HarnessFrameSchema, type HarnessFrame } from "../gen/holdfast/v1/harness_wire_pb.ts";
import { systemClock } from "../node/index.ts";
import { describeHarness } from "../spi/index.ts";
import { testHarness } from "../testing/host.ts";
import { drive } from "../testing/harness-programs/driving.ts";
import { memoryLineTo } from "../testing/harness-wire/memory-line.ts";
import { createLineHarness, lineResumptionOf, WIRE_LIMITS, type HostFrameInit, type HostLine, type LineResumption } from "./index.ts";

const RESUMED: LineResumption = { lastExchange: 7, pullsHistory: true, harnessTakesBytesMax: 1_000, hostTakesBytesMax: 2_000 };

/** A line whose harness describes itself and says nothing else: one that was brought back, and would take a second hello for a fault. */
function lineAtRest() {
  const sent: HostFrameInit[] = [];
  const limits: number[] = [];
  let answer = Promise.withResolvers<HarnessFrame>();
  const line: HostLine = {
    send: async (frame) => {
      sent.push(frame);
      const value = describeHarness({ id: "restored", version: "1" });
      answer.resolve(create(HarnessFrameSchema, { exchange: frame.exchange ?? 0, frame: { case: "descriptor", value } }));
    },
    frames: (async function* () {
      for (;;) {
        yield await answer.promise;
        answer = Promise.withResolvers();
      }
    })(),
    limitFrames: (bytesMax) => void limits.push(bytesMax),
    [Symbol.asyncDispose]: async () => undefined,
  };
  return { line, sent, limits };
}

describe("a line that is gone on with", () => {
  it("says no hello, numbers its exchanges on and keeps to what was agreed", async () => {
    const { line, sent, limits } = lineAtRest();
    const harness = createLineHarness({ line, clock: systemClock, resumed: RESUMED });
    expect(harness.resumption).toEqual(RESUMED);
    await harness.ready();
    const described = harness.describe();
    expect(await described).toMatchObject({ id: "restored" });
    expect(sent.map(({ exchange, frame }) => [exchange, frame?.case])).toEqual([[8, "describe"]]);
    expect(limits).toEqual([1_000]);
    expect(harness.resumption).toEqual({ ...RESUMED, lastExchange: 8 });
  });

  it("is told of once the harness has answered the hello, and not while an exchange is open", async () => {
    const [begun, letGo] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const held = testHarness(async () => {
      begun.resolve();
      await letGo.promise;
    });
    await using harness = createLineHarness({ line: memoryLineTo(held).host, clock: systemClock });
    expect(harness.resumption).toBeUndefined();
    await harness.ready();
    expect(harness.resumption).toMatchObject({ lastExchange: 0, hostTakesBytesMax: WIRE_LIMITS.frameBytesMax });
    const turn = drive(harness, "go");
    await begun.promise;
    expect(harness.resumption).toBeUndefined();
    letGo.resolve();
    await turn.said;
    expect(harness.resumption).toMatchObject({ lastExchange: 1 });
  });

  it.each([
    undefined,
    null,
    "line",
    {},
    { ...RESUMED, lastExchange: -1 },
    { ...RESUMED, lastExchange: 2 ** 32 },
    { ...RESUMED, pullsHistory: 1 },
    { ...RESUMED, harnessTakesBytesMax: 0.5 },
    { ...RESUMED, hostTakesBytesMax: "9" },
  ])("is not taken from what is none: %j", (stored) => {
    expect(lineResumptionOf(stored)).toBeUndefined();
  });

  it("is what was stored of it, and nothing beside", () => {
    expect(lineResumptionOf({ ...(JSON.parse(JSON.stringify(RESUMED)) as object), more: 1 })).toEqual(RESUMED);
  });
});
