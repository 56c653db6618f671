/** One file's bytes, read and written as a whole. What is written is on the disk when the promise resolves. */

import { closeSync, fdatasync, fstatSync, fsync, futimesSync, openSync, read, write } from "node:fs";
import { promisify } from "node:util";

const readBytes = promisify(read);
const writeBytes = promisify(write);
const syncBytes = promisify(fdatasync);
const syncAll = promisify(fsync);

/** Reads a file; one that becomes shorter meanwhile is what was read until then. */
export async function readWhole(file: string): Promise<Uint8Array> {
  const descriptor = openSync(file, "r");
  try {
    const bytes = new Uint8Array(fstatSync(descriptor).size);
    for (let at = 0; at < bytes.length;) {
      const { bytesRead } = await readBytes(descriptor, bytes, at, bytes.length - at, at);
      if (bytesRead === 0) return bytes.subarray(0, at);
      at += bytesRead;
    }
    return bytes;
  } finally {
    closeSync(descriptor);
  }
}

/** Writes a file that is not there yet, for its owner alone, last changed at `nowMs`. */
export async function writeSynced(file: string, bytes: Uint8Array, nowMs: number): Promise<void> {
  const descriptor = openSync(file, "wx", 0o600);
  try {
    for (let at = 0; at < bytes.length;) {
      const { bytesWritten } = await writeBytes(descriptor, bytes, at, bytes.length - at, at);
      at += bytesWritten;
    }
    futimesSync(descriptor, nowMs / 1000, nowMs / 1000);
    await syncBytes(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** A name in a folder survives a loss of power only once the folder does. */
export async function syncFolder(folder: string): Promise<void> {
  const descriptor = openSync(folder, "r");
  try {
    await syncAll(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
