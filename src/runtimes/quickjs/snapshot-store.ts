/**
 * Captures in a BlobStore. One capture is one blob: the pages that changed since the capture before it, and the names of those whose pages it
 * needs besides. Small ones are merged from time to time, so that a restore reads few.
 *
 * Invariants:
 * - Layers belong to one session. A fork's first capture is whole, so that no session's memory hangs on another's.
 * - Merging never rewrites a layer that is much larger than what is merged: a large heap costs nothing until as much has changed.
 */

import { HoldfastError, invalidArgument } from "../../base/index.ts";
import type { BlobStore, CallOptions } from "../../spi/index.ts";
import type { PackedImage } from "./messages.ts";
import { decodeImage, encodeImage, refuseOtherPins, type BaseHead, type CaptureHead, type Layer, type Pins } from "./snapshot-format.ts";

/** With so many layers, those that are small are merged. */
const LAYERS_MAX = 8;
/** A layer is merged with newer ones while it is at most so many times as large as they are together. */
const MERGED_RATIO = 2;

/** A base, as workers are given it. */
export interface StoredBase {
  readonly ref: { readonly uri: string; readonly digest: string };
  readonly image: PackedImage;
}

/** A capture, ready to be loaded. */
export interface StoredCapture {
  readonly head: CaptureHead;
  readonly base: StoredBase;
  /** Its own pages and those of its layers. */
  readonly deltas: readonly Uint8Array[];
  /** All of its layers, itself last. */
  readonly chain: readonly Layer[];
}

/** Merges packed pages, on a worker. */
export type Merge = (deltas: readonly Uint8Array[], memoryBytes: number) => Promise<Uint8Array>;

/** Reads and writes captures. */
export class SnapshotStore {
  readonly #blobs: BlobStore;
  readonly #pins: Pins;
  readonly #bases = new Map<string, Promise<StoredBase>>();

  constructor(blobs: BlobStore, pins: Pins) {
    this.#blobs = blobs;
    this.#pins = pins;
  }

  /** Stores what a boot gave. */
  async putBase(image: PackedImage): Promise<StoredBase> {
    const head: BaseHead = { kind: "base", pins: this.#pins, state: image.state };
    const { uri, digest } = await this.#blobs.put(encodeImage(head, image.pages));
    const base: StoredBase = { ref: { uri, digest }, image };
    this.#bases.set(digest, Promise.resolve(base));
    return base;
  }

  /**
   * Stores a capture and answers its chain, itself last. `delta` is what changed since `chain`; merged with layers of it, where there are
   * many.
   */
  async put(
    head: Omit<CaptureHead, "kind" | "pins" | "layers">,
    chain: readonly Layer[],
    delta: Uint8Array,
    merge: Merge,
    options: CallOptions,
  ): Promise<Layer[]> {
    const kept = chain.length + 1 > LAYERS_MAX ? layersKept(chain, delta.length) : chain.length;
    const merged = chain.slice(kept);
    let packed = delta;
    if (merged.length > 0) {
      const older = await Promise.all(merged.map(async (layer) => (await this.#read(layer, options)).packed));
      packed = await merge([...older, delta], head.memoryBytes);
    }
    const layers = chain.slice(0, kept);
    const { uri, digest } = await this.#blobs.put(encodeImage({ kind: "capture", pins: this.#pins, ...head, layers }, packed), options);
    return [...layers, { uri, digest, packedBytes: packed.length }];
  }

  /**
   * Reads a capture with all that it needs. Throws FAILED_PRECONDITION where it was taken with another engine or script, DATA_LOSS where
   * a part is gone or damaged; undefined where the capture itself is not there.
   */
  async get(uri: string, options: CallOptions): Promise<StoredCapture | undefined> {
    const ref = blobOf(uri);
    const bytes = await this.#blobs.get(ref, options);
    if (bytes === undefined) return undefined;
    const { head, packed } = decodeImage(bytes, "capture");
    refuseOtherPins(head.pins, this.#pins);
    const layers = await Promise.all(head.layers.map((layer) => this.#read(layer, options)));
    const deltas = [...layers.map((layer) => layer.packed), packed];
    return { head, base: await this.#base(head.base), deltas, chain: [...head.layers, { ...ref, packedBytes: packed.length }] };
  }

  /** Removes a blob. */
  async delete(layer: Pick<Layer, "uri" | "digest">, options: CallOptions): Promise<void> {
    await this.#blobs.delete(layer, options);
  }

  async #read(layer: Layer, options: CallOptions): Promise<{ readonly packed: Uint8Array }> {
    const bytes = await this.#blobs.get(layer, options);
    if (bytes === undefined) throw partGone();
    return decodeImage(bytes, "capture");
  }

  #base(ref: StoredBase["ref"]): Promise<StoredBase> {
    let base = this.#bases.get(ref.digest);
    if (base === undefined) {
      base = this.#readBase(ref);
      this.#bases.set(ref.digest, base);
      base.catch(() => this.#bases.delete(ref.digest));
    }
    return base;
  }

  async #readBase(ref: StoredBase["ref"]): Promise<StoredBase> {
    const bytes = await this.#blobs.get(ref);
    if (bytes === undefined) throw partGone();
    const { head, packed } = decodeImage(bytes, "base");
    refuseOtherPins(head.pins, this.#pins);
    return { ref, image: { state: head.state, pages: packed } };
  }
}

/** How many of the oldest layers stay as they are when the newer ones are merged with `newestBytes` of changes. */
export function layersKept(chain: readonly Layer[], newestBytes: number): number {
  let kept = chain.length;
  let mergedBytes = newestBytes;
  while (kept > 0 && chain[kept - 1]!.packedBytes <= MERGED_RATIO * mergedBytes) mergedBytes += chain[--kept]!.packedBytes;
  return kept;
}

/** A snapshot's one string for a blob. */
export function snapshotUri({ uri, digest }: Pick<Layer, "uri" | "digest">): string {
  return `${uri}#${digest}`;
}

function blobOf(text: string): { readonly uri: string; readonly digest: string } {
  const at = text.lastIndexOf("#");
  if (at < 0) throw invalidArgument("snapshot.external_uri", "must be one that the quickjs runtime gave out");
  return { uri: text.slice(0, at), digest: text.slice(at + 1) };
}

function partGone(): HoldfastError {
  return new HoldfastError("data_loss", "a stored snapshot is damaged: a blob that it is a part of is gone");
}
