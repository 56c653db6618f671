import { toBinary, create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Fence, Seq } from "../../base/index.ts";
import { contentHash, encodeLogRecord } from "../../canon/index.ts";
import { LogRecordSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { event } from "../../testing/events.ts";
import { testDigest } from "../../testing/ports.ts";
import { shortened, wholeBytes } from "./record-bytes.ts";

const HASH = "0123456789abcdef".repeat(4);
const OTHER = "fedcba9876543210".repeat(4);

/** A field of a hash, by its number. */
const hashField = (number: number, hash: string): number[] => [(number << 3) | 2, hash.length, ...Buffer.from(hash)];
const restored = (bytes: Uint8Array, hash = HASH): Uint8Array => wholeBytes(shortened(bytes, hash), hash);

describe("the bytes of a record in the file", () => {
  it("are read as they were written, and take 65 bytes less", () => {
    fc.assert(
      fc.property(event(), fc.constantFrom(1, 2, 127, 128, 99_999, Number.MAX_SAFE_INTEGER), fc.boolean(), (value, seq, isFirst) => {
        const prevHash = isFirst ? "" : OTHER;
        const hash = contentHash({ event: value, prevHash, seq: seq as Seq }, testDigest);
        const bytes = encodeLogRecord({ seq: seq as Seq, prevHash, contentHash: hash, fence: 3 as Fence, event: value });
        expect(shortened(bytes, hash)).toHaveLength(bytes.length - 65);
        expect(restored(bytes, hash)).toEqual(bytes);
      }),
      { seed: 5, numRuns: 500 },
    );
  });

  it("are kept as they are where another encoder put the hash elsewhere, left it out, or has it twice", () => {
    const library = toBinary(LogRecordSchema, create(LogRecordSchema, { seq: 7n, prevHash: OTHER, contentHash: HASH, fence: 1n }));
    expect(shortened(library, HASH)).toHaveLength(library.length - 65);
    const unusual = [
      [...hashField(3, HASH), 0x08, 7],
      [0x08, 7, 0x20, 1, ...hashField(3, HASH)],
      [0x08, 7, ...hashField(2, OTHER)],
      [...hashField(2, OTHER), 0x08, 7, ...hashField(3, HASH)],
      [0x08, 7, 0x1a, 3, 1, 2, 3],
      [0x08, 7, ...hashField(3, HASH).slice(0, 20)],
      [0x08, 7, ...hashField(3, OTHER)],
      [],
    ].map((bytes) => Uint8Array.from(bytes));
    for (const bytes of unusual) expect(restored(bytes)).toEqual(bytes);
    const twice = Uint8Array.from([0x08, 0x87, 0x00, ...hashField(3, HASH), ...hashField(3, HASH), 0x20, 1]);
    expect(restored(twice)).toEqual(twice);
    const longSeq = Uint8Array.from([0x08, 0x87, 0x80, 0x80, 0x00, ...hashField(2, OTHER), ...hashField(3, HASH)]);
    expect(restored(longSeq)).toEqual(longSeq);
  });

  it("are a copy, also of a Node Buffer: the record that others go on reading stays as it was", () => {
    for (const rest of [[0x20, 1], hashField(3, HASH)]) {
      const bytes = Buffer.from([0x08, 0x87, 0x01, ...hashField(2, OTHER), ...hashField(3, HASH), ...rest]);
      const before = Uint8Array.from(bytes);
      expect(restored(bytes)).toEqual(before);
      expect(Uint8Array.from(bytes)).toEqual(before);
    }
  });

  it("of any kind come back", () => {
    const pieces = fc.oneof(
      fc.constantFrom([0x08, 7], [0x08, 0x87, 0x01], [0x20, 2], hashField(2, OTHER), hashField(3, HASH), hashField(3, OTHER), [0x2a, 1, 0]),
      fc.array(fc.nat(255), { maxLength: 4 }),
    );
    fc.assert(
      // No record's bytes begin with a zero, which is no tag: what can be read as a record is all that is written.
      fc.property(fc.array(pieces, { maxLength: 6 }), (parts) => {
        const bytes = Uint8Array.from(parts.flat());
        fc.pre(bytes[0] !== 0);
        expect(restored(bytes)).toEqual(bytes);
      }),
      { seed: 6, numRuns: 5_000 },
    );
  });
});
