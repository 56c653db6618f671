import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import fc from "fast-check";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { EventSchema, type Event } from "../gen/agentsessions/v1/common_pb.ts";
import { referenceEvent, referenceRecord } from "../testing/canonical-reference.ts";
import { event } from "../testing/events.ts";
import { testDigest as digest } from "../testing/ports.ts";
import { canonicalEvent, canonicalRecord, contentHash } from "./index.ts";

interface Vector {
  readonly name: string;
  readonly prev_hash: string;
  readonly seq: string;
  readonly event: JsonValue;
  readonly canonical?: string;
  readonly content_hash: string;
}

function vectors(): readonly Vector[] {
  return JSON.parse(readFileSync(new URL("vectors/canonical.json", import.meta.url), "utf8")) as Vector[];
}

function recordOf(vector: Vector): { event: Event; prevHash: string; seq: bigint } {
  return { event: fromJson(EventSchema, vector.event), prevHash: vector.prev_hash, seq: BigInt(vector.seq) };
}

describe("the canonical text of an event", () => {
  it.each(vectors())("reproduces the vector: $name", (vector) => {
    const record = recordOf(vector);
    expect(canonicalRecord(record)).toBe(vector.canonical ?? referenceRecord(record));
    expect(contentHash(record, digest)).toBe(vector.content_hash);
  });

  it("is what the slow reference path writes, for any event", () => {
    fc.assert(
      fc.property(event(), (any) => {
        expect(canonicalEvent(any)).toBe(referenceEvent(any));
      }),
      { seed: 1, numRuns: 4000 },
    );
  });

  it("keeps seq exact past 2^53 and an empty prev_hash in the envelope", () => {
    const record = { event: create(EventSchema), prevHash: "", seq: 2n ** 53n + 1n };
    expect(canonicalRecord(record)).toBe('{"event":{},"prev_hash":"","seq":"9007199254740993"}');
    expect(canonicalRecord(record)).toBe(referenceRecord(record));
  });

  it("writes every message that is set but empty as {}", () => {
    const empty = create(EventSchema, { actor: {}, body: { case: "end", value: { error: {} } } });
    expect(canonicalEvent(empty)).toBe('{"actor":{},"end":{"error":{}}}');
    const part = create(EventSchema, { body: { case: "message", value: { parts: [{}, { part: { case: "data", value: {} } }] } } });
    expect(canonicalEvent(part)).toBe('{"message":{"parts":[{},{"data":{}}]}}');
  });

  it("writes an enum value that it does not know by its number", () => {
    expect(canonicalEvent(create(EventSchema, { kind: 99 as Event["kind"] }))).toBe('{"kind":99}');
  });

  it("sorts keys by UTF-16 code units, where a surrogate comes before U+E000", () => {
    const data = { "\ue000": 1, "\u{10000}": 2, b: 3, "": 4, 10: 5, 9: 6 };
    const keyed = create(EventSchema, { body: { case: "tool", value: { args: data } } });
    expect(canonicalEvent(keyed)).toBe('{"tool":{"args":{"":4,"10":5,"9":6,"b":3,"\u{10000}":2,"\ue000":1}}}');
  });

  it("writes numbers in ECMAScript's form", () => {
    const numbers = [-0, 1e21, 1e20, 1e-7, 1e-6, 2 ** 53 + 1, 0.1, 333333333.3333333, 1e23, 5e-324];
    const listed = create(EventSchema, { body: { case: "result", value: { output: { numbers } } } });
    expect(canonicalEvent(listed)).toBe(
      '{"result":{"output":{"numbers":[0,1e+21,100000000000000000000,1e-7,0.000001,9007199254740992,0.1,333333333.3333333,1e+23,5e-324]}}}',
    );
  });

  it.each([
    ["NaN", { n: NaN }],
    ["an infinity", { list: [[-Infinity]] }],
    ["a lone surrogate in a value", { text: "\ud800" }],
    ["a lone surrogate in a key", { "\udc00": 1 }],
    ["a value that is no JSON", { missing: undefined as never }],
  ])("refuses %s in a Struct", (_, args) => {
    const wrong = create(EventSchema, { body: { case: "tool", value: { args } } });
    expect(() => canonicalEvent(wrong)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
  });

  it.each([
    ["before year 1", { seconds: -62_135_596_801n, nanos: 0 }],
    ["after year 9999", { seconds: 253_402_300_800n, nanos: 0 }],
    ["with negative nanos", { seconds: 0n, nanos: -1 }],
    ["with a second of nanos", { seconds: 0n, nanos: 1_000_000_000 }],
  ])("refuses a timestamp %s", (_, ts) => {
    expect(() => canonicalEvent(create(EventSchema, { ts }))).toThrow(/has no canonical form/);
  });

  it("hashes seq, prev_hash and every field: a change of any changes the hash", () => {
    const base = { event: create(EventSchema, { executionId: "e" }), prevHash: "aa", seq: 7n };
    const hashes = [
      base,
      { ...base, seq: 8n },
      { ...base, prevHash: "ab" },
      { ...base, event: create(EventSchema, { executionId: "f" }) },
    ].map((record) => contentHash(record, digest));
    expect(new Set(hashes).size).toBe(4);
  });
});
