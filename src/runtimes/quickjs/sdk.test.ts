/** A harness that is written with `holdfast/harness` works in a VM as it is. */

import { create } from "@bufbuild/protobuf";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { executionIdOf, fenceOf, seqOf, sessionUidOf, type ErrorCode } from "../../base/index.ts";
import { ApprovalRefSchema, EventSchema, ToolResultSchema, UsageSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { cryptoRandom, nodeDigest, systemClock } from "../../node/index.ts";
import {
  ApprovalParkedError,
  HoldfastError,
  textMessage,
  type EventSink,
  type Harness,
  type Incarnation,
  type Runtime,
  type Start,
} from "../../spi/index.ts";
import { createMemoryBlobStore } from "../../stores/blobs/index.ts";
import { createRecordingSink } from "../../testing/recording-sink.ts";
import { bundleHarness, createQuickJsRuntime } from "./index.ts";

const EVENTS = 700;
const usage = create(UsageSchema, { model: "m", inputTokens: 2n ** 40n, outputTokens: 2n });

let runtime: Runtime;
let incarnation: Incarnation;
let harness: Harness;
beforeAll(async () => {
  const script = await bundleHarness({ file: fileURLToPath(new URL("../../testing/guests/sdk-agent.ts", import.meta.url)) });
  const ports = { clock: systemClock, random: cryptoRandom, digest: nodeDigest };
  runtime = await createQuickJsRuntime({ script, blobs: createMemoryBlobStore(ports), ports, workers: 1 });
  incarnation = await runtime.create({ sessionUid: sessionUidOf("s"), harness: "sdk-agent", fence: fenceOf(1) });
  harness = await runtime.attach(incarnation);
});
afterAll(() => runtime[Symbol.asyncDispose]());

let executions = 0;
function startOf(text: string): Start {
  return {
    executionId: executionIdOf(`e-${++executions}`),
    sessionUid: incarnation.sessionUid,
    config: new Uint8Array(),
    history: {
      lastSeq: seqOf(EVENTS),
      read: async function* ({ fromSeq = seqOf(1), toSeq = seqOf(EVENTS) } = {}) {
        for (let first: number = fromSeq; first <= toSeq; first += 100) {
          const events = Array.from({ length: Math.min(100, toSeq - first + 1) }, () => create(EventSchema, { executionId: "before" }));
          yield { firstSeq: seqOf(first), events };
        }
      },
    },
    inputs: [textMessage("user", text)],
    identity: {},
    resumeFromSeq: 0n,
    model: "m",
  };
}

const answering = () =>
  createRecordingSink({
    tool: ({ id, args }) => create(ToolResultSchema, { id, output: { found: args ?? null } }),
    model: ({ messages }) => ({ message: textMessage("assistant", `${messages.length} messages`), usage }),
  });

const run = (text: string, sink: EventSink = answering(), signal = new AbortController().signal) =>
  harness.run(startOf(text), sink, { signal });

describe("an agent of the SDK in a VM", () => {
  it("says what it is", async () => {
    expect(await harness.describe()).toMatchObject({ id: "sdk-agent", version: "3", tools: [{ name: "look-up" }] });
  });

  it("reads its history, calls a tool and a model, and is answered with what was answered", async () => {
    const sink = answering();
    await run("größer", sink);
    const [call, model, used, said] = sink.effects;
    expect(call).toMatchObject({ kind: "toolCall", call: { tool: "look-up", args: { word: "größer", $n: "no number" } } });
    expect(model).toMatchObject({ kind: "model", request: { messages: [{ role: "user" }, { role: "user" }, { role: "tool" }] } });
    expect(JSON.stringify(model, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value))).toContain(
      `${EVENTS} events before`,
    );
    expect(used).toMatchObject({ kind: "usage", usage: { inputTokens: 2n ** 40n } });
    expect(said).toEqual({ kind: "output", text: "3 messages (8 bytes)" });
  });

  it("hears a cancel", async () => {
    const cancel = new AbortController();
    const turn = run("wait", answering(), cancel.signal);
    turn.catch(() => undefined);
    await run("meanwhile");
    cancel.abort(new HoldfastError("cancelled", "the turn was cancelled (USER)"));
    await expect(turn).rejects.toMatchObject({ code: "cancelled" satisfies ErrorCode });
  });

  it("parks where a tool has to be approved, and is told of effects that did not happen", async () => {
    const parking: EventSink = {
      ...answering(),
      toolCall: ({ id }) => {
        const ref = create(ApprovalRefSchema, { executionId: `e-${executions}`, toolCallId: id, requestSeq: 4n });
        return Promise.reject(new ApprovalParkedError(ref));
      },
    };
    await expect(run("park", parking)).rejects.toMatchObject({
      name: "ApprovalParkedError",
      ref: { executionId: `e-${executions}`, requestSeq: 4n },
    });
    const refusing = { ...answering(), toolCall: () => Promise.reject(new HoldfastError("not_found", "tools: there is no such tool")) };
    await expect(run("refuse", refusing)).rejects.toThrow("there is no such tool");
    await run("and goes on");
  });
});

describe("bundling", () => {
  it("gives the same script again, which names no file of this machine", async () => {
    const file = fileURLToPath(new URL("../../testing/guests/sdk-agent.ts", import.meta.url));
    const script = await bundleHarness({ file });
    expect(await bundleHarness({ file })).toBe(script);
    expect(script).not.toContain("guests/sdk-agent");
    expect(script.length).toBeLessThan(60_000);
  });

  it("says what is wrong with a module, and nothing of where it is", async () => {
    const file = fileURLToPath(new URL("./engine.ts", import.meta.url));
    const failed = bundleHarness({ file });
    await expect(failed).rejects.toMatchObject({ code: "invalid_argument", message: expect.stringMatching(/cannot be bundled.*node:fs/) });
    await expect(failed).rejects.toMatchObject({ message: expect.not.stringContaining(file) });
  });
});
