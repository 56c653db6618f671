/**
 * A WebAssembly module without the exports that nobody uses. Each export is an object in every instance: the engine has hundreds for
 * extensions in C, which are not loaded here, and without them a VM takes half the time to start and a third of the heap. Pure.
 */

const HEADER_BYTES = 8;
const EXPORT_SECTION = 7;

/** The module with the exports that `isKept` names; its code is what it was. Throws a RangeError where the bytes end too soon. */
export function keepExports(module: Uint8Array, isKept: (name: string) => boolean): Uint8Array {
  const pieces: Uint8Array[] = [module.subarray(0, HEADER_BYTES)];
  const reader = new Reader(module, HEADER_BYTES);
  while (reader.at < module.length) {
    const from = reader.at;
    const id = reader.byte();
    const end = reader.number() + reader.at;
    if (end > module.length) throw new RangeError("a section is longer than the module");
    if (id === EXPORT_SECTION) pieces.push(...section(EXPORT_SECTION, keptEntries(module, reader, isKept)));
    else pieces.push(module.subarray(from, end));
    reader.at = end;
  }
  return joined(pieces);
}

function keptEntries(module: Uint8Array, reader: Reader, isKept: (name: string) => boolean): Uint8Array[] {
  const entries: Uint8Array[] = [];
  for (let count = reader.number(); count > 0; count--) {
    const from = reader.at;
    const nameEnd = reader.number() + reader.at;
    const name = new TextDecoder().decode(module.subarray(reader.at, nameEnd));
    reader.at = nameEnd + 1;
    reader.number();
    if (isKept(name)) entries.push(module.subarray(from, reader.at));
  }
  return entries;
}

function section(id: number, entries: readonly Uint8Array[]): Uint8Array[] {
  const count = numberBytes(entries.length);
  const length = entries.reduce((sum, entry) => sum + entry.length, count.length);
  return [Uint8Array.of(id), numberBytes(length), count, ...entries];
}

/** An unsigned LEB128. */
function numberBytes(value: number): Uint8Array {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 128) return Uint8Array.from([...bytes, rest]);
    bytes.push((rest & 127) | 128);
  }
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

class Reader {
  at: number;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes;
    this.at = at;
  }

  byte(): number {
    const byte = this.#bytes[this.at++];
    if (byte === undefined) throw new RangeError("the module ends too soon");
    return byte;
  }

  number(): number {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.byte();
      value |= (byte & 127) << shift;
      if (byte < 128) return value >>> 0;
    }
  }
}
