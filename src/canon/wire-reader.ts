/**
 * Reads protobuf fields one by one. It is strict where the library is lenient: a field that the message does not have, or of
 * another wire type than it has, is a fault, because nothing that is hashed afterwards would show it.
 *
 * Unusual but legal encodings are none: fields in any order, a singular field twice (the last one counts, messages are merged),
 * varints longer than they need be.
 */

import type { DescMessage } from "@bufbuild/protobuf";

/** As deep as the library reads. */
const DEPTH_MAX = 100;
/** Up to this length ASCII is read byte by byte; beyond, the decoder's start-up cost is worth it. */
const SHORT_BYTES_MAX = 28;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const double = new Float64Array(1);
const doubleBytes = new Uint8Array(double.buffer);
const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** What is wrong with the bytes, in words for a report. Only `readLogRecord` sees it. */
export class WireFault extends Error {
  override readonly name = "WireFault";
}

/** The numbers of a message's fields as the bits of a mask; all of them are below 31. */
export function fieldMask(schema: DescMessage): number {
  let mask = 0;
  for (const { number } of schema.fields) mask |= 1 << number;
  return mask;
}

/** A position in the bytes of a record. Tags are compared as `number << 3 | wire type`. */
export class WireReader {
  readonly #bytes: Uint8Array;
  #depth = 0;
  at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** The next tag, or any other varint from 0 to 2^53; what is beyond is rounded and matches no tag, length or natural. */
  natural(): number {
    const first = this.#bytes[this.at++];
    if (first !== undefined && first < 0x80) return first;
    return this.#longNatural(first);
  }

  #longNatural(first: number | undefined): number {
    if (first === undefined) throw cutOff();
    let value = first & 0x7f;
    let scale = 0x80;
    for (let count = 1; count < 10; count++) {
      const byte = this.#bytes[this.at++];
      if (byte === undefined) throw cutOff();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 0x80;
    }
    throw cutOff();
  }

  /** Where the length-delimited field that begins here ends. */
  fieldEnd(end: number): number {
    const fieldEnd = this.natural() + this.at;
    if (fieldEnd > end) throw cutOff();
    return fieldEnd;
  }

  /** Goes into a message that ends at the returned place; `leave` goes out. */
  enter(end: number): number {
    const fieldEnd = this.fieldEnd(end);
    if (++this.#depth >= DEPTH_MAX) throw new WireFault("is nested too deeply");
    return fieldEnd;
  }

  /** Out of the message that was entered last. */
  leave(end: number): void {
    this.finish(end);
    this.#depth--;
  }

  /** The fields of a message must have ended where it does. */
  finish(end: number): void {
    if (this.at !== end) throw cutOff();
  }

  int64(): bigint {
    const start = this.at;
    const value = this.natural();
    // Up to seven bytes a varint fits a double; beyond, its bytes are read again, exactly.
    return this.at - start <= 7 ? BigInt(value) : this.#longInt64(start);
  }

  #longInt64(start: number): bigint {
    let value = 0n;
    for (let at = start, shift = 0n; at < this.at; at++, shift += 7n) value |= BigInt(this.#bytes[at]! & 0x7f) << shift;
    return BigInt.asIntN(64, value);
  }

  /** An int32 or enum: the lower half of its varint. */
  int32(): number {
    const start = this.at;
    const value = this.natural();
    if (value <= 0x7fff_ffff) return value;
    return this.at - start <= 7 ? value | 0 : Number(BigInt.asIntN(32, this.#longInt64(start)));
  }

  bool(): boolean {
    return this.natural() !== 0;
  }

  double(end: number): number {
    if (this.at + 8 > end) throw cutOff();
    for (let index = 0; index < 8; index++) doubleBytes[LITTLE_ENDIAN ? index : 7 - index] = this.#bytes[this.at + index]!;
    this.at += 8;
    return double[0]!;
  }

  /** A view of the bytes, not a copy. */
  bytes(end: number): Uint8Array {
    const fieldEnd = this.fieldEnd(end);
    const value = this.#bytes.subarray(this.at, fieldEnd);
    this.at = fieldEnd;
    return value;
  }

  string(end: number): string {
    const fieldEnd = this.fieldEnd(end);
    const start = this.at;
    this.at = fieldEnd;
    return (fieldEnd - start <= SHORT_BYTES_MAX ? this.#ascii(start, fieldEnd) : undefined) ?? this.#utf8(start, fieldEnd);
  }

  #ascii(start: number, end: number): string | undefined {
    const codes = Array<number>(end - start);
    for (let at = start; at < end; at++) {
      const byte = this.#bytes[at]!;
      if (byte > 0x7f) return undefined;
      codes[at - start] = byte;
    }
    return String.fromCharCode.apply(undefined, codes);
  }

  #utf8(start: number, end: number): string {
    try {
      return utf8.decode(this.#bytes.subarray(start, end));
    } catch {
      throw new WireFault("holds text that is no UTF-8");
    }
  }
}

/** The fault of a tag that a message with these fields does not have. */
export function strangeTag(tag: number, mask: number): WireFault {
  const number = Math.floor(tag / 8);
  const known = number < 31 && (mask & (1 << number)) !== 0;
  return new WireFault(known ? "holds a field of the wrong wire type" : "holds a field that this version does not know");
}

function cutOff(): WireFault {
  return new WireFault("ends in the middle of a field");
}
