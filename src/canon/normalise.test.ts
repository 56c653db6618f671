import { create, equals, fromBinary, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import fc from "fast-check";
import { isDeepStrictEqual } from "node:util";
import { createContext, runInContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { HoldfastError } from "../base/errors.ts";
import type { Fence, Seq } from "../base/ids.ts";
import {
  EventSchema,
  MessageSchema,
  ToolCallSchema,
  ToolResultSchema,
  type Event,
  type EventKind,
} from "../gen/agentsessions/v1/common_pb.ts";
import { referenceEvent } from "../testing/canonical-reference.ts";
import { event, message, toolCall, toolResult } from "../testing/events.ts";
import {
  canonicalEvent,
  decodeLogRecord,
  encodeEvent,
  encodeLogRecord,
  normaliseEvent,
  normaliseMessage,
  normaliseToolCall,
  normaliseToolResult,
  replaceLoneSurrogates,
  wellFormedMessage,
  wellFormedToolResult,
} from "./index.ts";

type EventInit = MessageInitShape<typeof EventSchema>;

const normal = (init: EventInit): Event => normaliseEvent(create(EventSchema, init));

/** The field that the INVALID_ARGUMENT of `attempt` names. */
function refusedField(attempt: () => unknown): string | undefined {
  try {
    attempt();
  } catch (error) {
    if (error instanceof HoldfastError && error.code === "invalid_argument") return error.field;
    throw error;
  }
  return expect.fail("it was not refused");
}

describe("an event that is recorded", () => {
  it("is what is read back of its record, to the order of its keys", () => {
    const inOrder = (value: Event): string =>
      JSON.stringify(value, (_, inner: unknown) => (typeof inner === "bigint" ? `${inner}` : inner));
    fc.assert(
      fc.property(event({ scope: "recordable" }), (any) => {
        const recorded = normaliseEvent(any);
        const fields = { seq: 7 as Seq, prevHash: "", contentHash: "a".repeat(64), fence: 1 as Fence };
        const read = decodeLogRecord(encodeLogRecord({ ...fields, event: recorded })).event!;
        expect(isDeepStrictEqual(read, recorded)).toBe(true);
        expect(inOrder(read)).toBe(inOrder(recorded));
      }),
      { seed: 17, numRuns: 4_000 },
    );
  });

  it("is encoded and hashed like any other, and normalising it again changes nothing", () => {
    fc.assert(
      fc.property(event({ scope: "recordable" }), (any) => {
        const once = normaliseEvent(any);
        const twice = normaliseEvent(once);
        expect(canonicalEvent(once)).toBe(referenceEvent(once));
        expect(Buffer.from(encodeEvent(once)).equals(encodeEvent(twice))).toBe(true);
        expect(equals(EventSchema, fromBinary(EventSchema, encodeEvent(once)), once)).toBe(true);
      }),
      { seed: 31, numRuns: 3000 },
    );
  });

  it("keeps its argument as it was and shares nothing with it", () => {
    fc.assert(
      fc.property(event({ scope: "recordable" }), (any) => {
        const before = Buffer.from(toBinary(EventSchema, any));
        const copy = normaliseEvent(any);
        expect(before.equals(toBinary(EventSchema, any))).toBe(true);
        expect(sharedObjects(any, copy)).toEqual([]);
      }),
      { seed: 32, numRuns: 2000 },
    );
  });

  it("holds nothing that the reference drops", () => {
    fc.assert(
      fc.property(event({ scope: "recordable" }), (any) => {
        expect(droppedByReference(normaliseEvent(any))).toEqual([]);
      }),
      { seed: 33, numRuns: 3000 },
    );
  });

  it("is the same but for what the reference drops", () => {
    fc.assert(
      fc.property(event({ scope: "recordable" }), (any) => {
        fc.pre(droppedByReference(any).length === 0);
        expect(canonicalEvent(normaliseEvent(any))).toBe(canonicalEvent(any));
      }),
      { seed: 34, numRuns: 3000 },
    );
  });
});

/** Objects and buffers that can be reached from both; none of them may be. */
function sharedObjects(left: object, right: object): object[] {
  const reached = new Set<object>();
  const visit = (value: unknown, found: (value: object) => void): void => {
    if (typeof value !== "object" || value === null) return;
    found(value instanceof Uint8Array ? value.buffer : value);
    if (value instanceof Uint8Array) return;
    for (const inner of Object.values(value)) visit(inner, found);
  };
  visit(left, (value) => reached.add(value));
  const shared: object[] = [];
  visit(right, (value) => (reached.has(value) ? shared.push(value) : undefined));
  return shared;
}

/** The highest known number of each enum field, by the message that has it. */
const ENUM_MAX: Readonly<Record<string, readonly [field: string, max: number]>> = {
  "agentsessions.v1.Event": ["kind", 13],
  "agentsessions.v1.ToolCall": ["mediation", 3],
  "agentsessions.v1.ToolResult": ["code", 2],
  "agentsessions.v1.Lifecycle": ["kind", 6],
};
/** Fields that hold a Struct, whose keys are its sender's own. */
const STRUCTS = ["args", "output", "data", "inputSchema"];

/** What the contract says that the reference loses, found by walking over every message of an event. */
function droppedByReference(root: Event): string[] {
  const found: string[] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null || value instanceof Uint8Array) return;
    if (Array.isArray(value)) return value.forEach(visit);
    const fields = value as Record<string, unknown>;
    found.push(...droppedOf(fields));
    for (const [name, inner] of Object.entries(fields)) if (!STRUCTS.includes(name)) visit(inner);
  };
  visit(root);
  return found;
}

