import { create, fromBinary, toBinary, type DescMessage } from "@bufbuild/protobuf";
import { ListValueSchema, StructSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EventSchema, LogRecordSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { event, logRecord } from "../testing/events.ts";
import { decodeLogRecord, readLogRecord } from "./index.ts";

/** One length-delimited field. */
function field(number: number, ...contents: Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  return Buffer.concat([varint((number << 3) | 2), varint(content.length), content]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (; value >= 0x80; value >>>= 7) bytes.push((value & 0x7f) | 0x80);
  return Buffer.from([...bytes, value]);
}

/** A record whose event is a tool call with `struct` for its arguments. */
function recordWithArgs(struct: Uint8Array): Uint8Array {
  return field(5, field(10, field(3, struct)));
}

/** A record with `levels` reasoning parts inside one another, two messages each, below record, event, message and part. */
function recordWithSummaries(levels: number): Uint8Array {
  let part: Uint8Array = new Uint8Array();
  for (let level = 0; level < levels; level++) part = field(4, field(5, part));
  return field(5, field(8, field(2, part)));
}

/** A Value that is null. */
const NULL_VALUE = Buffer.from([1 << 3, 0]);

interface MessagePlace {
  /** The numbers of the fields that lead to the message, from the record on. */
  readonly path: readonly number[];
  /** The numbers of its fields. */
  readonly fields: readonly number[];
  /** What it must hold at least: a Value its kind, an entry of a Struct its value. */
  readonly least: Uint8Array;
}

/** Every type of message that a record can hold, at the first place where it is met; entries of maps are messages, too. */
function everyMessage(): MessagePlace[] {
  const places: MessagePlace[] = [];
  const seen = new Set<string>();
  const visit = (desc: DescMessage, path: readonly number[]): void => {
    if (seen.has(desc.typeName)) return;
    seen.add(desc.typeName);
    places.push({ path, fields: desc.fields.map(({ number }) => number), least: desc === ValueSchema ? NULL_VALUE : new Uint8Array() });
    for (const inner of desc.fields) {
      const at = [...path, inner.number];
      if (inner.fieldKind === "map") {
        places.push({ path: at, fields: [1, 2], least: inner.mapKind === "message" ? field(2, NULL_VALUE) : new Uint8Array() });
        if (inner.mapKind === "message") visit(inner.message, [...at, 2]);
      }
      if (inner.fieldKind === "message" || (inner.fieldKind === "list" && inner.listKind === "message")) visit(inner.message, at);
    }
  };
  visit(LogRecordSchema, []);
  return places;
}

/** `content` in the message at `path`. */
function within(path: readonly number[], content: Uint8Array): Uint8Array {
  return path.reduceRight((inner, number) => field(number, inner), content);
}

/** What is wrong with the bytes; undefined when nothing is. */
function faultOf(bytes: Uint8Array): string | undefined {
  const reading = readLogRecord(bytes);
  return reading.kind === "fault" ? reading.reason : undefined;
}

describe("a record that is read", () => {
  it("is what the library reads, for any record", () => {
    fc.assert(
      fc.property(logRecord(), (record) => {
        const bytes = toBinary(LogRecordSchema, record);
        expect(readLogRecord(bytes)).toEqual({ kind: "read", record: fromBinary(LogRecordSchema, bytes) });
      }),
      { seed: 21, numRuns: 4000 },
    );
  });

  it("is what the library reads where messages, maps and lists come in pieces, which are merged", () => {
    fc.assert(
      fc.property(fc.array(logRecord(), { minLength: 2, maxLength: 3 }), (records) => {
        const bytes = Buffer.concat(records.map((record) => toBinary(LogRecordSchema, record)));
        expect(readLogRecord(bytes)).toEqual({ kind: "read", record: fromBinary(LogRecordSchema, bytes) });
      }),
      { seed: 22, numRuns: 4000 },
    );
  });

  it("is what the library reads where the same arm comes twice", () => {
    const arm = fc.record({ first: event(), second: event() }).filter(({ first, second }) => first.body.case === second.body.case);
    fc.assert(
      fc.property(arm, ({ first, second }) => {
        const bytes = field(5, toBinary(EventSchema, first), toBinary(EventSchema, second));
        expect(readLogRecord(bytes)).toEqual({ kind: "read", record: fromBinary(LogRecordSchema, bytes) });
      }),
      { seed: 23, numRuns: 2000 },
    );
  });

  it("is what the library reads where varints are longer than they need be, or wider than their fields", () => {
    const widths = [
      [0x05],
      [0x85, 0x00],
      [0xff, 0xff, 0xff, 0xff, 0x0f],
      [0xff, 0xff, 0xff, 0xff, 0x7f],
      [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
    ];
    const wide = [
      ...widths,
      [...Array<number>(9).fill(0xff), 0x01],
      [...Array<number>(9).fill(0xff), 0x7f],
      [...Array<number>(6).fill(0x81), 0x01],
      [...Array<number>(7).fill(0x81), 0x01],
    ];
    for (const bytes of wide) {
      for (const [number, inside] of [[1], [4], [5, 4], [5, 7], [5, 3, 1], [5, 3, 2], [5, 13, 2], [5, 19, 3]].map(
        (path) => [path.at(-1)!, path.slice(0, -1)] as const,
      )) {
        let record: Uint8Array = Buffer.from([number << 3, ...bytes]);
        for (const outer of inside.toReversed()) record = field(outer, record);
        expect(readLogRecord(record), `${number} in ${inside.join(".")}: ${bytes.join(" ")}`).toEqual({
          kind: "read",
          record: fromBinary(LogRecordSchema, record),
        });
      }
    }
  });

  it("is what the library reads where a value comes twice: the last one counts, Structs and lists are merged", () => {
    const text = (value: string): Buffer => field(3, Buffer.from(value));
    const list = (value: string): Buffer => field(6, field(1, text(value)));
    const object = (key: string): Buffer => field(5, field(1, field(1, Buffer.from(key)), field(2, text(key))));
    for (const kinds of [
      [text("a"), text("b")],
      [list("a"), list("b")],
      [object("a"), object("b")],
      [object("a"), list("b")],
      [list("a"), object("b")],
      [object("a"), NULL_VALUE],
      [NULL_VALUE, object("a")],
      [NULL_VALUE, list("a")],
    ]) {
      const inOneValue = recordWithArgs(field(1, field(1, Buffer.from("k")), field(2, ...kinds)));
      const inTwoValues = recordWithArgs(field(1, ...kinds.map((kind) => field(2, kind))));
      const inTwoEntries = recordWithArgs(Buffer.concat(kinds.map((kind) => field(1, field(2, kind)))));
      for (const bytes of [inOneValue, inTwoValues, inTwoEntries]) {
        expect(readLogRecord(bytes)).toEqual({ kind: "read", record: fromBinary(LogRecordSchema, bytes) });
      }
    }
  });

  it("has views of its bytes", () => {
    const bytes = field(5, field(19, field(1, Buffer.from([1, 2, 3]))));
    const { event: start } = decodeLogRecord(bytes);
    expect(start?.body.case === "executionStart" && start.body.value.config.buffer === bytes.buffer).toBe(true);
  });
});

describe("bytes of a record", () => {
  it("may come in an order and a form that we do not write, and then read the same", () => {
    const long = Buffer.from([(1 << 3) | 0, 0x85, 0x80, 0x00]);
    const odd = Buffer.concat([field(5, field(2, Buffer.from("first"))), field(5, field(2, Buffer.from("last"))), long]);
    expect(faultOf(odd)).toBeUndefined();
    const record = decodeLogRecord(odd);
    expect(record.seq).toBe(5n);
    expect(record.event?.executionId).toBe("last");
  });

  it("are at fault for a field that this version does not know, in any message", () => {
    const more = Buffer.from([...varint(30 << 3), 1]);
    const faults = everyMessage().map(({ path, least }) => [path, faultOf(within(path, Buffer.concat([least, more])))]);
    expect(faults).toEqual(faults.map(([path]) => [path, "holds a field that this version does not know"]));
    expect(faults.length).toBeGreaterThan(25);
    // The library passes over most of them, and over some without a trace.
    expect(() => decodeLogRecord(recordWithArgs(field(1, field(2, NULL_VALUE), more)))).not.toThrow();
  });

  it("are at fault for any field of the wrong wire type, in any message", () => {
    for (const { path, fields } of everyMessage()) {
      const wrong = fields.map((number) => faultOf(within(path, Buffer.from([...varint((number << 3) | 5), 0, 0, 0, 0]))));
      expect(wrong, path.join(".")).toEqual(fields.map(() => "holds a field of the wrong wire type"));
    }
  });

  it("have the depth of their deepest message, however many they hold", () => {
    for (const { path, least } of everyMessage()) {
      const many = Buffer.concat(Array.from({ length: 120 }, () => within(path, least)));
      expect(faultOf(Buffer.concat([many, recordWithSummaries(48)])), path.join(".")).toBeUndefined();
      expect(faultOf(Buffer.concat([many, recordWithSummaries(49)])), path.join(".")).toBe("is nested too deeply");
    }
  });

  it("are at fault for a field of the wrong wire type, which the library would take for the right one", () => {
    const bytes = field(5, Buffer.from([(2 << 3) | 0, 1, 0x41]));
    expect(decodeLogRecord(bytes).event?.executionId).toBe("A");
    expect(faultOf(bytes)).toMatch(/wrong wire type/);
  });

  it("are at fault for a group", () => {
    expect(faultOf(new Uint8Array([(5 << 3) | 3, (5 << 3) | 4]))).toMatch(/wrong wire type/);
  });

  it("are at fault for a value without a kind, which the library would take for null", () => {
    const none = create(ValueSchema);
    const structs = [
      create(StructSchema, { fields: { k: none } }),
      create(StructSchema, { fields: { k: { kind: { case: "listValue", value: create(ListValueSchema, { values: [none] }) } } } }),
      create(StructSchema, { fields: { k: { kind: { case: "structValue", value: { fields: { inner: none } } } } } }),
    ];
    for (const struct of structs) expect(faultOf(recordWithArgs(toBinary(StructSchema, struct)))).toMatch(/without a kind/);
    const withoutValue = recordWithArgs(field(1, field(1, Buffer.from("k"))));
    expect(decodeLogRecord(withoutValue).event?.body).toMatchObject({ value: { args: { k: null } } });
    expect(faultOf(withoutValue)).toMatch(/without a kind/);
  });

  it("are at fault when they end in the middle of a field", () => {
    const bytes = toBinary(LogRecordSchema, create(LogRecordSchema, { event: { ts: { seconds: 300n }, executionId: "e" } }));
    for (let length = 1; length < bytes.length; length++) {
      expect(faultOf(bytes.subarray(0, length)), `cut at ${length}`).toMatch(/middle of a field/);
    }
    expect(faultOf(new Uint8Array(12).fill(0xff))).toMatch(/middle of a field/);
  });

  it("are at fault when nested deeper than the library reads", () => {
    expect(faultOf(recordWithSummaries(48))).toBeUndefined();
    expect(() => decodeLogRecord(recordWithSummaries(48))).not.toThrow();
    expect(faultOf(recordWithSummaries(49))).toMatch(/too deeply/);
    expect(() => decodeLogRecord(recordWithSummaries(49))).toThrow(expect.objectContaining({ code: "data_loss" }));
  });
});
