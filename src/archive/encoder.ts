/** Items to bytes, in either form. */

import { MAGIC, frameBytesOf, SessionIndex } from "./frames.ts";
import type { ArchiveForm, ArchiveItem } from "./item.ts";
import { lineOf } from "./json-lines.ts";

/** Encodes an export piece by piece. What it returned, one after the other, is the file. */
export interface ArchiveEncoder {
  /** The bytes of some items, in one piece. Throws DATA_LOSS for a record that has no JSON form. */
  encode(items: readonly ArchiveItem[]): Uint8Array;
}

/** A new encoder. */
export function createArchiveEncoder(form: ArchiveForm): ArchiveEncoder {
  return form === "lines" ? new LineEncoder() : new FrameEncoder();
}

class LineEncoder implements ArchiveEncoder {
  readonly #utf8 = new TextEncoder();

  encode(items: readonly ArchiveItem[]): Uint8Array {
    return this.#utf8.encode(items.map((item) => `${lineOf(item)}\n`).join(""));
  }
}

class FrameEncoder implements ArchiveEncoder {
  readonly #sessions = new SessionIndex();
  #isBegun = false;

  encode(items: readonly ArchiveItem[]): Uint8Array {
    const pieces = items.map((item) => frameBytesOf(item, this.#sessions));
    if (!this.#isBegun) pieces.unshift(MAGIC);
    this.#isBegun = true;
    return joined(pieces);
  }
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
