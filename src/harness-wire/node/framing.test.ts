import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { framed, FrameReader, HEADER_BYTES } from "./framing.ts";

/** The frames that a reader cuts out of chunks. */
function read(chunks: readonly Uint8Array[], bytesMax = 1 << 20): { readonly frames: Uint8Array[]; readonly isBetween: boolean } {
  const reader = new FrameReader(bytesMax);
  const frames = chunks.flatMap((chunk) => [...reader.push(chunk)].map((frame) => Uint8Array.from(frame)));
  return { frames, isBetween: reader.isBetween };
}

/** `bytes` cut at the given places. */
function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const at = [...new Set(places.map((place) => place % (bytes.length + 1)))].toSorted((a, b) => a - b);
  return [0, ...at].map((from, index) => bytes.subarray(from, at[index] ?? bytes.length));
}

const payloads = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 12 });

describe("frames on a byte stream", () => {
  it("arrive as they were sent, wherever the stream is cut", () => {
    fc.assert(
      fc.property(payloads, fc.array(fc.nat(), { maxLength: 30 }), (sent, places) => {
        const { frames, isBetween } = read(cut(Buffer.concat(sent.map(framed)), places));
        expect(frames).toEqual(sent);
        expect(isBetween).toBe(true);
      }),
    );
  });

  it("arrive byte by byte", () => {
    const sent = [new Uint8Array(), new Uint8Array([1]), new Uint8Array(300).fill(7)];
    const bytes = Buffer.concat(sent.map(framed));
    expect(read(Array.from(bytes, (_, index) => bytes.subarray(index, index + 1))).frames).toEqual(sent);
  });

  it("that are cut off are not frames, and the reader knows", () => {
    fc.assert(
      fc.property(payloads, fc.nat(), (sent, cutAt) => {
        const bytes = Buffer.concat(sent.map(framed));
        const length = cutAt % (bytes.length + 1);
        const { frames, isBetween } = read([bytes.subarray(0, length)]);
        expect(frames).toEqual(sent.slice(0, frames.length));
        const whole = sent.slice(0, frames.length).reduce((sum, payload) => sum + HEADER_BYTES + payload.length, 0);
        expect(isBetween).toBe(whole === length);
      }),
    );
  });

  it("that are too large are refused by their length alone", () => {
    const header = Buffer.alloc(HEADER_BYTES);
    header.writeUInt32BE(101);
    expect(() => read([header], 100)).toThrow(/has 101 bytes; at most 100/);
    header.writeUInt32BE(100);
    expect(read([header], 100)).toEqual({ frames: [], isBetween: false });
    header.writeUInt32BE(0xffffffff);
    expect(() => read([header.subarray(0, 2), header.subarray(2)], 100)).toThrow(/at most 100/);
  });
});
