import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
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

  it("are at fault for a field that this version does not know, at any depth", () => {
    const more = Buffer.from([(15 << 3) | 0, 1]);
    const known = toBinary(LogRecordSchema, create(LogRecordSchema, { seq: 1n, event: { executionId: "e" } }));
    const cases = [
      Buffer.concat([known, more]),
      field(5, field(18, more)),
      recordWithArgs(more),
      recordWithArgs(field(1, field(1, Buffer.from("k")), field(2, Buffer.from([4 << 3, 1])), more)),
      recordWithArgs(field(1, field(1, Buffer.from("k")), field(2, Buffer.from([4 << 3, 1]), more))),
      field(5, field(9, field(2, field(1, Buffer.from("k")), more))),
      field(5, field(8, field(2, field(1, more)))),
    ];
    // The library reads all of them; a few leave no trace in what it returns.
    for (const bytes of cases) {
      expect(() => decodeLogRecord(bytes)).not.toThrow();
      expect(faultOf(bytes)).toMatch(/does not know/);
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
