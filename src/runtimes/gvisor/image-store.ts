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
import type { BlobRef, BlobStore, CallOptions } from "../../spi/index.ts";

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

type Piece = Pick<BlobRef, "uri" | "digest">;

/** The blob that names an image's pieces. */
export interface ImageHead {
  readonly kind: "gvisor";
  readonly format: number;
  readonly pins: Pins;
  /** What the harness in it knows of its line. */
  readonly line: LineResumption;
  readonly files: readonly { readonly name: string; readonly pieces: readonly Piece[] }[];
}

/** Reads and writes images. */
export class ImageStore {
  readonly #blobs: BlobStore;
  readonly #random: Random;

  constructor(blobs: BlobStore, random: Random) {
    this.#blobs = blobs;
    this.#random = random;
  }

  /** Stores the files of a folder; answers a snapshot's one string for it. */
  async put(folder: string, pins: Pins, line: LineResumption): Promise<string> {
    const mark = this.#random.bytes(MARK_BYTES);
    const stored: Piece[] = [];
    try {
      const files: { name: string; pieces: Piece[] }[] = [];
      for (const name of await readdir(folder)) {
        const pieces = await this.#putFile(join(folder, name), mark, stored);
        files.push({ name, pieces });
      }
      const head: ImageHead = { kind: "gvisor", format: FORMAT, pins, line, files };
      return textOf(await this.#blobs.put(new TextEncoder().encode(JSON.stringify(head))));
    } catch (error) {
      await Promise.allSettled(stored.map((piece) => this.#blobs.delete(piece)));
      throw error;
    }
  }

  /** What is stored of an image. Undefined where it is not there; FAILED_PRECONDITION or DATA_LOSS where it is none that can be used. */
  async head(text: string, options: CallOptions): Promise<ImageHead | undefined> {
    const bytes = await this.#blobs.get(pieceOf(text), options);
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

  /** Removes an image; one that is not there is passed over. */
  async delete(text: string, options: CallOptions): Promise<void> {
    const head = await this.head(text, options).catch(() => undefined);
    await this.#blobs.delete(pieceOf(text), options);
    for (const piece of head?.files.flatMap(({ pieces }) => pieces) ?? []) await this.#blobs.delete(piece, options);
  }

  async #putFile(path: string, mark: Uint8Array, stored: Piece[]): Promise<Piece[]> {
    const pieces: Piece[] = [];
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

function textOf({ uri, digest }: Piece): string {
  return `${uri}#${digest}`;
}

function pieceOf(text: string): Piece {
  const at = text.lastIndexOf("#");
  if (at < 0) throw invalidArgument("snapshot.external_uri", "must be one that the gvisor runtime gave out");
  return { uri: text.slice(0, at), digest: text.slice(at + 1) };
}

function headOf(bytes: Uint8Array): ImageHead {
  const head = parsed(bytes);
  if (head?.kind !== "gvisor") throw damaged("it is no image of gVisor");
  if (head.format !== FORMAT) {
    throw new HoldfastError("failed_precondition", `snapshot: its format is ${String(head.format)}; this host reads format ${FORMAT}`);
  }
  const line = lineResumptionOf(head.line);
  const { pins, files } = head;
  if (line === undefined || pins === undefined || files === undefined) throw damaged("its head is not whole");
  // A name is a file's, not a path.
  if (files.some(({ name }) => name.includes("/") || name.startsWith("."))) throw damaged("it has a file of no name");
  return { kind: "gvisor", format: FORMAT, pins, line, files };
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
