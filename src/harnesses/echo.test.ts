import { readFileSync } from "node:fs";
import { fromJson } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { executionIdOf, SEQ_NONE, sessionUidOf } from "../base/ids.ts";
import { inputHash } from "../canon/index.ts";
import { LogRecordSchema, type LogRecord } from "../gen/agentsessions/v1/common_pb.ts";
import { Resumability } from "../gen/agentsessions/v1/harness_pb.ts";
import { createEchoProvider } from "../models/echo.ts";
import { messageText, textMessage, type Message, type Start } from "../spi/index.ts";
import { testDigest } from "../testing/ports.ts";
import { createRecordingSink } from "../testing/recording-sink.ts";
import { createEchoHarness } from "./echo.ts";

const signal = new AbortController().signal;

function startOf(inputs: readonly Message[], model = ""): Start {
  return {
    executionId: executionIdOf("e"),
    sessionUid: sessionUidOf("s"),
    config: new Uint8Array(),
    history: {
      lastSeq: SEQ_NONE,
      read: () => {
        throw new Error("the echo harness reads no history");
      },
    },
    inputs,
    identity: {},
    resumeFromSeq: 0n,
    model,
  };
}

describe("the echo harness", () => {
  it("says what it is", async () => {
    const { id, version, models, tools, capabilities } = await createEchoHarness().describe();
    expect({ id, version, models, tools }).toEqual({ id: "echo", version: "1", models: ["echo"], tools: [] });
    expect(capabilities).toMatchObject({
      resumability: Resumability.STATELESS_REPLAY,
      forkSafe: true,
      streaming: true,
      requiresGpu: false,
    });
  });

  it("asks the model once, with this turn's inputs and nothing else, and records what it cost", async () => {
    const sink = createRecordingSink({ model: createEchoProvider() });
    const inputs = [textMessage("user", "one"), textMessage("user", "two words")];
    await createEchoHarness().run(startOf(inputs), sink, { signal });
    const [call, usage] = sink.effects;
    expect(sink.effects.map(({ kind }) => kind)).toEqual(["model", "usage"]);
    expect(call).toMatchObject({ kind: "model", request: { model: "echo", messages: inputs } });
    expect(usage).toMatchObject({ kind: "usage", usage: { model: "echo", inputTokens: 3n, outputTokens: 2n } });
  });

  it("asks the session's model where it has one", async () => {
    const sink = createRecordingSink({ model: createEchoProvider() });
    await createEchoHarness().run(startOf([], "other"), sink, { signal });
    expect(sink.effects[0]).toMatchObject({ kind: "model", request: { model: "other" } });
  });

  it("passes on what the model call fails with", async () => {
    await expect(createEchoHarness().run(startOf([]), createRecordingSink(), { signal })).rejects.toMatchObject({
      code: "failed_precondition",
    });
  });

  it("asks for what another implementation's journal recorded, and adds nothing to it", async () => {
    const vector = JSON.parse(readFileSync(new URL("../canon/vectors/journal-hello.json", import.meta.url), "utf8")) as {
      records: never[];
    };
    const records: LogRecord[] = vector.records.map((record) => fromJson(LogRecordSchema, record));
    const [input, call, output, end] = records.map((record) => record.event?.body);
    if (input?.case !== "message" || call?.case !== "model" || output?.case !== "message") throw new Error("another journal than expected");
    expect(end?.case).toBe("end");
    const hashes: string[] = [];
    // Replay serves a completion without recorded usage with a usage of zero.
    const sink = createRecordingSink({
      model: (request) => {
        hashes.push(inputHash(request, testDigest));
        return {
          message: output.value,
          usage: { $typeName: "agentsessions.v1.Usage", model: "echo", inputTokens: 0n, outputTokens: 0n, reasoningTokens: 0n },
        };
      },
    });
    await createEchoHarness().run(startOf([input.value]), sink, { signal });
    expect(hashes).toEqual([call.value.inputHash]);
    expect(sink.effects.map(({ kind }) => kind)).toEqual(["model"]);
    expect(messageText(output.value)).toBe("echo:hello");
  });
});
