import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HarnessFrameSchema, HostFrameSchema } from "../../gen/holdfast/v1/harness_wire_pb.ts";
import type { HarnessFrameInit, HostFrameInit } from "../../harness-wire/index.ts";
import { depthExceeds, harnessFrameBytes, hostFrameText } from "./door-json.ts";
import { makeCodec } from "./guest/door.ts";

const BOUNDS = { frameChars: 10_000, frameDepth: 30 };
// The guest's half, run here: it needs no VM.
const guest = makeCodec();
const guestText = (frame: unknown) => JSON.stringify(guest.tagged(frame));

const awkward = fc.dictionary(
  fc.constantFrom("$n", "$b", "$o", "a", "__proto__", "constructor", ""),
  fc.oneof(fc.string(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), fc.constant(null), fc.constant({ $n: "1" })),
  { maxKeys: 2 },
);

describe("frames as JSON", () => {
  it("reach a guest as they are: integers, bytes and objects that look like tags", () => {
    const args = { $n: "12", nested: { $b: "x", list: [{ $o: {} }, null, 1.5, "\u2028"] } };
    const frame: HostFrameInit = {
      exchange: 3,
      frame: {
        case: "controller",
        value: {
          session: "s",
          frame: {
            case: "start",
            value: {
              config: Uint8Array.of(0, 255, 7),
              resumeFromSeq: -(2n ** 62n),
              history: [{ body: { case: "tool", value: { args } } }],
            },
          },
        },
      },
    };
    expect(guest.resolved(JSON.parse(hostFrameText(frame)))).toEqual(create(HostFrameSchema, frame));
  });

  it("reach a host as the schema encodes them", () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), fc.string(), fc.uint8Array({ maxLength: 20 }), awkward, (count, text, bytes, args) => {
        const frame: HarnessFrameInit = {
          exchange: 1,
          frame: {
            case: "event",
            value: { body: { case: "tool", value: { id: text, args: { args } } }, executionId: Buffer.from(bytes).toString("hex") },
          },
        };
        const usage: HarnessFrameInit = {
          exchange: 1,
          frame: { case: "event", value: { body: { case: "usage", value: { inputTokens: BigInt(count) } } } },
        };
        for (const sent of [frame, usage]) {
          expect(harnessFrameBytes(guestText(sent), BOUNDS)).toEqual(toBinary(HarnessFrameSchema, create(HarnessFrameSchema, sent)));
        }
      }),
    );
  });

  it("hold numbers that JSON has no word for, both ways", () => {
    const output = { a: Number.NaN, b: [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY], c: { $n: -0 }, d: "NaN" };
    const sent: HarnessFrameInit = { exchange: 1, frame: { case: "event", value: { body: { case: "result", value: { output } } } } };
    expect(harnessFrameBytes(guestText(sent), BOUNDS)).toEqual(toBinary(HarnessFrameSchema, create(HarnessFrameSchema, sent)));
    const tool = { session: "s", frame: { case: "tool", value: { output } } } as const;
    const told: HostFrameInit = { exchange: 1, frame: { case: "controller", value: tool } };
    expect(guest.resolved(JSON.parse(hostFrameText(told)))).toEqual(create(HostFrameSchema, told));
  });

  it("bytes come back as they were", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 50 }), (bytes) => {
        expect(guest.fromBase64(guest.toBase64(bytes))).toEqual(bytes);
      }),
    );
    expect(guest.toBase64(new TextEncoder().encode("hold"))).toBe("aG9sZA==");
  });

  it.each([
    ["no JSON", "{"],
    ["a number", "7"],
    ["a list", "[]"],
    ["null", "null"],
    ["bytes", '{"$b":"aGk="}'],
    ["an integer that is none", '{"exchange":{"$n":"1e9"}}'],
    ["an endless integer", `{"exchange":{"$n":"${"9".repeat(5000)}"}}`],
    ["a tag without its value", '{"exchange":{"$b":7}}'],
    ["a field of another type", '{"exchange":"one"}'],
    ["an integer out of range", '{"exchange":-1}'],
    ["a body of another type", '{"exchange":1,"frame":{"case":"event","value":"x"}}'],
  ])("that are %s are refused", (_what, text) => {
    expect(() => harnessFrameBytes(text, BOUNDS)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
  });

  it("cannot pass a field that the schema does not know, by any name", () => {
    const text = '{"exchange":1,"$unknown":[{"no":2,"wireType":2,"data":{"$b":"aGk="}}],"__proto__":{"frame":7},"other":1}';
    expect(fromBinary(HarnessFrameSchema, harnessFrameBytes(text, BOUNDS))).toEqual(create(HarnessFrameSchema, { exchange: 1 }));
  });

  it("are bounded before they are parsed, to the character and to the level", () => {
    const base = '{"exchange":1}';
    const text = base + " ".repeat(BOUNDS.frameChars - base.length);
    expect(harnessFrameBytes(text, BOUNDS)).toBeDefined();
    expect(() => harnessFrameBytes(`${text} `, BOUNDS)).toThrow(expect.objectContaining({ code: "resource_exhausted" }));
    expect(depthExceeds("[".repeat(30), 30)).toBe(false);
    expect(depthExceeds("[".repeat(31), 30)).toBe(true);
    expect(depthExceeds('"[[[[\\"[[["', 1)).toBe(false);
    expect(depthExceeds("[][][]{}{}", 1)).toBe(false);
    expect(() => harnessFrameBytes("[".repeat(5000), BOUNDS)).toThrow(expect.objectContaining({ code: "resource_exhausted" }));
  });
});