/** What of one message, or of one oneof, the reference loses. */
function droppedOf(fields: Readonly<Record<string, unknown>>): string[] {
  const { value } = fields;
  const type = String(fields["$typeName"]);
  const arm = String(fields["case"]);
  const isEmpty = (name: string): boolean => (fields[name] as string | unknown[]).length === 0;
  if (type === "agentsessions.v1.IdentityRef" && ["principal", "issuer", "subject"].every(isEmpty)) return ["empty actor"];
  if (type === "agentsessions.v1.DataPart" && fields["data"] === undefined) return ["data part without data"];
  if (type === "agentsessions.v1.ModelCall" && !(["messages", "tools"].every(isEmpty) && fields["toolChoice"] === undefined)) {
    return ["wire-only fields"];
  }
  if (type === "google.protobuf.Timestamp" && fields["seconds"] === -62_135_596_800n && fields["nanos"] === 0) return ["year 1"];
  if (["bytes", "uri", "opaqueBytes", "opaqueUri"].includes(arm) && (value as string).length === 0) return [`empty ${arm}`];
  const [field, max] = ENUM_MAX[type] ?? [];
  const number = field === undefined ? 0 : (fields[field] as number);
  return max !== undefined && (number < 0 || number > max) ? [`unknown ${field}`] : [];
}

