/** Writing a file whole or not at all, or to standard output; compressed where its name says so. */

import { createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { Readable, type Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import * as zlib from "node:zlib";
import { HoldfastError, invalidArgument, toHoldfastError } from "../base/errors.ts";

/** Writes `pieces` to standard output. */
export async function writeStdout(pieces: AsyncIterable<Uint8Array>): Promise<void> {
  await pipeline(Readable.from(pieces, { objectMode: false }), process.stdout, { end: false });
}

/**
 * Writes `pieces` to a file, by way of another one beside it: whoever looks sees the whole file or what was there before. What `pieces`
 * throws is thrown, and nothing remains.
 */
export async function writeFileWhole(path: string, pieces: AsyncIterable<Uint8Array>): Promise<void> {
  const part = `${path}.part`;
  let thrown: unknown;
  const source = pieces[Symbol.asyncIterator]();
  async function* guarded(): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (;;) {
        const next = await source.next().catch((error: unknown) => {
          thrown = error;
          throw error;
        });
        if (next.done === true) return;
        // A target that fails throws its error in here, which is not one of `pieces`.
        yield next.value;
      }
    } finally {
      await source.return?.();
    }
  }
  try {
    const compressor = compressorOf(path);
    const target = createWriteStream(part, { mode: 0o600, flush: true });
    const input = Readable.from(guarded(), { objectMode: false });
    await (compressor === undefined ? pipeline(input, target) : pipeline(input, compressor, target));
    await rename(part, path);
  } catch (error) {
    await rm(part, { force: true });
    if (thrown !== undefined) throw toHoldfastError(thrown);
    throw error instanceof HoldfastError ? error : invalidArgument("--output", "must name a file that can be written", { cause: error });
  }
}

function compressorOf(path: string): Duplex | undefined {
  if (path.endsWith(".gz")) return zlib.createGzip();
  if (!path.endsWith(".zst")) return undefined;
  if (typeof zlib.createZstdCompress === "function") return zlib.createZstdCompress();
  throw invalidArgument("--output", "ends in .zst, which this version of Node cannot write; .gz works everywhere");
}
