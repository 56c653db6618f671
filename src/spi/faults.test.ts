import { describe, expect, it } from "vitest";
import { HoldfastError } from "../base/index.ts";
import { failureStatusOf, HarnessFailure, readableThrow } from "./faults.ts";

const hostile: readonly (readonly [string, unknown])[] = [
  ["a proxy whose every trap throws", new Proxy({}, { get: fail, getPrototypeOf: fail, has: fail, ownKeys: fail })],
  ["a proxy of an error", new Proxy(new Error("x"), { get: fail })],
  ["an error whose message is a symbol", Object.assign(new Error(), { message: Symbol("x") })],
  ["an error whose name throws", Object.defineProperty(new Error(), "name", { get: fail })],
  ["an error whose stack throws", Object.defineProperty(new Error(), "stack", { get: fail })],
  ["an error whose cause cannot be read", new Error("x", { cause: Object.defineProperty(new Error(), "message", { get: fail }) })],
  ["several errors, one of which cannot be read", new AggregateError([new Error("x"), new Proxy({}, { getPrototypeOf: fail })])],
  ["an object", {}],
  ["a function", () => undefined],
];

function fail(): never {
  throw new Error("no");
}

describe("what a harness throws", () => {
  it.each(hostile)("is safe to look at: %s", (_what, thrown) => {
    const readable = readableThrow(thrown);
    expect(readable).toBeInstanceOf(Error);
    expect((readable as Error).message).toBe("what was thrown cannot be read");
  });

  it.each([
    new Error("x"),
    new HoldfastError("aborted", "x"),
    new HarnessFailure(9, "x"),
    new AggregateError([new Error("x")]),
    "text",
    7,
    undefined,
    null,
  ])("is itself where it can be read: %s", (thrown) => {
    expect(readableThrow(thrown)).toBe(thrown);
  });
});

describe("a harness's failure", () => {
  it("has the status of an error, and UNKNOWN for every other number", () => {
    const errors = Array.from({ length: 16 }, (_, index) => index + 1);
    expect(errors.map((code) => new HarnessFailure(code, "x").grpcCode)).toEqual(errors);
    for (const code of [0, -1, 17, 2 ** 31 - 1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(new HarnessFailure(code, "x")).toMatchObject({ grpcCode: 2, message: "x" });
      expect(failureStatusOf(code)).toBe(2);
    }
  });
});
