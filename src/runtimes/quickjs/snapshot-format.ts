/**
 * What is stored: a base (a VM that has just loaded its script) and captures. Both are one blob, a head as JSON and packed pages behind it.
 *
 * Invariants:
 * - A capture names what it was taken with: the engine's code, the harness's script and the base. Restored with anything else it would be
 *   garbage, so it is refused.
 * - It names all the blobs that it is combined of; none of them is ever changed.
 */

import { HoldfastError } from "../../base/index.ts";
import type { BlobName } from "../../spi/index.ts";
import type { WaitingTimer } from "./guest-timers.ts";
import type { EngineState } from "./messages.ts";

/** Changes with the format, and with what the door in a captured memory expects of its host. */
const FORMAT = 1;

/** What a memory depends on. */
export interface Pins {
  /** SHA-256 of the engine's WebAssembly. */
  readonly wasm: string;
  /** SHA-256 of the harness's script. */
  readonly script: string;
}

/** A base. */
export interface BaseHead {
  readonly kind: "base";
  readonly pins: Pins;
  readonly state: EngineState;
}

/** A blob whose pages are a part of a capture. */
export interface Layer extends BlobName {
  /** Bytes of its pages, packed. */
  readonly packedBytes: number;
}

/** A capture. */
export interface CaptureHead {
  readonly kind: "capture";
  readonly pins: Pins;
  readonly base: BlobName;
  /** The session whose memory it is. */
  readonly session: string;
  readonly memoryBytes: number;
  /** Captures before it whose pages are a part of this one, oldest first. */
  readonly layers: readonly Layer[];
  readonly timers: readonly WaitingTimer[];
  /** The time that the guest saw last. */
  readonly nowMs: number;
}

/** Encodes a head and its pages. */
export function encodeImage(head: BaseHead | CaptureHead, packed: Uint8Array): Uint8Array {
  const text = new TextEncoder().encode(JSON.stringify({ format: FORMAT, ...head }));
  const bytes = new Uint8Array(4 + text.length + packed.length);
  new DataView(bytes.buffer).setUint32(0, text.length, true);
  bytes.set(text, 4);
  bytes.set(packed, 4 + text.length);
  return bytes;
}

/** What a stored blob of this runtime needs beside itself; see `CaptureParts`. */
export function quickJsCaptureParts(bytes: Uint8Array): readonly BlobName[] | undefined {
  let head: CaptureHead | BaseHead;
  try {
    head = checkedHead(bytes);
  } catch (error) {
    if (error instanceof HoldfastError && error.code === "data_loss") return undefined;
    throw error;
  }
  return partsOf(head);
}

/** The blobs that a base, which is whole by itself, or a capture names. */
export function partsOf(head: CaptureHead | BaseHead): readonly BlobName[] {
  return head.kind === "base" ? [] : [head.base, ...head.layers];
}

/** Decodes one; the bytes have their digest already. Throws FAILED_PRECONDITION for another format, DATA_LOSS for what is none. */
export function decodeImage<Kind extends "base" | "capture">(
  bytes: Uint8Array,
  kind: Kind,
): { readonly head: Extract<BaseHead | CaptureHead, { readonly kind: Kind }>; readonly packed: Uint8Array } {
  const head = checkedHead(bytes);
  if (head.kind !== kind) throw new HoldfastError("data_loss", `a stored snapshot is damaged: it is no ${kind}`);
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  return { head: head as Extract<BaseHead | CaptureHead, { readonly kind: Kind }>, packed: bytes.subarray(4 + length) };
}

function checkedHead(bytes: Uint8Array): BaseHead | CaptureHead {
  const head = headOf(bytes);
  if (head.kind !== "base" && head.kind !== "capture") {
    throw new HoldfastError("data_loss", "a stored snapshot is damaged: it is neither a base nor a capture");
  }
  if (head.format === FORMAT) return head as BaseHead | CaptureHead;
  throw new HoldfastError("failed_precondition", `snapshot: its format is ${String(head.format)}; this host reads format ${FORMAT}`);
}

function headOf(bytes: Uint8Array): { readonly format?: unknown; readonly kind?: unknown } {
  try {
    const length = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0, true);
    if (4 + length > bytes.length) throw new RangeError("it is too short");
    const head: unknown = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
    if (typeof head !== "object" || head === null) throw new TypeError("it has no head");
    return head;
  } catch (cause) {
    throw new HoldfastError("data_loss", "a stored snapshot is damaged: it cannot be read", { cause });
  }
}

/** Throws FAILED_PRECONDITION that says what is another, if a memory was taken with something else than this host has. */
export function refuseOtherPins(taken: Pins, here: Pins): void {
  const of = (name: string, was: string, is: string): HoldfastError =>
    new HoldfastError(
      "failed_precondition",
      `snapshot: it was taken with another ${name} (sha256 ${was.slice(0, 12)}…, this host has ${is.slice(0, 12)}…); use the one it was taken with`,
    );
  if (taken.wasm !== here.wasm) throw of("QuickJS engine", taken.wasm, here.wasm);
  if (taken.script !== here.script) throw of("harness script", taken.script, here.script);
}
