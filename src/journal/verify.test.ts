import { clone, create, equals, fromJson, toBinary, type JsonValue } from "@bufbuild/protobuf";
import fc from "fast-check";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Fence, Seq } from "../base/ids.ts";
import { decodeLogRecord } from "../canon/index.ts";
import { EventKind, LogRecordSchema, type LogRecord } from "../gen/agentsessions/v1/common_pb.ts";
import { event } from "../testing/events.ts";
import { testDigest } from "../testing/ports.ts";
import { chainOf, exported, sampleEvents } from "../testing/sample-journal.ts";
import { chainTamperings, fieldTamperings, rehashed, truncations } from "../testing/tampering.ts";
import { createChainVerifier, type ChainVerdict, type Head, type StoredRecord, type VerifiableRecord } from "./index.ts";

const sample = chainOf(sampleEvents());
const headOf = (records: readonly StoredRecord[]): Head => ({ seq: records.length as Seq, hash: records.at(-1)?.contentHash ?? "" });

function verify(records: Iterable<VerifiableRecord>, expectedHead?: Head): ChainVerdict {
  const verifier = createChainVerifier(testDigest);
  verifier.pushPage(records);
  return verifier.finish(expectedHead);
}

/** The fault of a chain that is broken. */
function faultOf(records: Iterable<VerifiableRecord>, expectedHead?: Head): Extract<ChainVerdict, { kind: "broken" }>["fault"] {
  const verdict = verify(records, expectedHead);
  if (verdict.kind === "broken") return verdict.fault;
  return expect.fail("the chain was called intact");
}

const helloJournal = JSON.parse(readFileSync(new URL("../canon/vectors/journal-hello.json", import.meta.url), "utf8")) as {
  records: JsonValue[];
};
const hello = helloJournal.records.map((record) => fromJson(LogRecordSchema, record));

describe("an intact chain", () => {
  it("is another implementation's journal, as messages and as bytes", () => {
    const head = { seq: 4 as Seq, hash: "1b0f72670340a5c139b39a2922bca9fa202e191a4d610f2211f53a501f3ab5fa" };
    expect(verify(hello, head)).toEqual({ kind: "intact", records: 4, head });
    expect(
      verify(
        hello.map((record) => toBinary(LogRecordSchema, record)),
        head,
      ),
    ).toEqual({ kind: "intact", records: 4, head });
  });

  it("is any chain that was sealed from normalised events, with its head", () => {
    fc.assert(
      fc.property(fc.array(event({ scope: "recordable" }), { maxLength: 6 }), (events) => {
        const records = chainOf(events);
        const head = headOf(records);
        expect(verify(records, head)).toEqual({ kind: "intact", records: records.length, head });
        expect(
          verify(
            records.map(({ bytes }) => decodeLogRecord(bytes)),
            head,
          ).kind,
        ).toBe("intact");
      }),
      { seed: 51, numRuns: 2000 },
    );
  });

  it("may come in pages, and may begin behind a record that is trusted already", () => {
    const verifier = createChainVerifier(testDigest, headOf(sample.slice(0, 5)));
    expect(verifier.pushPage(sample.slice(5, 9))).toBeUndefined();
    for (const record of sample.slice(9)) expect(verifier.push(record)).toBeUndefined();
    expect(verifier.finish(headOf(sample))).toEqual({ kind: "intact", records: sample.length - 5, head: headOf(sample) });
  });

  it("may be encoded by a writer that orders fields in another way", () => {
    // The event first, then the envelope: the fields of the record in the opposite order.
    const odd = sample.map(({ bytes }) => {
      const { seq, prevHash, contentHash, fence, event: body } = decodeLogRecord(bytes);
      const parts = [{ event: body! }, { fence }, { contentHash }, { prevHash }, { seq }];
      return Buffer.concat(parts.map((part) => toBinary(LogRecordSchema, create(LogRecordSchema, part))));
    });
    expect(odd[0]).not.toEqual(Buffer.from(sample[0]!.bytes));
    expect(verify(odd, headOf(sample)).kind).toBe("intact");
  });

  it("is the empty one, whose head is before the first record", () => {
    expect(verify([], { seq: 0 as Seq, hash: "" })).toEqual({ kind: "intact", records: 0, head: { seq: 0, hash: "" } });
  });

  it("says nothing of a fence that is known from the record alone: the contract leaves it outside the hash", () => {
    const records = sample.map(({ bytes }) => decodeLogRecord(bytes));
    records[3] = { ...records[3]!, fence: 99n };
    expect(verify(records, headOf(sample)).kind).toBe("intact");
  });
});

