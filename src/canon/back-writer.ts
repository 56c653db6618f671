/**
 * Writes protobuf from the last byte to the first. A nested message's length is known once its content has been written, so
 * nothing is measured twice and nothing is moved: the library's writer, which goes forward, spends most of its time there.
 *
 * Invariant: the fields of a message are written in descending order of their numbers, lists and maps from their last entry.
 */

import { invalidArgument } from "../base/errors.ts";

/** The buffer that is kept between messages. */
const BUFFER_BYTES = 64 * 1024;
/** A buffer that grew beyond this is given back after the message that needed it. */
const BUFFER_BYTES_KEPT_MAX = 1024 * 1024;
/** Up to this length a string is copied character by character; beyond, the encoder's start-up cost is worth it. */
const SHORT_CHARS_MAX = 72;
/** The most bytes of a tag and a varint together. */
const HEADER_BYTES_MAX = 16;

const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;
const encoder = new TextEncoder();
const double = new Float64Array(1);
const doubleBytes = new Uint8Array(double.buffer);
/** Whether the platform stores the lowest byte of a number first, as protobuf does. */
const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** A buffer that fills towards its beginning. Tags are given as `number << 3 | wire type`. */
export class BackWriter {
  #bytes = new Uint8Array(BUFFER_BYTES);
  #at = BUFFER_BYTES;

  /** Forgets what an earlier message may have left behind when it was refused. */
  begin(): void {
    this.#at = this.#bytes.length;
  }

  /** A copy of everything written since `begin`. */
  finish(): Uint8Array {
    const message = this.#bytes.slice(this.#at);
    if (this.#bytes.length > BUFFER_BYTES_KEPT_MAX) this.#bytes = new Uint8Array(BUFFER_BYTES);
    return message;
  }

  /** Where the content of a nested message ends; `close` takes it. */
  mark(): number {
    return this.#bytes.length - this.#at;
  }

  /** Writes the length and the tag in front of the nested message that was begun at `mark`. */
  close(tag: number, mark: number): void {
    const length = this.mark() - mark;
    this.#reserve(HEADER_BYTES_MAX);
    this.#varint(length);
    this.#varint(tag);
  }

  /** A number from 0 to 2^53−1 as a varint field. */
  natural(tag: number, value: number): void {
    this.#reserve(HEADER_BYTES_MAX);
    this.#varint(value);
    this.#varint(tag);
  }

  bool(tag: number, value: boolean): void {
    this.natural(tag, value ? 1 : 0);
  }

  /** An int32 or enum field. */
  int32(tag: number, value: number): void {
    if ((value | 0) !== value) throw invalidArgument("event", "holds a number that is no 32-bit integer");
    if (value >= 0) this.natural(tag, value);
    else this.int64(tag, BigInt(value));
  }

  int64(tag: number, value: bigint): void {
    if (value >= 0n && value <= 0x1f_ffff_ffff_ffffn) return this.natural(tag, Number(value));
    if (value < INT64_MIN || value > INT64_MAX) throw invalidArgument("event", "holds a number that is no 64-bit integer");
    this.#reserve(HEADER_BYTES_MAX);
    // Beyond 2^53 both halves matter; a negative number takes all ten bytes.
    let rest = BigInt.asUintN(64, value);
    const groups: number[] = [];
    for (; rest > 0x7fn; rest >>= 7n) groups.push(Number(rest & 0x7fn) | 0x80);
    groups.push(Number(rest));
    this.#at -= groups.length;
    this.#bytes.set(groups, this.#at);
    this.#varint(tag);
  }

  double(tag: number, value: number): void {
    this.#reserve(HEADER_BYTES_MAX);
    double[0] = value;
    this.#at -= 8;
    for (let index = 0; index < 8; index++) this.#bytes[this.#at + index] = doubleBytes[LITTLE_ENDIAN ? index : 7 - index]!;
    this.#varint(tag);
  }

  bytes(tag: number, value: Uint8Array): void {
    this.#reserve(value.length + HEADER_BYTES_MAX);
    this.#at -= value.length;
    this.#bytes.set(value, this.#at);
    this.#varint(value.length);
    this.#varint(tag);
  }

  string(tag: number, value: string): void {
    const mark = this.mark();
    this.#reserve(value.length * 3 + HEADER_BYTES_MAX);
    if (value.length > SHORT_CHARS_MAX || !this.#ascii(value)) this.#utf8(value);
    this.#varint(this.mark() - mark);
    this.#varint(tag);
  }

  /** Writes `value` and returns true, unless it has a character beyond ASCII. */
  #ascii(value: string): boolean {
    const bytes = this.#bytes;
    let at = this.#at;
    for (let index = value.length - 1; index >= 0; index--) {
      const code = value.charCodeAt(index);
      if (code > 0x7f) return false;
      bytes[--at] = code;
    }
    this.#at = at;
    return true;
  }

  #utf8(value: string): void {
    // Text that is all ASCII fits its length exactly and so lands where it belongs.
    const start = this.#at - value.length;
    const { read } = encoder.encodeInto(value, this.#bytes.subarray(start, this.#at));
    if (read === value.length) {
      this.#at = start;
      return;
    }
    const wide = this.#at - value.length * 3;
    const { written } = encoder.encodeInto(value, this.#bytes.subarray(wide, this.#at));
    this.#bytes.copyWithin(this.#at - written, wide, wide + written);
    this.#at -= written;
  }

  /** Room was reserved by the caller. */
  #varint(value: number): void {
    if (value < 0x80) {
      this.#bytes[--this.#at] = value;
      return;
    }
    let size = 1;
    for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) size++;
    this.#at -= size;
    let at = this.#at;
    // Bit operators stop at 32 bits; lengths and tags are far below, seqs may be above.
    for (let rest = value; ; rest = Math.floor(rest / 0x80)) {
      if (--size === 0) {
        this.#bytes[at] = rest;
        return;
      }
      this.#bytes[at++] = (rest % 0x80) | 0x80;
    }
  }

  #reserve(count: number): void {
    if (this.#at >= count) return;
    const written = this.mark();
    const grown = new Uint8Array(Math.max(this.#bytes.length * 2, written + count));
    grown.set(this.#bytes.subarray(this.#at), grown.length - written);
    this.#at = grown.length - written;
    this.#bytes = grown;
  }
}
