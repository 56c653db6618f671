import { describe, expect, it } from "vitest";
import fc from "fast-check";
import { ArchiveDecoder, FRAME_BYTES_MAX, JSON_DEPTH_MAX, LINE_BYTES_MAX } from "./index.ts";
import { MAGIC } from "./frames.ts";
import { doubtIn } from "./json-text.ts";
import { readVarint, varintLength, writeVarint } from "./varint.ts";

const UTF8 = new TextEncoder();

function refusal(...chunks: Uint8Array[]): string {
  const decoder = new ArchiveDecoder();
  try {
    for (const chunk of chunks) for (const item of decoder.push(chunk)) void item;
    for (const item of decoder.finish()) void item;
  } catch (error) {
    return error instanceof Error ? error.message : "";
  }
  return expect.fail("it was taken");
}

/** A frame's length, as it stands in front of it. */
function lengthOf(value: number): Uint8Array {
  const bytes = new Uint8Array(varintLength(value));
  writeVarint(bytes, 0, value);
  return bytes;
}

describe("the decoder of exports", () => {
  it("takes no frame that is longer than any can be, before it has come", () => {
    expect(refusal(MAGIC, lengthOf(FRAME_BYTES_MAX + 1))).toBe(`file: frame 1 takes more than ${FRAME_BYTES_MAX} bytes`);
    expect(refusal(MAGIC, lengthOf(FRAME_BYTES_MAX), new Uint8Array(10))).toBe("file: frame 1 is cut off");
    expect(refusal(MAGIC, Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff))).toBe("file: frame 1 has no right length");
    expect(refusal(MAGIC, Uint8Array.of(0x80, 0x00))).toBe("file: frame 1 has no right length");
  });

  it("takes no line that is longer than any can be", () => {
    const piece = new Uint8Array(1024 * 1024).fill(0x20);
    const pieces = Array.from({ length: LINE_BYTES_MAX / piece.length }, () => piece);
    expect(refusal(...pieces, UTF8.encode("\n"), UTF8.encode("x"))).toBe("file: line 2 is no JSON");
    expect(refusal(...pieces, UTF8.encode(" "))).toBe(`file: line 1 takes more than ${LINE_BYTES_MAX} bytes`);
  });

  it("takes no line that is nested deeper than any can be, and none the deeper for what stands in its texts", () => {
    const nested = (levels: number, inner = "") => UTF8.encode(`{"kind":"other","x":${"[".repeat(levels)}${inner}${"]".repeat(levels)}}\n`);
    const brackets = JSON.stringify(`\\"${"[".repeat(1_000)}`);
    expect(refusal(nested(JSON_DEPTH_MAX - 1, brackets))).toBe("file: line 1 is of no kind that an export has");
    for (const levels of [JSON_DEPTH_MAX, 10_000, 1_000_000]) expect(refusal(nested(levels))).toBe("file: line 1 is nested too deeply");
    expect(refusal(UTF8.encode(`{"kind":"header"}${"[".repeat(10_000)}`))).toBe("file: line 1 is nested too deeply");
  });

  it("takes white space of JSON around a line, and no other", () => {
    expect(refusal(UTF8.encode(' \t{"kind":"x"} \t\r\n'))).toBe("file: line 1 is of no kind that an export has");
    for (const space of ["\ufeff", "\u00a0", "\u2028", "\v"])
      expect(refusal(UTF8.encode(`${space}{"kind":"x"}\n`))).toBe("file: line 1 is no JSON");
  });

  it("knows the binary form by its first bytes, however they come", () => {
    const decoder = new ArchiveDecoder();
    for (const byte of MAGIC) {
      expect(decoder.form).toBeUndefined();
      expect([...decoder.push(Uint8Array.of(byte))]).toEqual([]);
    }
    expect(decoder.form).toBe("binary");
  });
});

describe("a varint", () => {
  it("comes back as it was written, and is told when it is cut", () => {
    fc.assert(
      fc.property(fc.oneof(fc.nat(300), fc.nat(2 ** 31 - 1)), (value) => {
        const bytes = lengthOf(value);
        expect(readVarint(bytes, 0)).toEqual({ kind: "read", value, end: bytes.length });
        for (let length = 0; length < bytes.length; length++) expect(readVarint(bytes.subarray(0, length), 0)).toEqual({ kind: "cut" });
      }),
    );
  });
});

describe("doubt about a JSON text", () => {
  it("is there when a key comes twice in one object, however it is written, and not in different ones", () => {
    expect(doubtIn('{"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}]}')).toBeUndefined();
    for (const text of ['{"a":1,"a":1}', '[{"a":1 , "a" : 2}]', '{"x":{"a":1,"\\u0061":2}}', '{"":1,"":2}', '{"a\\"":1,"a\\"":2}']) {
      expect(doubtIn(text)).toBe("has a key twice");
    }
  });

  it("is there when a number is not written as JavaScript would", () => {
    expect(doubtIn('{"a":[1,-1,0.5,1e+21,1e-7,"1.0","x:1.0"]}')).toBeUndefined();
    for (const token of ["1.0", "1e2", "-0", "0.1000000000000000055", "9007199254740993", "1E5"]) {
      expect(doubtIn(`{"a":${token}}`)).toBe("has a number that its readers may round");
    }
  });

  it("is found behind a text of any length", () => {
    for (const unit of ["x", "\\n", '\\"', "\\\\", "é"]) {
      const long = unit.repeat(LINE_BYTES_MAX / 4);
      expect(doubtIn(`{"a":"${long}","b":1 }`)).toBeUndefined();
      expect(doubtIn(`{"a":"${long}","a":1}`)).toBe("has a key twice");
    }
  });

  it("is never there in what JSON.stringify writes", () => {
    fc.assert(fc.property(fc.json(), (text) => doubtIn(JSON.stringify(JSON.parse(text))) === undefined));
  });
});
