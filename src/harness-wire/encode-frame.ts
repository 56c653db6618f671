/**
 * A host's frame as bytes. Events that are encoded already go in as they are: a history of a hundred thousand events is neither held as
 * objects nor encoded twice, and is copied once.
 */

import { create, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { ControllerFrameSchema, StartSchema, type ControllerFrame } from "../gen/agentsessions/v1/harness_pb.ts";
import { HistoryPageSchema, HostFrameSchema } from "../gen/holdfast/v1/harness_wire_pb.ts";
import type { HostFrameInit } from "./line.ts";

const LENGTH = 2;
const START_HISTORY = (2 << 3) | LENGTH;
const CONTROLLER_START = (3 << 3) | LENGTH;
const PAGE_EVENTS = (3 << 3) | LENGTH;
const FRAME_CONTROLLER = (5 << 3) | LENGTH;
const FRAME_HISTORY = (7 << 3) | LENGTH;

/** A message in pieces: fields that are encoded, a list of encoded messages, and messages that are in pieces themselves. */
interface Pieces {
  readonly encoded: Uint8Array;
  readonly list?: { readonly tag: number; readonly entries: readonly Uint8Array[] };
  readonly inner?: { readonly tag: number; readonly pieces: Pieces };
}

/** The bytes of a frame. `events` go into its list of events: Start's history, or a page's. */
export function encodeHostFrame(frame: HostFrameInit, events: readonly Uint8Array[] = []): Uint8Array {
  const whole = create(HostFrameSchema, frame);
  if (events.length === 0) return toBinary(HostFrameSchema, whole);
  const { exchange, frame: body } = whole;
  const encoded = toBinary(HostFrameSchema, create(HostFrameSchema, { exchange }));
  if (body.case === "history") {
    const pieces = { encoded: toBinary(HistoryPageSchema, body.value), list: { tag: PAGE_EVENTS, entries: events } };
    return joined({ encoded, inner: { tag: FRAME_HISTORY, pieces } });
  }
  if (body.case === "controller") {
    return joined({ encoded, inner: { tag: FRAME_CONTROLLER, pieces: controllerPieces(body.value, events) } });
  }
  throw new TypeError("only a start and a page of a history have a list of events");
}

/** The bytes of a frame of the contract. `events` go into Start's history. */
export function encodeControllerFrame(
  frame: MessageInitShape<typeof ControllerFrameSchema>,
  events: readonly Uint8Array[] = [],
): Uint8Array {
  const whole = create(ControllerFrameSchema, frame);
  return events.length === 0 ? toBinary(ControllerFrameSchema, whole) : joined(controllerPieces(whole, events));
}

function controllerPieces({ session, executionId, frame }: ControllerFrame, events: readonly Uint8Array[]): Pieces {
  if (frame.case !== "start") throw new TypeError("of the contract's frames only a start has a list of events");
  const start = { encoded: toBinary(StartSchema, frame.value), list: { tag: START_HISTORY, entries: events } };
  const encoded = toBinary(ControllerFrameSchema, create(ControllerFrameSchema, { session, executionId }));
  return { encoded, inner: { tag: CONTROLLER_START, pieces: start } };
}

function joined(pieces: Pieces): Uint8Array {
  const bytes = new Uint8Array(lengthOf(pieces));
  write(bytes, 0, pieces);
  return bytes;
}

function lengthOf({ encoded, list, inner }: Pieces): number {
  let length = encoded.length;
  for (const entry of list?.entries ?? []) length += headLength(entry.length) + entry.length;
  if (inner === undefined) return length;
  const innerLength = lengthOf(inner.pieces);
  return length + headLength(innerLength) + innerLength;
}

/** Writes from `at` on; the place after what was written. */
function write(bytes: Uint8Array, at: number, { encoded, list, inner }: Pieces): number {
  bytes.set(encoded, at);
  let next = at + encoded.length;
  for (const entry of list?.entries ?? []) {
    next = writeHead(bytes, next, list?.tag ?? 0, entry.length);
    bytes.set(entry, next);
    next += entry.length;
  }
  if (inner === undefined) return next;
  return write(bytes, writeHead(bytes, next, inner.tag, lengthOf(inner.pieces)), inner.pieces);
}

/** The bytes of a tag of one byte and of a length. */
function headLength(length: number): number {
  let bytes = 2;
  for (let rest = length; rest >= 128; rest = Math.floor(rest / 128)) bytes += 1;
  return bytes;
}

function writeHead(bytes: Uint8Array, at: number, tag: number, length: number): number {
  let next = at;
  bytes[next++] = tag;
  let rest = length;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes[next++] = (rest % 128) | 128;
  bytes[next++] = rest;
  return next;
}
