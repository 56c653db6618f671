/**
 * Captures in a BlobStore. One capture is one blob: the pages that changed since the capture before it, and the names of those whose pages it
 * needs besides. Small ones are merged from time to time, so that a restore reads few.
 *
 * Invariants:
 * - What a capture names was found and renewed before it is stored; where a layer was gone, the capture is whole.
 * - Layers belong to one session. A fork's first capture is whole, so that no session's memory hangs on another's.
 * - Merging never rewrites a layer that is much larger than what is merged: a large heap costs nothing until as much has changed. So a
 *   capture is of few layers: each of them is more than half of all that come after it, or one of the newest.
 */

import { HoldfastError, invalidArgument } from "../../base/index.ts";
import { snapshotBlob, type BlobName, type BlobStore, type CallOptions } from "../../spi/index.ts";
import type { PackedImage } from "./messages.ts";
import {
  decodeImage,
  encodeImage,
  partsOf,
  refuseOtherPins,
  type BaseHead,
  type CaptureHead,
  type Layer,
  type Pins,
} from "./snapshot-format.ts";

/** With so many layers, the newest are merged, as long as they are small together: a turn that changes little stores little. */
const LAYERS_FEW = 8;
const MERGED_BYTES_FEW = 24 * 2 ** 10;
/** With so many, whatever is not much larger than the layers after it is merged. */
const LAYERS_MAX = 48;
const MERGED_RATIO = 2;

/** A base, as workers are given it. */
export interface StoredBase {
  readonly ref: BlobName;
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
  /** Captures that are being read: forks of one snapshot read it once. */
  readonly #reading = new Map<string, Promise<StoredCapture | undefined>>();

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
   * Renews what the next capture of a memory is made of. A base that is gone is stored again; answers false where a layer is gone, so that
   * the next capture has to be whole.
   */
  async ready(base: StoredBase, chain: readonly Layer[], options: CallOptions): Promise<boolean> {
    if (!(await this.#blobs.renew(base.ref, options))) await this.putBase(base.image);
    return (await this.#missing(chain, options)) === undefined;
  }

  /** Renews a capture and all that it names; answers the digest of the first part that is gone. */
  async renew(uri: string, options: CallOptions): Promise<string | undefined> {
    const ref = blobOf(uri);
    const head = await this.#headOf(ref, options);
    return head === undefined ? ref.digest : this.#missing([ref, ...partsOf(head)], options);
  }

  /** Removes a capture and its layers, save what `newer`, a capture of the same session, needs of them. */
  async discard(uri: string, newer: string, options: CallOptions): Promise<void> {
    const [ref, newerRef] = [blobOf(uri), blobOf(newer)];
    const newerHead = await this.#headOf(newerRef, options);
    if (newerHead === undefined) return;
    const needed = new Set([newerRef, ...newerHead.layers].map(({ digest }) => digest));
    // A capture that others are made of is needed with all its layers.
    if (needed.has(ref.digest)) return;
    const head = await this.#headOf(ref, options);
    if (head?.session !== newerHead.session) return;
    for (const part of [ref, ...head.layers]) if (!needed.has(part.digest)) await this.#blobs.delete(part, options);
  }

  async #headOf(ref: BlobName, options: CallOptions): Promise<CaptureHead | undefined> {
    const bytes = await this.#blobs.get(ref, options);
    return bytes === undefined ? undefined : decodeImage(bytes, "capture").head;
  }

  async #missing(names: readonly BlobName[], options: CallOptions): Promise<string | undefined> {
    for (const name of names) if (!(await this.#blobs.renew(name, options))) return name.digest;
    return undefined;
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
    const kept = layersKept(chain, delta.length);
    const merged = chain.slice(kept);
    let packed = delta;
    if (merged.length > 0) {
      const older = await Promise.all(merged.map(async (layer) => (await this.#read(layer)).packed));
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
  async get(uri: string, { signal }: CallOptions): Promise<StoredCapture | undefined> {
    let reading = this.#reading.get(uri);
    if (reading === undefined) {
      reading = this.#get(uri).finally(() => this.#reading.delete(uri));
      this.#reading.set(uri, reading);
    }
    const capture = await reading;
    signal?.throwIfAborted();
    return capture;
  }

  async #get(uri: string): Promise<StoredCapture | undefined> {
    const ref = blobOf(uri);
    const bytes = await this.#blobs.get(ref);
    if (bytes === undefined) return undefined;
    const { head, packed } = decodeImage(bytes, "capture");
    refuseOtherPins(head.pins, this.#pins);
    const layers = await Promise.all(head.layers.map((layer) => this.#read(layer)));
    const deltas = [...layers.map((layer) => layer.packed), packed];
    return { head, base: await this.#base(head.base), deltas, chain: [...head.layers, { ...ref, packedBytes: packed.length }] };
  }

  async #read(layer: Layer): Promise<{ readonly packed: Uint8Array }> {
    const bytes = await this.#blobs.get(layer);
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

/** How many of the oldest layers stay as they are, the newer ones being merged with `newestBytes` of changes. */
export function layersKept(chain: readonly Pick<Layer, "packedBytes">[], newestBytes: number): number {
  let kept = chain.length;
  if (chain.length < LAYERS_FEW) return kept;
  const isMany = chain.length >= LAYERS_MAX;
  for (let mergedBytes = newestBytes; kept > 0; kept--) {
    const { packedBytes } = chain[kept - 1]!;
    if (isMany ? packedBytes > MERGED_RATIO * mergedBytes : mergedBytes + packedBytes > MERGED_BYTES_FEW) break;
    mergedBytes += packedBytes;
  }
  return kept;
}

function blobOf(text: string): BlobName {
  const ref = snapshotBlob(text);
  if (ref === undefined) throw invalidArgument("snapshot.external_uri", "must be one that the quickjs runtime gave out");
  return ref;
}

function partGone(): HoldfastError {
  return new HoldfastError("data_loss", "a stored snapshot is damaged: a blob that it is a part of is gone");
}
