import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { executionIdOf, sessionUidOf, type Seq } from "../base/ids.ts";
import { HoldfastError } from "../base/errors.ts";
import { ToolDefinitionSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { systemClock } from "../node/index.ts";
import { HarnessFailure, textMessage, type EventSink, type Harness, type Start } from "../spi/index.ts";
import { textResponse, testHarness } from "../testing/host.ts";
import { memoryLineTo } from "../testing/harness-wire/memory-line.ts";
import { createRecordingSink } from "../testing/recording-sink.ts";
import { createLineHarness } from "./index.ts";

const never = new AbortController().signal;

function startOf(init: Partial<Start> = {}): Start {
  return {
    executionId: executionIdOf("e"),
    sessionUid: sessionUidOf("s"),
    config: new Uint8Array([1, 2]),
    history: { lastSeq: 0 as Seq, async *read() {} },
    inputs: [textMessage("user", "hello")],
    identity: {},
    resumeFromSeq: 7n,
    model: "test",
    ...init,
  };
}

function throwing(error: unknown): Harness["run"] {
  return async () => {
    throw error as Error;
  };
}

function over(harness: Harness) {
  return createLineHarness({ line: memoryLineTo(harness).host, clock: systemClock });
}

describe("a harness over a line", () => {
  it("describes itself", async () => {
    await using remote = over(testHarness(async () => undefined, { id: "far" }));
    expect(await remote.describe()).toMatchObject({ id: "far", version: "1", capabilities: { forkSafe: true } });
  });

  it("tells of its line's end as news only where something was under way on it", async () => {
    const told: string[] = [];
    const begun = Promise.withResolvers<void>();
    const open = () =>
      createLineHarness({
        line: memoryLineTo(
          testHarness(async () => {
            begun.resolve();
            await new Promise(() => undefined);
          }),
        ).host,
        clock: systemClock,
        log: { log: (level, message) => void told.push(`${level} ${message}`) },
      });
    await open()[Symbol.asyncDispose]();
    const busy = open();
    const turn = busy.run(startOf(), createRecordingSink(), { signal: never }).catch(() => undefined);
    await begun.promise;
    await busy[Symbol.asyncDispose]();
    await turn;
    expect(told).toEqual(["debug a line to a harness is closed", "info a line to a harness is closed"]);
  });

  it("gets the start and acts through the sink", async () => {
    const seen: Start[] = [];
    await using remote = over(
      testHarness(async (start, sink) => {
        seen.push(start);
        const { usage } = await sink.model({ model: start.model, messages: start.inputs, params: { temperature: "0" } });
        await sink.usage(usage);
        await sink.output("done");
      }),
    );
    const sink = createRecordingSink({ model: () => textResponse("hi") });
    const tools = [create(ToolDefinitionSchema, { name: "read", description: "reads", inputSchema: { type: "object", properties: {} } })];
    await remote.run(startOf({ tools }), sink, { signal: never });
    expect(seen[0]?.tools).toEqual(tools);
    expect(sink.effects).toMatchObject([
      { kind: "model", request: { model: "test", messages: [textMessage("user", "hello")], params: { temperature: "0" } } },
      { kind: "usage", usage: { model: "test", inputTokens: 1n } },
      { kind: "output", text: "done" },
    ]);
    expect(seen[0]).toMatchObject({ executionId: "e", sessionUid: "s", config: new Uint8Array([1, 2]), resumeFromSeq: 7n, model: "test" });
  });

  it("fails as it says, and throws as it throws", async () => {
    const run = (error: unknown) => over(testHarness(throwing(error))).run(startOf(), createRecordingSink(), { signal: never });
    await expect(run(new HarnessFailure(9, "no"))).rejects.toMatchObject({ name: "HarnessFailure", grpcCode: 9, message: "no" });
    await expect(run(new HoldfastError("not_found", "x: gone"))).rejects.toMatchObject({
      name: "HoldfastError",
      code: "not_found",
      message: "x: gone",
    });
    await expect(run(new TypeError("oops"))).rejects.toMatchObject({ name: "HarnessThrewError", message: "TypeError: oops" });
  });
  it("gives up with the very error that an effect was refused with", async () => {
    await using remote = over(testHarness(async (start, sink) => void (await sink.model({ model: "m", messages: start.inputs }))));
    const refusal = new HoldfastError("unavailable", "model: later");
    const sink: EventSink = { ...createRecordingSink(), model: () => Promise.reject(refusal) };
    await expect(remote.run(startOf(), sink, { signal: never })).rejects.toBe(refusal);
  });
});