describe("what is normalised to the absent form", () => {
  const cases: readonly (readonly [name: string, init: EventInit, text: string])[] = [
    ["an actor without a field set", { actor: {} }, "{}"],
    [
      "a data part without data",
      { body: { case: "message", value: { parts: [{ part: { case: "data", value: {} } }] } } },
      '{"message":{"parts":[{}]}}',
    ],
    [
      "empty bytes of a file",
      {
        body: {
          case: "message",
          value: { parts: [{ part: { case: "file", value: { source: { case: "bytes", value: new Uint8Array() } } } }] },
        },
      },
      '{"message":{"parts":[{"file":{}}]}}',
    ],
    [
      "an empty uri of a file",
      { body: { case: "message", value: { parts: [{ part: { case: "file", value: { source: { case: "uri", value: "" } } } }] } } },
      '{"message":{"parts":[{"file":{}}]}}',
    ],
    [
      "empty opaque bytes",
      {
        body: {
          case: "message",
          value: { parts: [{ part: { case: "reasoning", value: { opaque: { case: "opaqueBytes", value: new Uint8Array() } } } }] },
        },
      },
      '{"message":{"parts":[{"reasoning":{}}]}}',
    ],
    [
      "an empty opaque uri",
      {
        body: { case: "message", value: { parts: [{ part: { case: "reasoning", value: { opaque: { case: "opaqueUri", value: "" } } } }] } },
      },
      '{"message":{"parts":[{"reasoning":{}}]}}',
    ],
    ["the zero time of year 1", { ts: { seconds: -62_135_596_800n, nanos: 0 } }, "{}"],
    ["an unknown kind", { kind: 14 as EventKind }, "{}"],
    ["an unknown mediation", { body: { case: "tool", value: { mediation: 4 as never } } }, '{"tool":{}}'],
    ["an unknown code", { body: { case: "result", value: { code: -1 as never } } }, '{"result":{}}'],
    ["an unknown lifecycle", { body: { case: "lifecycle", value: { kind: 7 as never } } }, '{"lifecycle":{}}'],
    [
      "what of a model call is for the wire only",
      { body: { case: "model", value: { id: "m", messages: [{ role: "user" }], tools: [{ name: "t" }], toolChoice: {} } } },
      '{"model":{"id":"m"}}',
    ],
  ];

  it.each(cases)("%s", (_, init, text) => {
    expect(canonicalEvent(normal(init))).toBe(text);
  });

  it("wherever parts are within parts", () => {
    const empty = { part: { case: "data" as const, value: {} } };
    const reasoning = { part: { case: "reasoning" as const, value: { summary: [empty] } } };
    const result = { part: { case: "toolResult" as const, value: { content: [empty, reasoning] } } };
    const text = '{"message":{"parts":[{"tool_result":{"content":[{},{"reasoning":{"summary":[{}]}}]}}]}}';
    expect(canonicalEvent(normal({ body: { case: "message", value: { parts: [result] } } }))).toBe(text);
  });

  it("is no more than that: what else is set but empty stays", () => {
    const kept: readonly (readonly [EventInit, string])[] = [
      [{ body: { case: "end", value: { error: {} } } }, '{"end":{"error":{}}}'],
      [{ body: { case: "executionStart", value: { inputCount: 0n } } }, '{"execution_start":{"input_count":"0"}}'],
      [{ body: { case: "tool", value: { args: {} } } }, '{"tool":{"args":{}}}'],
      [
        { body: { case: "message", value: { parts: [{}, { part: { case: "text", value: {} } }] } } },
        '{"message":{"parts":[{},{"text":{}}]}}',
      ],
      [
        { body: { case: "message", value: { parts: [{ part: { case: "data", value: { data: {} } } }] } } },
        '{"message":{"parts":[{"data":{"data":{}}}]}}',
      ],
      [{ ts: {} }, '{"ts":"1970-01-01T00:00:00Z"}'],
      [{ ts: { seconds: -62_135_596_800n, nanos: 1 } }, '{"ts":"0001-01-01T00:00:00.000000001Z"}'],
      [{ actor: { issuer: "i" } }, '{"actor":{"issuer":"i"}}'],
    ];
    for (const [init, text] of kept) expect(canonicalEvent(normal(init))).toBe(text);
  });

  it("leaves out fields that the contract does not have", () => {
    const unknown = { no: 99, wireType: 0, data: new Uint8Array([1]) };
    const more = create(EventSchema, { body: { case: "message", value: { role: "user" } } });
    more.$unknown = [unknown];
    if (more.body.case === "message") more.body.value.$unknown = [unknown];
    expect(JSON.stringify(normaliseEvent(more))).not.toContain("$unknown");
  });

  it("keeps −0, which the hash writes as 0 and the input hash as -0", () => {
    const kept = normal({ body: { case: "tool", value: { args: { zero: -0 } } } });
    expect(kept.body.case === "tool" && Object.is(kept.body.value.args?.["zero"], -0)).toBe(true);
  });

  it("keeps __proto__ as the key it is", () => {
    const args = JSON.parse('{"__proto__":{"a":1}}') as Record<string, never>;
    expect(canonicalEvent(normal({ body: { case: "tool", value: { args } } }))).toBe('{"tool":{"args":{"__proto__":{"a":1}}}}');
  });

  it("takes plain objects of another realm", () => {
    const args = runInContext('({ a: { b: [1, "x"] } })', createContext()) as Record<string, never>;
    expect(canonicalEvent(normal({ body: { case: "tool", value: { args } } }))).toBe('{"tool":{"args":{"a":{"b":[1,"x"]}}}}');
  });
});