describe("a chain that was tampered with", () => {
  it("is broken by a flip of any bit of any stored record, unless the record still says the same", () => {
    const passed: string[] = [];
    for (const [index, record] of sample.entries()) {
      const original = decodeLogRecord(record.bytes);
      for (let bit = 0; bit < record.bytes.length * 8; bit++) {
        const bytes = Uint8Array.from(record.bytes);
        bytes[bit >> 3]! ^= 1 << (bit & 7);
        const verifier = createChainVerifier(testDigest, headOf(sample.slice(0, index)));
        verifier.pushPage([{ ...record, bytes }, ...sample.slice(index + 1, index + 2)]);
        const verdict = verifier.finish();
        if (verdict.kind === "intact" && !equals(LogRecordSchema, decodeLogRecord(bytes), original)) passed.push(`${index + 1}: ${bit}`);
      }
    }
    expect(passed).toEqual([]);
  });

  it("is broken by a change of any field of any record, unless the record still says the same", () => {
    const passed: string[] = [];
    let count = 0;
    const originals = sample.map(({ bytes }) => decodeLogRecord(bytes));
    for (const { name, records } of fieldTamperings(exported(sample))) {
      const read = readAll(records);
      if (read === undefined || read.every((record, index) => equals(LogRecordSchema, record, originals[index]!))) continue;
      count++;
      if (verify(read, headOf(sample)).kind === "intact") passed.push(name);
    }
    expect(passed).toEqual([]);
    expect(count).toBeGreaterThan(1500);
  });

  it("is broken by a record that is missing, doubled, moved, forged, or hashed again without its successors", () => {
    const passed: string[] = [];
    for (const { name, records } of chainTamperings(exported(sample))) {
      if (verify(readAll(records)!).kind === "intact") passed.push(name);
    }
    expect(passed).toEqual([]);
  });

  it("is broken where it ends too early or too late, once its head is known", () => {
    for (const { records } of truncations(exported(sample))) {
      const read = readAll(records)!;
      expect(verify(read).kind).toBe("intact");
      expect(faultOf(read, headOf(sample))).toEqual({ kind: "head", seq: records.length, expected: "14", found: `${records.length}` });
    }
    expect(faultOf(sample, headOf(sample.slice(0, 13)))).toMatchObject({ kind: "head", expected: "13", found: "14" });
  });

  it("is broken at its last record when that was edited and hashed again, once its head is known", () => {
    const records = exported(sample);
    const forged = readAll(records.with(13, rehashed({ ...records.at(-1)!, event: { end: { state: "COMPLETED" } } })))!;
    expect(verify(forged).kind).toBe("intact");
    const found = forged.at(-1)!.contentHash;
    expect(faultOf(forged, headOf(sample))).toEqual({ kind: "head", seq: 14, expected: headOf(sample).hash, found });
  });
});

/** The records of an export, or undefined where the library refuses one. */
function readAll(records: readonly JsonValue[]): LogRecord[] | undefined {
  try {
    return records.map((record) => fromJson(LogRecordSchema, record));
  } catch {
    return undefined;
  }
}

