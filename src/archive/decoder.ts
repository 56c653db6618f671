/**
 * Bytes to items, in either form, however the bytes are cut.
 *
 * Invariant: it holds no more than one frame or line that is not whole. Both have a largest size, so a file that is none, or means
 * harm, takes no memory.
 */

import { MAGIC, itemOfFrame, SessionIndex } from "./frames.ts";
import { malformed, type ArchiveForm, type ArchiveItem } from "./item.ts";
import { itemOfLine } from "./json-lines.ts";
import { FRAME_BYTES_MAX } from "./limits.ts";
import { joined, LineReader, type Line } from "./line-reader.ts";
import { readVarint } from "./varint.ts";

/** Decodes an export piece by piece. Every method throws INVALID_ARGUMENT about the file. */
export class ArchiveDecoder {
  #form: ArchiveForm | undefined;
  /** What came and was not decoded yet; in JSON lines, the reader of lines has it. */
  #rest: Uint8Array[] = [];
  #restBytes = 0;
  /** How much must be there before looking again is of use. */
  #wanted = MAGIC.length;
  #frameCount = 0;
  readonly #sessions = new SessionIndex();
  readonly #lines = new LineReader();

  /** The form of the file, once its first bytes have come. */
  get form(): ArchiveForm | undefined {
    return this.#form;
  }

  /** The items that are whole now. They must be taken before the next push. */
  *push(chunk: Uint8Array): Generator<ArchiveItem, void, void> {
    if (this.#form === "lines") {
      yield* itemsOfLines(this.#lines.push(chunk));
      return;
    }
    this.#keep(chunk);
    if (this.#restBytes < this.#wanted) return;
    yield* this.#decode(this.#take());
  }

  /** The items that the end of the file makes whole. */
  *finish(): Generator<ArchiveItem, void, void> {
    const bytes = this.#take();
    if (bytes.length > 0 && this.#form === "binary") throw malformed(this.#where(), "is cut off");
    if (bytes.length > 0) {
      this.#form = "lines";
      yield* itemsOfLines(this.#lines.push(bytes));
    }
    yield* itemsOfLines(this.#lines.finish());
  }

  *#decode(bytes: Uint8Array): Generator<ArchiveItem, void, void> {
    if (this.#form === "binary") {
      yield* this.#frames(bytes, 0);
      return;
    }
    this.#wanted = 1;
    if (startsWith(bytes, MAGIC)) {
      this.#form = "binary";
      yield* this.#frames(bytes, MAGIC.length);
    } else {
      this.#form = "lines";
      yield* itemsOfLines(this.#lines.push(bytes));
    }
  }

  *#frames(bytes: Uint8Array, from: number): Generator<ArchiveItem, void, void> {
    let at = from;
    for (;;) {
      const length = readVarint(bytes, at);
      if (length.kind === "wrong") throw malformed(this.#where(), "has no right length");
      if (length.kind === "cut") return this.#keepFrom(bytes, at, 1);
      if (length.value > FRAME_BYTES_MAX) throw malformed(this.#where(), `takes more than ${FRAME_BYTES_MAX} bytes`);
      const end = length.end + length.value;
      if (end > bytes.length) return this.#keepFrom(bytes, at, end - at);
      const item = itemOfFrame(bytes.subarray(length.end, end), this.#sessions, this.#where());
      this.#frameCount += 1;
      yield item;
      at = end;
    }
  }

  #where(): string {
    return `frame ${this.#frameCount + 1}`;
  }

  #keepFrom(bytes: Uint8Array, at: number, wanted: number): void {
    this.#wanted = wanted;
    if (at < bytes.length) this.#keep(bytes.subarray(at));
  }

  #keep(bytes: Uint8Array): void {
    this.#rest.push(bytes);
    this.#restBytes += bytes.length;
  }

  #take(): Uint8Array {
    const whole = joined(this.#rest, this.#restBytes);
    this.#rest = [];
    this.#restBytes = 0;
    return whole;
  }
}

function* itemsOfLines(lines: Iterable<Line>): Generator<ArchiveItem, void, void> {
  for (const { text, where } of lines) yield itemOfLine(text, where);
}

function startsWith(bytes: Uint8Array, start: Uint8Array): boolean {
  return start.every((byte, index) => bytes[index] === byte);
}
