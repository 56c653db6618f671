/**
 * Writes protobuf from the last byte to the first. A nested message's length is known once its content has been written, so
 * nothing is measured twice and nothing is moved: the library's writer, which goes forward, spends most of its time there.
 *
 * Invariant: the fields of a message are written in descending order of their numbers, lists and maps from their last entry.
 */

import { invalidArgument } from "../base/errors.ts";

/** Messages are handed out of one block of memory after the other: a block of its own for each costs more than to write it. */
const BLOCK_BYTES = 32 * 1024;
/** A larger message is written elsewhere and copied, so that a block is used up to its greatest part. */
const BLOCK_MESSAGE_BYTES_MAX = 8 * 1024;
/** The memory in which larger messages are written. */
const LARGE_BYTES = 64 * 1024;
/** Memory that grew beyond this is given back after the message that needed it. */
const LARGE_BYTES_KEPT_MAX = 1024 * 1024;
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
  /** The block in use. What lies at and after `#blockEnd` belongs to messages that were handed out. */
  #block = new Uint8Array(BLOCK_BYTES);
  #blockEnd = BLOCK_BYTES;
  #large: Uint8Array<ArrayBuffer> | undefined;
  /** The message lies from `#at` to `#end` in one of them. */
  #bytes = this.#block;
  #at = BLOCK_BYTES;
  #end = BLOCK_BYTES;

  /** Begins a message, and forgets what an earlier one may have left behind when it was refused. */
  begin(): void {
    this.#bytes = this.#block;
    this.#at = this.#blockEnd;
    this.#end = this.#blockEnd;
  }

  /** Everything written since `begin`. It is the caller's, though it may lie beside other messages in one block of memory. */
  finish(): Uint8Array {
    if (this.#bytes === this.#block) {
      this.#blockEnd = this.#at;
      return this.#block.subarray(this.#at, this.#end);
    }
    const message = this.#bytes.slice(this.#at);
    if (this.#bytes.length > LARGE_BYTES_KEPT_MAX) this.#large = undefined;
    return message;
  }

  /** Where the content of a nested message ends; `close` takes it. */
  mark(): number {
    return this.#end - this.#at;
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

  /** A packed list of such numbers. */
  naturals(tag: number, values: readonly number[]): void {
    const mark = this.mark();
    for (let index = values.length - 1; index >= 0; index--) {
      this.#reserve(HEADER_BYTES_MAX);
      this.#varint(values[index]!);
    }
    this.close(tag, mark);
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
    // The length is known afterwards only, so it is written where the longest would begin, and moved.
    const start = this.#at - value.length * 3;
    const { written } = encoder.encodeInto(value, this.#bytes.subarray(start, this.#at));
    this.#at -= written;
    if (this.#at !== start) this.#bytes.copyWithin(this.#at, start, start + written);
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
    const wider = this.#wider(written + count);
    wider.set(this.#bytes.subarray(this.#at, this.#end), wider.length - written);
    this.#bytes = wider;
    this.#at = wider.length - written;
    this.#end = wider.length;
  }

  /** Memory with room for a message of so many bytes. */
  #wider(bytes: number): Uint8Array<ArrayBuffer> {
    if (bytes <= BLOCK_MESSAGE_BYTES_MAX) {
      this.#block = new Uint8Array(BLOCK_BYTES);
      this.#blockEnd = BLOCK_BYTES;
      return this.#block;
    }
    if (this.#large === undefined || this.#large.length < bytes) {
      this.#large = new Uint8Array(Math.max(LARGE_BYTES, this.#bytes.length * 2, bytes));
    }
    return this.#large;
  }
}
