/** Varints, as far as lengths and indices need them. */

/** The bytes that a natural number takes. */
export function varintLength(value: number): number {
  let length = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) length += 1;
  return length;
}

/** Writes a natural number at `at`; returns the place after it. */
export function writeVarint(target: Uint8Array, at: number, value: number): number {
  let place = at;
  let rest = value;
  while (rest >= 0x80) {
    target[place++] = (rest % 0x80) | 0x80;
    rest = Math.floor(rest / 0x80);
  }
  target[place++] = rest;
  return place;
}

/** A varint that was read. */
export type VarintReading =
  | { readonly kind: "read"; readonly value: number; readonly end: number }
  /** The bytes end within it. */
  | { readonly kind: "cut" }
  /** It is longer than a length can be, or than it need be. */
  | { readonly kind: "wrong" };

const VARINT_BYTES_MAX = 5;

/** Reads the varint at `at`. */
export function readVarint(source: Uint8Array, at: number): VarintReading {
  let value = 0;
  let scale = 1;
  for (let index = 0; index < VARINT_BYTES_MAX; index++) {
    const byte = source[at + index];
    if (byte === undefined) return { kind: "cut" };
    value += (byte & 0x7f) * scale;
    scale *= 0x80;
    if (byte >= 0x80) continue;
    return byte === 0 && index > 0 ? { kind: "wrong" } : { kind: "read", value, end: at + index + 1 };
  }
  return { kind: "wrong" };
}