describe("messages, calls and results on their own", () => {
  it("are normalised as they are within an event", () => {
    fc.assert(
      fc.property(message(true), toolCall(true), toolResult(true), (said, call, result) => {
        expect(normaliseMessage(said)).toEqual(normal({ body: { case: "message", value: said } }).body.value);
        expect(normaliseToolCall(call)).toEqual(normal({ body: { case: "tool", value: call } }).body.value);
        expect(normaliseToolResult(result)).toEqual(normal({ body: { case: "result", value: result } }).body.value);
      }),
      { seed: 35, numRuns: 2000 },
    );
  });

  it("are called in a refusal what the caller calls them", () => {
    const wrong = create(MessageSchema, { parts: [{ part: { case: "text", value: { text: "\ud800" } } }] });
    expect(refusedField(() => normaliseMessage(wrong, "inputs[2]"))).toBe("inputs[2].parts[0].text.text");
    expect(refusedField(() => normaliseToolCall(create(ToolCallSchema, { args: { n: 1e300 } })))).toBe("tool.args.n");
    expect(refusedField(() => normaliseToolResult(create(ToolResultSchema, { output: { n: NaN } })))).toBe("result.output.n");
  });

  it("are refused for a lone surrogate", () => {
    expect(refusedField(() => normaliseMessage(create(MessageSchema, { role: "\ud800" })))).toBe("message.role");
    expect(refusedField(() => normaliseToolCall(create(ToolCallSchema, { tool: "\ud800" })))).toBe("tool.tool");
    expect(refusedField(() => normaliseToolResult(create(ToolResultSchema, { error: "\ud800" })))).toBe("result.error");
  });
});

describe("what a provider or a tool sent", () => {
  it("has its lone surrogates replaced by U+FFFD, and whole pairs kept", () => {
    expect(replaceLoneSurrogates("a\ud83db\ude00 \ud83d\ude00")).toBe("a\ufffdb\ufffd \ud83d\ude00");
    const sent = create(MessageSchema, {
      role: "assistant",
      parts: [
        { part: { case: "text", value: { text: "cut \ud83d" } } },
        { part: { case: "reasoning", value: { summary: [{ part: { case: "text", value: { text: "\ude00" } } }] } } },
        { part: { case: "toolCall", value: { id: "\ud800", args: { "k\ud800": ["\ud83d\ude00", "\udc00"] } } } },
      ],
    });
    expect(wellFormedMessage(sent)).toEqual(
      create(MessageSchema, {
        role: "assistant",
        parts: [
          { part: { case: "text", value: { text: "cut \ufffd" } } },
          { part: { case: "reasoning", value: { summary: [{ part: { case: "text", value: { text: "\ufffd" } } }] } } },
          { part: { case: "toolCall", value: { id: "\ufffd", args: { "k\ufffd": ["\ud83d\ude00", "\ufffd"] } } } },
        ],
      }),
    );
    const result = create(ToolResultSchema, { error: "\ud800", output: { text: "\ud800" } });
    expect(wellFormedToolResult(result)).toEqual(create(ToolResultSchema, { error: "\ufffd", output: { text: "\ufffd" } }));
  });

  it("can be recorded afterwards, whatever its texts were", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0xd7ff, max: 0xe000 }), { maxLength: 6 }), (units) => {
        const text = String.fromCharCode(...units);
        const sent = create(MessageSchema, { parts: [{ part: { case: "text", value: { text } } }] });
        const whole = wellFormedMessage(sent);
        expect(normaliseMessage(whole)).toEqual(whole);
      }),
      { seed: 36, numRuns: 2000 },
    );
  });

  it("is still refused for what nothing can replace", () => {
    expect(refusedField(() => wellFormedToolResult(create(ToolResultSchema, { output: { n: NaN } })))).toBe("result.output.n");
  });
});