describe("a fault", () => {
  const records = sample.map(({ bytes }) => decodeLogRecord(bytes));
  const changed = (index: number, change: (record: LogRecord) => void): LogRecord[] => {
    const record = clone(LogRecordSchema, records[index]!);
    change(record);
    return records.with(index, record);
  };

  it("tells a wrong seq", () => {
    expect(faultOf(changed(2, (record) => (record.seq = 9n)))).toEqual({ kind: "seq", seq: 3, expected: "3", found: "9" });
    expect(faultOf(changed(2, (record) => (record.seq = -(2n ** 63n))))).toMatchObject({ found: "-9223372036854775808" });
  });

  it("tells a wrong link", () => {
    const expected = records[1]!.contentHash;
    expect(faultOf(changed(2, (record) => (record.prevHash = "aa")))).toEqual({ kind: "prev-hash", seq: 3, expected, found: "aa" });
  });

  it("tells a wrong hash, and a changed content by it", () => {
    const expected = records[2]!.contentHash;
    expect(faultOf(changed(2, (record) => (record.contentHash = "bb")))).toEqual({ kind: "content-hash", seq: 3, expected, found: "bb" });
    const edited = faultOf(changed(2, (record) => (record.event!.executionId = "other")));
    expect(edited).toMatchObject({ kind: "content-hash", seq: 3, found: expected });
    expect(edited.expected).toMatch(/^[0-9a-f]{64}$/);
  });

  it.each<readonly [string, VerifiableRecord, string]>([
    ["bytes that are no record", new Uint8Array([0x12, 1, 0xff]), "it holds text that is no UTF-8"],
    ["bytes that are cut off", sample[0]!.bytes.subarray(0, 40), "it ends in the middle of a field"],
    [
      "bytes with an unknown field",
      Buffer.concat([sample[0]!.bytes, Buffer.from([15 << 3, 1])]),
      "it holds a field that this version does not know",
    ],
    ["a record without an event", create(LogRecordSchema, { seq: 1n }), "it holds no event"],
    ["a message with an unknown field", withUnknown(records[0]!), "it holds a field that this version does not know"],
    [
      "a NaN",
      create(LogRecordSchema, { seq: 1n, event: { body: { case: "tool", value: { args: { n: NaN } } } } }),
      "it has no canonical form",
    ],
    ["a time out of range", create(LogRecordSchema, { seq: 1n, event: { ts: { seconds: 2n ** 60n } } }), "it has no canonical form"],
    [
      "a row of another kind than its bytes",
      { ...sample[0]!, kind: EventKind.EVENT_END },
      "the store's kind or fence for it differs from its bytes",
    ],
    [
      "a row of another fence than its bytes",
      { ...sample[0]!, fence: 4 as Fence },
      "the store's kind or fence for it differs from its bytes",
    ],
  ])("tells %s", (_, record, found) => {
    expect(faultOf([record])).toEqual({
      kind: "unreadable",
      seq: 1,
      expected: "a record that can be read and has a canonical form",
      found,
    });
  });

  it("tells a row whose seq or hash is not the one of its bytes", () => {
    expect(faultOf([{ ...sample[0]!, seq: 2 as Seq }])).toEqual({ kind: "seq", seq: 1, expected: "1", found: "2" });
    expect(faultOf([{ ...sample[0]!, contentHash: "cc" }])).toMatchObject({ kind: "content-hash", seq: 1, found: "cc" });
  });

  it("is the first one, whatever comes after it", () => {
    const verifier = createChainVerifier(testDigest);
    expect(verifier.push(records[0]!)).toBeUndefined();
    const first = verifier.push(records[2]!);
    expect(first).toMatchObject({ kind: "seq", seq: 2, expected: "2", found: "3" });
    expect(verifier.push(records[1]!)).toBe(first);
    expect(verifier.pushPage(records)).toBe(first);
    const head = headOf(sample.slice(0, 1));
    expect(verifier.finish(headOf(sample))).toEqual({ kind: "broken", records: 1, head, fault: first });
  });

  it("is not the key of a Struct that is called like the library's own", () => {
    const json = { $typeName: "x", $unknown: [{ no: 1, data: "" }] };
    const [record] = chainOf([create(LogRecordSchema, { event: { body: { case: "tool", value: { args: json } } } }).event!]);
    expect(verify([decodeLogRecord(record!.bytes)]).kind).toBe("intact");
  });
});

function withUnknown(record: LogRecord): LogRecord {
  const copy = clone(LogRecordSchema, record);
  if (copy.event?.body.case === "executionStart") copy.event.body.value.$unknown = [{ no: 99, wireType: 0, data: new Uint8Array([1]) }];
  return copy;
}
