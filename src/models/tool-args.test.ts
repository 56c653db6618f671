import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { inputHash, normaliseMessage } from "../canon/index.ts";
import { MessageSchema, type Message } from "../gen/agentsessions/v1/common_pb.ts";
import { testDigest } from "../testing/ports.ts";
import { ARGS_DEPTH_MAX, parseToolArgs } from "./tool-args.ts";

function messageWith(args: NonNullable<ReturnType<typeof parseToolArgs>>): Message {
  return create(MessageSchema, {
    role: "assistant",
    parts: [{ part: { case: "toolCall", value: { id: "c", tool: "t", args } } }],
  });
}

describe("tool arguments", () => {
  it("are the JSON object that the model wrote", () => {
    expect(parseToolArgs('{"path":"a.txt","lines":[1,2.5,null,true],"deep":{"x":{}}}')).toEqual({
      path: "a.txt",
      lines: [1, 2.5, null, true],
      deep: { x: {} },
    });
  });

  it.each(["", "  ", "\n"])("are empty for %j", (text) => {
    expect(parseToolArgs(text)).toEqual({});
  });

  it.each(['{"path": "a', "null", "[1]", '"text"', "5", "nonsense", '{"n":1e999}', '{"n":9007199254740993}', '{"n":[-1e300]}'])(
    "are absent for %s",
    (text) => {
      expect(parseToolArgs(text)).toBeUndefined();
    },
  );

  it("have well-formed strings, in keys too", () => {
    expect(parseToolArgs('{"a\\ud800":"b\\udc00"}')).toEqual({ "a\ufffd": "b\ufffd" });
  });

  it("take a key that JavaScript gives a meaning as a key", () => {
    const args = parseToolArgs('{"__proto__":{"admin":true},"constructor":1}');
    expect(Object.keys(args ?? {})).toEqual(["__proto__", "constructor"]);
    expect(Object.getPrototypeOf(args)).toBe(Object.prototype);
  });

  const nested = (depth: number): string => `${'{"a":'.repeat(depth - 1)}{}${"}".repeat(depth - 1)}`;

  it("are absent when they are nested too deeply for the record", () => {
    expect(parseToolArgs(nested(ARGS_DEPTH_MAX))).toBeDefined();
    expect(parseToolArgs(nested(ARGS_DEPTH_MAX + 1))).toBeUndefined();
  });

  it("can always be recorded and hashed once they were taken", () => {
    const json = fc.json({ maxDepth: 40, stringUnit: "binary" });
    const deepest = fc.constantFrom(nested(ARGS_DEPTH_MAX), `{"a":${"[".repeat(ARGS_DEPTH_MAX - 1)}1${"]".repeat(ARGS_DEPTH_MAX - 1)}}`);
    fc.assert(
      fc.property(fc.oneof(json, deepest), (text) => {
        const args = parseToolArgs(`{"value":${text}}`) ?? parseToolArgs(text);
        if (args === undefined) return;
        const message = normaliseMessage(messageWith(args));
        inputHash({ model: "m", messages: [message] }, testDigest);
      }),
      { seed: 11 },
    );
  });
});
