/**
 * Memory images in a BlobStore. An image is what runsc wrote, in pieces of some megabytes, so that no image is in the host's memory as a
 * whole, and a blob that names them.
 *
 * Invariants:
 * - An image names what it was taken with: runsc's version and platform, the harness's command and its program. Anything else would
 *   bring back garbage, so it is refused.
 * - No two images share a blob, so one can be removed without asking for others: each piece begins with a number that is its image's own.
 */

import { createReadStream } from "node:fs";
import { mkdir, open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { HoldfastError, invalidArgument } from "../../base/errors.ts";
import type { Random } from "../../base/ports.ts";
import { lineResumptionOf, type LineResumption } from "../../harness-wire/index.ts";
import { snapshotBlob, snapshotUri, type BlobName, type BlobStore, type CallOptions } from "../../spi/index.ts";

const FORMAT = 1;
const PIECE_BYTES = 8 * 1024 * 1024;
const MARK_BYTES = 16;

/** What an image depends on. */
export interface Pins {
  readonly runsc: string;
  readonly platform: string;
  /** A digest of the command, its arguments and what the sandbox sees. */
  readonly command: string;
  /** The SHA-256 of the program. */
  readonly program: string;
}

/** The blob that names an image's pieces. */
export interface ImageHead {
  readonly kind: "gvisor";
  readonly format: number;
  readonly pins: Pins;
  /** The session whose memory it is; absent in an image of an earlier version. */
  readonly session?: string | undefined;
  /** What the harness in it knows of its line. */
  readonly line: LineResumption;
  readonly files: readonly { readonly name: string; readonly pieces: readonly BlobName[] }[];
}

/** Reads and writes images. */
export class ImageStore {
  readonly #blobs: BlobStore;
  readonly #random: Random;

  constructor(blobs: BlobStore, random: Random) {
    this.#blobs = blobs;
    this.#random = random;
  }

  /** Stores the files of a folder as a session's memory; answers a snapshot's one string for it. */
  async put(folder: string, { pins, session, line }: Pick<ImageHead, "pins" | "session" | "line">): Promise<string> {
    const mark = this.#random.bytes(MARK_BYTES);
    const stored: BlobName[] = [];
    try {
      const files: { name: string; pieces: BlobName[] }[] = [];
      for (const name of await readdir(folder)) {
        const pieces = await this.#putFile(join(folder, name), mark, stored);
        files.push({ name, pieces });
      }
      const head: ImageHead = { kind: "gvisor", format: FORMAT, pins, session, line, files };
      return snapshotUri(await this.#blobs.put(new TextEncoder().encode(JSON.stringify(head))));
    } catch (error) {
      await Promise.allSettled(stored.map((piece) => this.#blobs.delete(piece)));
      throw error;
    }
  }

  /** What is stored of an image. Undefined where it is not there; FAILED_PRECONDITION or DATA_LOSS where it is none that can be used. */
  async head(text: string, options: CallOptions): Promise<ImageHead | undefined> {
    const bytes = await this.#blobs.get(nameOf(text), options);
    return bytes === undefined ? undefined : headOf(bytes);
  }

  /** Writes an image's files into a folder that is made for it. Rejects with DATA_LOSS where a piece is gone or damaged. */
  async get({ files }: ImageHead, folder: string): Promise<void> {
    await mkdir(folder);
    for (const { name, pieces } of files) {
      const file = await open(join(folder, name), "wx", 0o600);
      try {
        for (const piece of pieces) {
          const bytes = await this.#blobs.get(piece);
          if (bytes === undefined) throw damaged("a piece of it is gone");
          await file.writeFile(bytes.subarray(MARK_BYTES));
        }
      } finally {
        await file.close();
      }
    }
  }

  /** Renews an image; answers the digest of the first part of it that is gone. */
  async renew(text: string, options: CallOptions): Promise<string | undefined> {
    const head = await this.head(text, options);
    const parts = [nameOf(text), ...(head === undefined ? [] : piecesOf(head))];
    for (const part of parts) if (!(await this.#blobs.renew(part, options))) return part.digest;
    return undefined;
  }

  /** Removes an image if `newer` is another one of the same session. What is gone is passed over. */
  async discard(text: string, newer: string, options: CallOptions): Promise<void> {
    if (text === newer) return;
    const [head, newerHead] = [await this.head(text, options), await this.head(newer, options)];
    if (head?.session === undefined || head.session !== newerHead?.session) return;
    for (const part of [nameOf(text), ...piecesOf(head)]) await this.#blobs.delete(part, options);
  }

  async #putFile(path: string, mark: Uint8Array, stored: BlobName[]): Promise<BlobName[]> {
    const pieces: BlobName[] = [];
    for await (const chunk of createReadStream(path, { highWaterMark: PIECE_BYTES })) {
      const { uri, digest } = await this.#blobs.put(Buffer.concat([mark, chunk as Buffer]));
      pieces.push({ uri, digest });
      stored.push({ uri, digest });
    }
    return pieces;
  }
}

/** Throws FAILED_PRECONDITION that says what is another, if an image was taken with something else than this host has. */
export function refuseOtherPins(taken: Pins, here: Pins): void {
  const another = (what: string): HoldfastError =>
    new HoldfastError("failed_precondition", `snapshot: it was taken with ${what}; use the one it was taken with`);
  if (taken.runsc !== here.runsc) throw another(`runsc ${taken.runsc}, and this host has ${here.runsc}`);
  if (taken.platform !== here.platform) throw another(`the gVisor platform ${taken.platform}, and this host uses ${here.platform}`);
  if (taken.command !== here.command) throw another("another command, working directory or visible paths than are configured");
  if (taken.program !== here.program) {
    const [was, is] = [taken.program.slice(0, 12), here.program.slice(0, 12)];
    throw another(`another program file (sha256 ${was}…, this host has ${is}…)`);
  }
}

/** What a stored image names; see `CaptureParts`. A piece is no image by itself: its first bytes are a number. */
export function gvisorCaptureParts(bytes: Uint8Array): readonly BlobName[] | undefined {
  return parsed(bytes)?.kind === "gvisor" ? piecesOf(headOf(bytes)) : undefined;
}

function piecesOf({ files }: ImageHead): readonly BlobName[] {
  return files.flatMap(({ pieces }) => pieces);
}

function nameOf(text: string): BlobName {
  const name = snapshotBlob(text);
  if (name === undefined) throw invalidArgument("snapshot.external_uri", "must be one that the gvisor runtime gave out");
  return name;
}

function headOf(bytes: Uint8Array): ImageHead {
  const head = parsed(bytes);
  if (head?.kind !== "gvisor") throw damaged("it is no image of gVisor");
  if (head.format !== FORMAT) {
    throw new HoldfastError("failed_precondition", `snapshot: its format is ${String(head.format)}; this host reads format ${FORMAT}`);
  }
  const line = lineResumptionOf(head.line);
  const { pins, session, files } = head;
  if (line === undefined || pins === undefined || files === undefined) throw damaged("its head is not whole");
  // A name is a file's, not a path.
  if (files.some(({ name }) => name.includes("/") || name.startsWith("."))) throw damaged("it has a file of no name");
  return { kind: "gvisor", format: FORMAT, pins, session, line, files };
}

function parsed(bytes: Uint8Array): Partial<ImageHead> | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function damaged(why: string): HoldfastError {
  return new HoldfastError("data_loss", `a stored snapshot is damaged: ${why}`);
}
