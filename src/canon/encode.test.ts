import { create, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Fence, Seq } from "../base/ids.ts";
import { EventSchema, LogRecordSchema, type Event, type LogRecord } from "../gen/agentsessions/v1/common_pb.ts";
import { event, logRecord } from "../testing/events.ts";
import { decodeLogRecord, encodeEvent, encodeLogRecord, type RecordFields } from "./index.ts";

function fieldsOf(record: LogRecord): RecordFields {
  return {
    seq: Number(record.seq) as Seq,
    prevHash: record.prevHash,
    contentHash: record.contentHash,
    fence: Number(record.fence) as Fence,
    event: record.event ?? create(EventSchema),
  };
}

describe("the encoding of an event", () => {
  it("is byte for byte what the library writes, for any event", () => {
    fc.assert(
      fc.property(event(), (any) => {
        expect(Buffer.from(encodeEvent(any)).equals(toBinary(EventSchema, any))).toBe(true);
      }),
      { seed: 11, numRuns: 4000 },
    );
  });

  it("takes texts and bytes of any length, over every size of its buffer and of a length prefix", () => {
    for (const length of [127, 128, 129, 16_383, 16_384, 65_535, 65_536, 65_537, 200_000, 2_200_000]) {
      for (const text of ["a".repeat(length), "é".repeat(length), `${"a".repeat(length)}😀`]) {
        const long = create(EventSchema, {
          executionId: text,
          body: { case: "executionStart", value: { config: new Uint8Array(length).fill(7), inputCount: -1n } },
        });
        expect(Buffer.from(encodeEvent(long)).equals(toBinary(EventSchema, long))).toBe(true);
      }
    }
  });

  it("is the caller's: encoding another event does not change it", () => {
    const first = encodeEvent(create(EventSchema, { executionId: "first" }));
    const kept = first.slice();
    encodeEvent(create(EventSchema, { executionId: "other" }));
    expect(first).toEqual(kept);
  });

  it("stays as it is while events of all sizes are encoded after it, and some refused", () => {
    const sizes = [0, 1, 40, 700, 2_600, 2_700, 8_000, 8_200, 31_000, 33_000, 70_000, 1_100_000];
    const wrong = create(EventSchema, { body: { case: "tool", value: { id: "x".repeat(900), args: { no: undefined as never } } } });
    const encoded: (readonly [Event, Uint8Array])[] = [];
    for (let index = 0; index < 600; index++) {
      // The large ones come now and then, as they do.
      const size = sizes[index % 97 === 0 ? index % sizes.length : index % 5]!;
      const next = create(EventSchema, { executionId: `${index}`, body: { case: "error", value: { description: "ü".repeat(size) } } });
      encoded.push([next, encodeEvent(next)]);
      if (index % 7 === 0) expect(() => encodeEvent(wrong)).toThrow();
    }
    for (const [of, bytes] of encoded) expect(Buffer.from(bytes).equals(toBinary(EventSchema, of))).toBe(true);
  });

  it("is right after an event that was refused in the middle", () => {
    const wrong = create(EventSchema, { body: { case: "tool", value: { id: "x", args: { no: undefined as never } } } });
    expect(() => encodeEvent(wrong)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
    const right = create(EventSchema, { executionId: "after" });
    expect(encodeEvent(right)).toEqual(toBinary(EventSchema, right));
  });

  it("refuses integers that their fields cannot hold, as the library does", () => {
    for (const schemaVersion of [2 ** 31, -(2 ** 31) - 1, 0.5, NaN]) {
      expect(() => encodeEvent(create(EventSchema, { schemaVersion }))).toThrow(/32-bit/);
    }
    for (const inputTokens of [2n ** 63n, -(2n ** 63n) - 1n]) {
      const wrong = create(EventSchema, { body: { case: "usage", value: { inputTokens } } });
      expect(() => encodeEvent(wrong)).toThrow(/64-bit/);
    }
  });

  it("leaves out fields that the contract does not have", () => {
    const known = create(EventSchema, { executionId: "e" });
    const more: Event = { ...known, $unknown: [{ no: 99, wireType: 0, data: new Uint8Array([1]) }] };
    expect(encodeEvent(more)).toEqual(toBinary(EventSchema, known));
  });
});

describe("the encoding of a record", () => {
  it("is byte for byte what the library writes, and reads back", () => {
    fc.assert(
      fc.property(logRecord(), (record) => {
        const bytes = encodeLogRecord(fieldsOf(record));
        expect(Buffer.from(bytes).equals(toBinary(LogRecordSchema, record))).toBe(true);
        expect(Buffer.from(toBinary(LogRecordSchema, decodeLogRecord(bytes))).equals(bytes)).toBe(true);
      }),
      { seed: 12, numRuns: 2000 },
    );
  });
});

describe("reading a record", () => {
  it("refuses bytes that are no LogRecord with DATA_LOSS", () => {
    const bytes = encodeLogRecord(fieldsOf(create(LogRecordSchema, { prevHash: "abc", event: { executionId: "e" } })));
    // A cut between two fields, at 5, leaves a shorter record, which is legal; any other is refused.
    for (const length of [1, 2, 3, 4, 6, 7, 8, 9]) {
      const cut = bytes.subarray(0, length);
      expect(() => decodeLogRecord(cut), `cut at ${length}`).toThrow(expect.objectContaining({ code: "data_loss" }));
    }
    expect(bytes).toHaveLength(10);
    expect(() => decodeLogRecord(new Uint8Array([0x12, 1, 0xff]))).toThrow(/cannot be read/);
  });
});
