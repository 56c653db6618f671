import { create, fromBinary, toBinary, type JsonObject, type JsonValue, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { HoldfastError } from "../base/errors.ts";
import {
  EventKind,
  EventSchema,
  MessageSchema,
  ToolCallSchema,
  ToolResultSchema,
  type Event,
  type Message,
  type PartSchema,
  type ToolCall,
  type ToolResult,
} from "../gen/agentsessions/v1/common_pb.ts";
import { ExecUpdateSchema } from "../gen/agentsessions/v1/session_pb.ts";
import {
  inputHashJson,
  normaliseEvent,
  normaliseMessage,
  normaliseToolCall,
  normaliseToolResult,
  wellFormedMessage,
  wellFormedToolResult,
} from "./index.ts";

type EventInit = MessageInitShape<typeof EventSchema>;

const normal = (init: EventInit): Event => normaliseEvent(create(EventSchema, init));

/** The refusal of `attempt`: an INVALID_ARGUMENT that names its field. */
function refusalOf(attempt: () => unknown): HoldfastError {
  try {
    attempt();
  } catch (error) {
    if (error instanceof HoldfastError && error.code === "invalid_argument" && error.field !== undefined) return error;
    throw error;
  }
  return expect.fail("it was not refused");
}

const inArgs = (args: unknown): EventInit => ({ body: { case: "tool", value: { args: args as JsonObject } } });
const inOutput = (output: unknown): EventInit => ({ body: { case: "result", value: { output: output as JsonObject } } });

/** A Struct with `levels` objects and lists inside one another. */
function nested(levels: number): JsonObject {
  let value: JsonValue = "leaf";
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? { k: value } : [value];
  return { k: value };
}

/** The event as a stream's frame carries it, the deepest that an event stands. */
function inFrame(recorded: Event): Uint8Array {
  return toBinary(ExecUpdateSchema, create(ExecUpdateSchema, { update: { case: "record", value: { event: recorded } } }));
}

describe("an event that is not recorded", () => {
  class Point {
    readonly x = 1;
  }

  it.each<readonly [name: string, init: EventInit, field: string]>([
    ["NaN", inOutput({ a: { n: NaN } }), "result.output.a.n"],
    ["an infinity", inOutput({ list: [1, [Infinity]] }), "result.output.list[1][0]"],
    ["undefined", inOutput({ gone: undefined }), "result.output.gone"],
    ["a hole in a list", inOutput({ list: [, 1] }), "result.output.list[0]"], // oxlint-disable-line no-sparse-arrays -- the hole is what is refused.
    ["a bigint", inOutput({ n: 1n }), "result.output.n"],
    ["a function", inOutput({ f: () => 1 }), "result.output.f"],
    ["a Date", inOutput({ at: new Date(0) }), "result.output.at"],
    ["an instance of a class", inOutput({ point: new Point() }), "result.output.point"],
    ["a list for a Struct", inOutput([1]), "result.output"],
    ["a lone surrogate in a Struct", inOutput({ text: "\ud800" }), "result.output.text"],
    ["a lone surrogate in a Struct's key", inOutput({ a: 1, "\udc00": 1 }), "result.output[1]"],
    ["a lone surrogate in a key of params", { body: { case: "model", value: { params: { "\udc00": "" } } } }, "model.params[0]"],
    ["a lone surrogate in a value of params", { body: { case: "model", value: { params: { top_p: "\udc00" } } } }, "model.params.top_p"],
    ["a key that is content, not a name", inOutput({ "my secret key": NaN }), "result.output[0]"],
    ["an unsafe integer in tool arguments", inArgs({ id: 2 ** 53 }), "tool.args.id"],
    ["a huge integer in tool arguments", inArgs({ deep: [{ n: -1e21 }] }), "tool.args.deep[0].n"],
    [
      "an unsafe integer in the arguments of a tool call part",
      { body: { case: "message", value: { parts: [{}, { part: { case: "toolCall", value: { args: { id: 2 ** 53 } } } }] } } },
      "message.parts[1].tool_call.args.id",
    ],
    ["a timestamp before year 1", { ts: { seconds: -62_135_596_801n, nanos: 0 } }, "ts"],
    ["a timestamp after year 9999", { ts: { seconds: 253_402_300_800n, nanos: 0 } }, "ts"],
    ["a timestamp with too many nanos", { ts: { seconds: 0n, nanos: 1_000_000_000 } }, "ts"],
    ["a timestamp with negative nanos", { ts: { seconds: 0n, nanos: -1 } }, "ts"],
    ["EVENT_PARKED", { kind: EventKind.EVENT_PARKED }, "kind"],
    ["a park", { body: { case: "parked", value: {} } }, "parked"],
    ["an int32 out of range", { schemaVersion: 2 ** 31 }, "schema_version"],
    ["a fraction for an int32", { body: { case: "error", value: { code: 1.5 } } }, "error.code"],
    ["an int64 out of range", { body: { case: "usage", value: { inputTokens: 2n ** 63n } } }, "usage.input_tokens"],
    ["a number for an int64", { body: { case: "usage", value: { outputTokens: 1 as never } } }, "usage.output_tokens"],
    ["a number for a string", { executionId: 1 as never }, "execution_id"],
    ["a string for a bool", { body: { case: "result", value: { isError: "no" as never } } }, "result.is_error"],
    ["a string for bytes", { body: { case: "executionStart", value: { config: "x" as never } } }, "execution_start.config"],
    ["a string for an enum", { kind: "EVENT_INPUT" as never }, "kind"],
  ])("%s, with its field path", (_, init, field) => {
    const refusal = refusalOf(() => normal(init));
    expect(refusal.field).toBe(field);
    expect(refusal.message).toMatch(new RegExp(`^${field.replace(/[[\].]/g, "\\$&")}: must `));
  });

  it.each<readonly [init: EventInit, message: string]>([
    [inOutput({ n: NaN }), "result.output.n: must be a finite number"],
    [inOutput({ f: () => 1 }), "result.output.f: must be null, a boolean, a number, a string, a list or a plain object"],
    [inOutput({ t: "\ud800" }), "result.output.t: must not hold a lone surrogate"],
    [inOutput([]), "result.output: must be a JSON object"],
    [inArgs({ n: 1e20 }), "tool.args.n: must be an integer from -9007199254740991 to 9007199254740991; send a longer one as a string"],
    [{ schemaVersion: NaN }, "schema_version: must be a whole number from -2147483648 to 2147483647"],
    [{ kind: EventKind.EVENT_PARKED }, "kind: must not be EVENT_PARKED, which is never journaled"],
  ])("with a message that says what would be right: %#", (init, text) => {
    expect(refusalOf(() => normal(init)).message).toBe(text);
  });

  it("never with what was in the field", () => {
    for (const init of [inOutput({ secret: "hunter2\ud800" }), inArgs({ secret: 1e20 + 5e6 }), { executionId: "hunter2\ud800" }]) {
      expect(refusalOf(() => normal(init)).message).not.toMatch(/hunter2|100000000000005/);
    }
  });

  /** Every string field of every message that is recorded, by a record that holds a lone surrogate there. */
  const everywhere: readonly TextField[] = [...eventFields(), ...partFields(), ...bodyFields()];

  it.each(everywhere)("a lone surrogate in %s", (field, init) => {
    for (const lone of ["\ud83d", "\ude00", "a\ud83d\ud83d\ude00", "\ude00\ud83d"]) {
      const refusal = refusalOf(() => normal(init(lone)));
      expect(refusal.field).toBe(field);
      expect(refusal.message).toBe(`${field}: must not hold a lone surrogate`);
    }
    expect(() => normal(init("whole \ud83d\ude00"))).not.toThrow();
  });

  it("what is nested deeper than readers of the wire accept; what is one level less deep is read by the library in a stream's frame", () => {
    let levels = 1;
    for (; ; levels++) {
      const init = inOutput(nested(levels));
      try {
        normal(init);
      } catch {
        break;
      }
      expect(() => fromBinary(ExecUpdateSchema, inFrame(create(EventSchema, init)))).not.toThrow();
    }
    expect(levels).toBeGreaterThan(40);
    // A message or a result on its own is held to the depth that it will have in a record.
    const alone = (depth: number): ToolResult => create(ToolResultSchema, { output: nested(depth) });
    expect(() => normaliseToolResult(alone(levels - 1))).not.toThrow();
    expect(() => normaliseToolResult(alone(levels))).toThrow(/deeper/);
    expect(() => wellFormedToolResult(alone(levels - 1))).not.toThrow();
    expect(() => wellFormedToolResult(alone(levels))).toThrow(/deeper/);
    const within = (depth: number): Message =>
      create(MessageSchema, { parts: [{ part: { case: "toolCall", value: { args: nested(depth) } } }] });
    for (const check of [normaliseMessage, wellFormedMessage]) {
      expect(() => check(within(levels - 2))).not.toThrow();
      expect(() => check(within(levels - 1))).toThrow(/deeper/);
    }
    expect(() => inputHashJson({ model: "", messages: [within(levels - 2)] })).not.toThrow();
    expect(() => inputHashJson({ model: "", messages: [within(levels - 1)] })).toThrow(/deeper/);
    const call = (depth: number): ToolCall => create(ToolCallSchema, { args: nested(depth) });
    expect(() => normaliseToolCall(call(levels - 1))).not.toThrow();
    expect(() => normaliseToolCall(call(levels))).toThrow(/deeper/);
    expect(refusalOf(() => normal(inOutput(nested(levels)))).message).toMatch(/deeper than 100 messages/);
    expect(() => fromBinary(ExecUpdateSchema, inFrame(create(EventSchema, inOutput(nested(levels)))))).toThrow(/recursion depth/);
  });

  it("a circle", () => {
    const circle: Record<string, unknown> = {};
    circle["self"] = circle;
    expect(refusalOf(() => normal(inOutput(circle))).message).toMatch(/deeper than 100 messages/);
  });
});

type TextField = readonly [field: string, init: (text: string) => EventInit];
type PartArm = NonNullable<MessageInitShape<typeof PartSchema>["part"]>;

function eventFields(): TextField[] {
  return [
    ["execution_id", (text) => ({ executionId: text })],
    ["actor.principal", (principal) => ({ actor: { principal } })],
    ["actor.issuer", (issuer) => ({ actor: { issuer } })],
    ["actor.subject", (subject) => ({ actor: { subject } })],
    ["message.role", (role) => ({ body: { case: "message", value: { role } } })],
  ];
}

function partFields(): TextField[] {
  const arms: readonly (readonly [field: string, arm: (text: string) => PartArm])[] = [
    ["text.text", (text) => ({ case: "text", value: { text } })],
    ["file.mime", (mime) => ({ case: "file", value: { mime } })],
    ["file.uri", (value) => ({ case: "file", value: { source: { case: "uri", value } } })],
    ["file.name", (name) => ({ case: "file", value: { name } })],
    ["file.digest", (digest) => ({ case: "file", value: { digest } })],
    ["data.data.k", (k) => ({ case: "data", value: { data: { k } } })],
    ["reasoning.provider", (provider) => ({ case: "reasoning", value: { provider } })],
    ["reasoning.model_id", (modelId) => ({ case: "reasoning", value: { modelId } })],
    ["reasoning.opaque_uri", (value) => ({ case: "reasoning", value: { opaque: { case: "opaqueUri", value } } })],
    [
      "reasoning.summary[0].text.text",
      (text) => ({ case: "reasoning", value: { summary: [{ part: { case: "text", value: { text } } }] } }),
    ],
    ["reasoning.item_id", (itemId) => ({ case: "reasoning", value: { itemId } })],
    ["reasoning.validity_scope", (validityScope) => ({ case: "reasoning", value: { validityScope } })],
    ["reasoning.opaque_digest", (opaqueDigest) => ({ case: "reasoning", value: { opaqueDigest } })],
    ["tool_call.id", (id) => ({ case: "toolCall", value: { id } })],
    [
      "tool_result.content[0].text.text",
      (text) => ({ case: "toolResult", value: { content: [{ part: { case: "text", value: { text } } }] } }),
    ],
  ];
  return arms.map(([field, arm]): TextField => {
    return [`message.parts[0].${field}`, (text) => ({ body: { case: "message", value: { parts: [{ part: arm(text) }] } } })];
  });
}

function bodyFields(): TextField[] {
  return [
    ["model.model", (model) => ({ body: { case: "model", value: { model } } })],
    ["model.input_hash", (inputHash) => ({ body: { case: "model", value: { inputHash } } })],
    ["model.id", (id) => ({ body: { case: "model", value: { id } } })],
    ["tool.id", (id) => ({ body: { case: "tool", value: { id } } })],
    ["tool.tool", (tool) => ({ body: { case: "tool", value: { tool } } })],
    ["tool.args.k", (k) => ({ body: { case: "tool", value: { args: { k } } } })],
    ["tool.idempotency_key", (idempotencyKey) => ({ body: { case: "tool", value: { idempotencyKey } } })],
    ["result.id", (id) => ({ body: { case: "result", value: { id } } })],
    ["result.output_uri", (outputUri) => ({ body: { case: "result", value: { outputUri } } })],
    ["result.error", (error) => ({ body: { case: "result", value: { error } } })],
    ["result.output_digest", (outputDigest) => ({ body: { case: "result", value: { outputDigest } } })],
    ["approval.tool_call_id", (toolCallId) => ({ body: { case: "approval", value: { toolCallId } } })],
    ["approval.reason", (reason) => ({ body: { case: "approval", value: { reason } } })],
    ["approval_result.tool_call_id", (toolCallId) => ({ body: { case: "approvalResult", value: { toolCallId } } })],
    ["approval_result.reason", (reason) => ({ body: { case: "approvalResult", value: { reason } } })],
    ["usage.model", (model) => ({ body: { case: "usage", value: { model } } })],
    ["lifecycle.detail", (detail) => ({ body: { case: "lifecycle", value: { detail } } })],
    ["lifecycle.snapshot_local", (snapshotLocal) => ({ body: { case: "lifecycle", value: { snapshotLocal } } })],
    ["lifecycle.snapshot_external_uri", (snapshotExternalUri) => ({ body: { case: "lifecycle", value: { snapshotExternalUri } } })],
    ["end.state", (state) => ({ body: { case: "end", value: { state } } })],
    ["end.error.description", (description) => ({ body: { case: "end", value: { error: { description } } } })],
    ["error.description", (description) => ({ body: { case: "error", value: { description } } })],
    ["execution_start.harness", (harness) => ({ body: { case: "executionStart", value: { harness } } })],
    ["execution_start.harness_version", (harnessVersion) => ({ body: { case: "executionStart", value: { harnessVersion } } })],
  ];
}
