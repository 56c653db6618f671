import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LogRecordSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { DeltaSchema, ExecUpdateSchema, SessionSchema } from "../gen/agentsessions/v1/session_pb.ts";
import { TailUpdateSchema } from "../gen/holdfast/v1/journal_pb.ts";
import { unwrapRecord, wrapRecord } from "./update.ts";

const recordOf = (textLength: number): Uint8Array =>
  toBinary(LogRecordSchema, create(LogRecordSchema, { seq: 7n, contentHash: "c".repeat(textLength), event: { executionId: "turn" } }));

describe("a record inside an update", () => {
  it("is what the library writes for the same update, at every length of the length", () => {
    for (const textLength of [0, 1, 100, 127, 128, 16_000, 16_383, 16_384, 2_097_151, 2_097_152]) {
      const bytes = recordOf(textLength);
      const record = fromBinary(LogRecordSchema, bytes);
      const update = create(ExecUpdateSchema, { update: { case: "record", value: record } });
      expect(Buffer.compare(wrapRecord(bytes), toBinary(ExecUpdateSchema, update))).toBe(0);
    }
  });

  it("reads the same as ExecUpdate and as TailUpdate", () => {
    const update = wrapRecord(recordOf(300));
    expect(fromBinary(ExecUpdateSchema, update).update.case).toBe("record");
    expect(fromBinary(TailUpdateSchema, update).update.case).toBe("record");
  });

  it("is taken out again without being decoded, an empty one too", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40_000 }), (bytes) => {
        expect(unwrapRecord(wrapRecord(bytes))).toEqual(Buffer.from(bytes));
      }),
    );
  });

  it("is not seen in other updates", () => {
    const session = create(ExecUpdateSchema, { update: { case: "session", value: create(SessionSchema, { model: "echo" }) } });
    const delta = create(ExecUpdateSchema, { update: { case: "delta", value: create(DeltaSchema, { chunk: "x" }) } });
    for (const update of [session, delta]) expect(unwrapRecord(toBinary(ExecUpdateSchema, update))).toBeUndefined();
  });

  it("is not seen in what is cut off, followed by more, or no update at all", () => {
    const whole = wrapRecord(recordOf(300));
    expect(unwrapRecord(whole.subarray(0, -1))).toBeUndefined();
    expect(unwrapRecord(Buffer.concat([whole, Buffer.from([0])]))).toBeUndefined();
    expect(unwrapRecord(new Uint8Array())).toBeUndefined();
    expect(unwrapRecord(Uint8Array.of(0x0a))).toBeUndefined();
    expect(unwrapRecord(Uint8Array.of(0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01))).toBeUndefined();
  });
});
