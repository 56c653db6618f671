import { create, type MessageInitShape } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MessageSchema, type Message } from "../gen/agentsessions/v1/common_pb.ts";
import { modelRequest } from "../testing/events.ts";
import { testDigest as digest } from "../testing/ports.ts";
import { inputHash, InputPrefix, type HashedRequest } from "./index.ts";

const SIZE_MAX = 1_000_000;

const said = (init: MessageInitShape<typeof MessageSchema>): Message => create(MessageSchema, init);
const text = (words: string): Message => said({ role: "user", parts: [{ part: { case: "text", value: { text: words } } }] });
const frozen = <Value>(value: Value): Value => {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
  for (const inner of Object.values(value)) frozen(inner);
  return Object.freeze(value);
};
const thinking = (bytes: Uint8Array<ArrayBuffer>): Message =>
  frozen(said({ role: "assistant", parts: [{ part: { case: "reasoning", value: { opaque: { case: "opaqueBytes", value: bytes } } } }] }));

/** The prefix of a request, grown as far as it goes. */
const grown = (request: HashedRequest, sizeMax = SIZE_MAX): InputPrefix => {
  const prefix = new InputPrefix(request.model, digest);
  prefix.extend(request, sizeMax);
  return prefix;
};

describe("the beginning of a request that was hashed before", () => {
  it("leads to the input hash of every request that begins with it, whatever is frozen of it and wherever it ends", () => {
    fc.assert(
      fc.property(modelRequest(), fc.array(fc.boolean(), { maxLength: 8 }), fc.nat(8), (request, which, cut) => {
        for (const [index, message] of request.messages.entries()) if (which[index] === true) frozen(message);
        const prefix = grown({ ...request, messages: request.messages.slice(0, cut) });
        expect(prefix.isBeginningOf(request)).toBe(true);
        expect(prefix.inputHash(request)).toBe(inputHash(request, digest));
        prefix.extend(request, SIZE_MAX);
        expect(prefix.inputHash(request)).toBe(inputHash(request, digest));
      }),
      { seed: 7, numRuns: 3_000 },
    );
  });

  it("ends where a message can still change", () => {
    const messages = [frozen(text("a")), text("b"), frozen(text("c"))];
    expect(grown({ model: "m", messages }).length).toBe(1);
    const halfFrozen = Object.freeze(text("a"));
    expect(grown({ model: "m", messages: [halfFrozen] }).length).toBe(0);
  });

  it("is not that of another model, of other objects, or of fewer", () => {
    const messages = [frozen(text("a")), frozen(text("b"))];
    const prefix = grown({ model: "m", messages });
    expect(prefix.isBeginningOf({ model: "m", messages: [...messages, text("c")] })).toBe(true);
    expect(prefix.isBeginningOf({ model: "n", messages })).toBe(false);
    expect(prefix.isBeginningOf({ model: "m", messages: [messages[0]!, frozen(text("b"))] })).toBe(false);
    expect(prefix.isBeginningOf({ model: "m", messages: messages.slice(0, 1) })).toBe(false);
  });

  it("is that of messages which are made anew around the same values, and of no others that look like them", () => {
    const value = frozen({ $typeName: "agentsessions.v1.TextPart" as const, text: "a" });
    const around = (role: string, ...values: (typeof value)[]): Message =>
      said({ role, parts: values.map((each) => ({ part: { case: "text", value: each } })) });
    const prefix = grown({ model: "m", messages: [frozen(around("user", value))] });
    for (const messages of [[frozen(around("user", value))], [around("user", value)]]) {
      expect(prefix.isBeginningOf({ model: "m", messages })).toBe(true);
      expect(prefix.inputHash({ model: "m", messages })).toBe(inputHash({ model: "m", messages }, digest));
    }
    for (const message of [
      around("assistant", value),
      around("user", value, value),
      around("user"),
      around("user", frozen({ ...value })),
    ]) {
      expect(prefix.isBeginningOf({ model: "m", messages: [message] })).toBe(false);
    }
    // One that can still change was known for what it said then.
    const loose = around("user", value);
    expect(prefix.isBeginningOf({ model: "m", messages: [loose] })).toBe(true);
    loose.role = "system";
    expect(prefix.isBeginningOf({ model: "m", messages: [loose] })).toBe(false);
  });

  it.each([
    ["an array", Uint8Array.of(1, 2, 3)],
    ["a Node Buffer, whose slices share its memory", Buffer.from([1, 2, 3])],
  ])("notices bytes that were changed, which no freezing prevents: %s", (_, bytes) => {
    const messages = [thinking(bytes)];
    const prefix = grown({ model: "m", messages });
    expect(prefix.isBeginningOf({ model: "m", messages })).toBe(true);
    bytes[1] = 9;
    expect(prefix.isBeginningOf({ model: "m", messages })).toBe(false);
  });

  it("takes in any number of messages", () => {
    const message = frozen(said({ role: "user" }));
    const messages = Array.from({ length: 200_000 }, () => message);
    expect(grown({ model: "m", messages }, 100_000_000).length).toBe(messages.length);
  });

  it("grows no further than it may", () => {
    const messages = [frozen(text("a")), frozen(text("b"))];
    const size = grown({ model: "m", messages: messages.slice(0, 1) }).size;
    expect(grown({ model: "m", messages }, size).length).toBe(1);
    expect(grown({ model: "m", messages }, size - 1).length).toBe(0);
    expect(grown({ model: "m", messages }, 2 * size).length).toBe(2);
  });

  it("refuses what the whole hash refuses, in the same words, and is as it was", () => {
    const bad = frozen(text("\ud800"));
    const request = { model: "m", messages: [frozen(text("a")), bad] };
    const prefix = new InputPrefix("m", digest);
    const words = (work: () => unknown): unknown => {
      try {
        return work();
      } catch (error) {
        return (error as Error).message;
      }
    };
    expect(words(() => prefix.extend(request, SIZE_MAX))).toBe(words(() => inputHash(request, digest)));
    const sound = { ...request, messages: request.messages.slice(0, 1) };
    expect(prefix.inputHash(sound)).toBe(inputHash(sound, digest));
    const circle: { self?: unknown } = {};
    circle.self = circle;
    const around = frozenCircle(circle);
    expect(words(() => grown(around).inputHash(around))).toBe(words(() => inputHash(around, digest)));
  });
});

/** A request with a message whose data holds itself. */
function frozenCircle(circle: object): HashedRequest {
  const message = said({ role: "user", parts: [{ part: { case: "data", value: {} } }] });
  const [part] = message.parts;
  if (part?.part.case === "data") Object.assign(part.part.value, { data: Object.freeze(circle) });
  for (const inner of [part?.part.value, part?.part, part, message.parts]) Object.freeze(inner);
  return { model: "m", messages: [Object.freeze(message)] };
}
