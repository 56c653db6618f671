/**
 * Bytes to items, in either form, however the bytes are cut.
 *
 * Invariant: it holds no more than one frame or line that is not whole. Both have a largest size, so a file that is none, or means
 * harm, takes no memory.
 */

import { MAGIC, itemOfFrame, SessionIndex } from "./frames.ts";
import { malformed, type ArchiveForm, type ArchiveItem } from "./item.ts";
import { itemOfLine } from "./json-lines.ts";
import { FRAME_BYTES_MAX, LINE_BYTES_MAX } from "./limits.ts";
import { readVarint } from "./varint.ts";

const LINE_FEED = 0x0a;

/** Decodes an export piece by piece. Every method throws INVALID_ARGUMENT about the file. */
export class ArchiveDecoder {
  #form: ArchiveForm | undefined;
  /** What came and was not decoded yet. */
  #rest: Uint8Array[] = [];
  #restBytes = 0;
  /** How much must be there before looking again is of use. */
  #wanted = MAGIC.length;
  #count = 0;
  readonly #sessions = new SessionIndex();
  readonly #utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

  /** The form of the file, once its first bytes have come. */
  get form(): ArchiveForm | undefined {
    return this.#form;
  }

  /** The items that are whole now. They must be taken before the next push. */
  *push(chunk: Uint8Array): Generator<ArchiveItem, void, void> {
    if (chunk.length === 0) return;
    if (this.#form === "lines" && chunk.indexOf(LINE_FEED) < 0) return this.#keep(chunk);
    this.#keep(chunk);
    if (this.#restBytes < this.#wanted) return;
    yield* this.#decode(this.#take());
  }

  /** The items that the end of the file makes whole. */
  *finish(): Generator<ArchiveItem, void, void> {
    const bytes = this.#take();
    if (bytes.length === 0) return;
    if (this.#form === "binary") throw malformed(this.#where("frame"), "is cut off");
    this.#form = "lines";
    yield* this.#line(bytes);
  }

  *#decode(bytes: Uint8Array): Generator<ArchiveItem, void, void> {
    let at = 0;
    if (this.#form === undefined) {
      this.#form = startsWith(bytes, MAGIC) ? "binary" : "lines";
      at = this.#form === "binary" ? MAGIC.length : 0;
      this.#wanted = 1;
    }
    if (this.#form === "binary") yield* this.#frames(bytes, at);
    else yield* this.#lines(bytes);
  }

  *#frames(bytes: Uint8Array, from: number): Generator<ArchiveItem, void, void> {
    let at = from;
    for (;;) {
      const length = readVarint(bytes, at);
      if (length.kind === "wrong") throw malformed(this.#where("frame"), "has no right length");
      if (length.kind === "cut") return this.#keepFrom(bytes, at, 1);
      if (length.value > FRAME_BYTES_MAX) throw malformed(this.#where("frame"), `takes more than ${FRAME_BYTES_MAX} bytes`);
      const end = length.end + length.value;
      if (end > bytes.length) return this.#keepFrom(bytes, at, end - at);
      const item = itemOfFrame(bytes.subarray(length.end, end), this.#sessions, this.#where("frame"));
      this.#count += 1;
      yield item;
      at = end;
    }
  }

  *#lines(bytes: Uint8Array): Generator<ArchiveItem, void, void> {
    let at = 0;
    for (let end = bytes.indexOf(LINE_FEED); end >= 0; end = bytes.indexOf(LINE_FEED, at)) {
      yield* this.#line(bytes.subarray(at, end));
      at = end + 1;
    }
    this.#keepFrom(bytes, at, 1);
  }

  *#line(bytes: Uint8Array): Generator<ArchiveItem, void, void> {
    const where = this.#where("line");
    this.#count += 1;
    const line = this.#text(bytes, where);
    if (line !== "") yield itemOfLine(line, where);
  }

  #text(bytes: Uint8Array, where: string): string {
    try {
      return this.#utf8.decode(bytes).trim();
    } catch (error) {
      throw malformed(where, "is no UTF-8", error);
    }
  }

  #where(unit: "frame" | "line"): string {
    return `${unit} ${this.#count + 1}`;
  }

  #keepFrom(bytes: Uint8Array, at: number, wanted: number): void {
    this.#wanted = wanted;
    if (at < bytes.length) this.#keep(bytes.subarray(at));
  }

  #keep(bytes: Uint8Array): void {
    this.#rest.push(bytes);
    this.#restBytes += bytes.length;
    if (this.#form !== "lines" || this.#restBytes <= LINE_BYTES_MAX || bytes.includes(LINE_FEED)) return;
    throw malformed(this.#where("line"), `takes more than ${LINE_BYTES_MAX} bytes`);
  }

  #take(): Uint8Array {
    const [only] = this.#rest;
    const whole = this.#rest.length === 1 && only !== undefined ? only : joined(this.#rest, this.#restBytes);
    this.#rest = [];
    this.#restBytes = 0;
    return whole;
  }
}

function startsWith(bytes: Uint8Array, start: Uint8Array): boolean {
  return start.every((byte, index) => bytes[index] === byte);
}

function joined(pieces: readonly Uint8Array[], length: number): Uint8Array {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
