/** Reading a file, or standard input, piece by piece; what is compressed is decompressed. */

import { createReadStream } from "node:fs";
import { Readable, type Duplex } from "node:stream";
import * as zlib from "node:zlib";
import { HoldfastError, invalidArgument } from "../base/errors.ts";

const GZIP = Uint8Array.of(0x1f, 0x8b);
const ZSTD = Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd);

/** The bytes of a file, or of standard input for `-`. Throws INVALID_ARGUMENT for what cannot be read or decompressed. */
export async function* readInput(path: string, signal: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
  const input = path === "-" ? process.stdin : createReadStream(path);
  try {
    const { start, rest } = await peeked(input.iterator());
    const decompressor = decompressorOf(start);
    if (decompressor === undefined) {
      for await (const piece of rest) {
        signal.throwIfAborted();
        yield piece;
      }
      return;
    }
    for await (const piece of piped(rest, decompressor)) {
      signal.throwIfAborted();
      yield piece;
    }
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof HoldfastError ? error : invalidArgument("FILE", "must be a file that can be read", { cause: error });
  } finally {
    if (path !== "-") input.destroy();
  }
}

/** The first bytes, and everything with them. */
async function peeked(pieces: AsyncIterator<unknown>): Promise<{ start: Uint8Array; rest: AsyncGenerator<Uint8Array, void, undefined> }> {
  const first: Buffer[] = [];
  let length = 0;
  let isOver = false;
  while (length < ZSTD.length && !isOver) {
    const next = await pieces.next();
    isOver = next.done === true;
    if (next.done === true) break;
    const piece = bytesOf(next.value);
    first.push(piece);
    length += piece.length;
  }
  async function* rest(): AsyncGenerator<Uint8Array, void, undefined> {
    yield* first;
    while (!isOver) {
      const next = await pieces.next();
      if (next.done === true) return;
      yield bytesOf(next.value);
    }
  }
  return { start: Buffer.concat(first), rest: rest() };
}

function bytesOf(piece: unknown): Buffer {
  return Buffer.isBuffer(piece) ? piece : Buffer.from(String(piece));
}

function decompressorOf(start: Uint8Array): Duplex | undefined {
  if (startsWith(start, GZIP)) return zlib.createGunzip();
  if (!startsWith(start, ZSTD)) return undefined;
  if (typeof zlib.createZstdDecompress !== "function") {
    throw new HoldfastError("unimplemented", "FILE: is compressed with zstd, which this version of Node cannot read; decompress it first");
  }
  return zlib.createZstdDecompress();
}

async function* piped(source: AsyncIterable<Uint8Array>, decompressor: Duplex): AsyncGenerator<Uint8Array, void, undefined> {
  const from = Readable.from(source, { objectMode: false });
  from.once("error", (error) => decompressor.destroy(error));
  try {
    for await (const piece of from.pipe(decompressor)) yield bytesOf(piece);
  } catch (error) {
    throw error instanceof HoldfastError
      ? error
      : invalidArgument("FILE", "is compressed, and its compressed data is damaged", { cause: error });
  } finally {
    from.destroy();
    decompressor.destroy();
  }
}

function startsWith(bytes: Uint8Array, start: Uint8Array): boolean {
  return bytes.length >= start.length && start.every((byte, index) => bytes[index] === byte);
}
