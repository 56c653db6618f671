/**
 * Bytes to lines of text, however the bytes are cut.
 *
 * Invariants:
 * - It holds no more than one line that is not whole, and a line has a largest size, so a file of any length takes no memory.
 * - Only a line feed ends a line. White space at its ends is JSON's own; whatever else stands there is left for the reader to refuse.
 */

import { malformed } from "./item.ts";
import { isJsonSpace } from "./json-text.ts";
import { LINE_BYTES_MAX } from "./limits.ts";

/** A line that is not empty, without the white space around it. */
export interface Line {
  readonly text: string;
  /** Its place, such as `line 7`. */
  readonly where: string;
}

const LINE_FEED = 0x0a;

/** Reads lines piece by piece. Every method throws INVALID_ARGUMENT about the file. */
export class LineReader {
  /** What came of the next line. */
  #rest: Uint8Array[] = [];
  #restBytes = 0;
  #count = 0;
  readonly #utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

  /** The lines that are whole now. They must be taken before the next push. */
  *push(chunk: Uint8Array): Generator<Line, void, void> {
    let at = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, at)) {
      this.#keep(chunk.subarray(at, end));
      yield* this.#line();
      at = end + 1;
    }
    this.#keep(chunk.subarray(at));
  }

  /** The line that the end of the file makes whole. */
  *finish(): Generator<Line, void, void> {
    yield* this.#line();
  }

  *#line(): Generator<Line, void, void> {
    const where = this.#where();
    const text = trimmed(this.#text(this.#take(), where));
    this.#count += 1;
    if (text !== "") yield { text, where };
  }

  #text(bytes: Uint8Array, where: string): string {
    try {
      return this.#utf8.decode(bytes);
    } catch (error) {
      throw malformed(where, "is no UTF-8", error);
    }
  }

  #where(): string {
    return `line ${this.#count + 1}`;
  }

  #keep(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#rest.push(bytes);
    this.#restBytes += bytes.length;
    if (this.#restBytes > LINE_BYTES_MAX) throw malformed(this.#where(), `takes more than ${LINE_BYTES_MAX} bytes`);
  }

  #take(): Uint8Array {
    const whole = joined(this.#rest, this.#restBytes);
    this.#rest = [];
    this.#restBytes = 0;
    return whole;
  }
}

/** Pieces as one; a single one as it is. */
export function joined(pieces: readonly Uint8Array[], length: number): Uint8Array {
  const [only] = pieces;
  if (pieces.length === 1 && only !== undefined) return only;
  const whole = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

function trimmed(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isJsonSpace(text.charCodeAt(start))) start += 1;
  while (end > start && isJsonSpace(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}
