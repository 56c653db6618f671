/**
 * A host's frame as bytes. Events that are encoded already go in as they are: a history of a hundred thousand events is neither held as
 * objects nor encoded twice.
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

/** The bytes of a frame. `events` go into its list of events: Start's history, or a page's. */
export function encodeHostFrame(frame: HostFrameInit, events: readonly Uint8Array[] = []): Uint8Array {
  const whole = create(HostFrameSchema, frame);
  if (events.length === 0) return toBinary(HostFrameSchema, whole);
  const { frame: body } = whole;
  const outer = toBinary(HostFrameSchema, create(HostFrameSchema, { exchange: whole.exchange }));
  if (body.case === "history") {
    const page = toBinary(HistoryPageSchema, body.value);
    return joined([outer, ...field(FRAME_HISTORY, [page, ...events.flatMap((event) => field(PAGE_EVENTS, [event]))])]);
  }
  if (body.case === "controller") {
    return joined([outer, ...field(FRAME_CONTROLLER, controllerPieces(body.value, events))]);
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

function controllerPieces({ session, executionId, frame }: ControllerFrame, events: readonly Uint8Array[]): Uint8Array[] {
  if (frame.case !== "start") throw new TypeError("of the contract's frames only a start has a list of events");
  const envelope = toBinary(ControllerFrameSchema, create(ControllerFrameSchema, { session, executionId }));
  const start = toBinary(StartSchema, frame.value);
  const history: Uint8Array[] = [];
  for (const event of events) history.push(...field(START_HISTORY, [event]));
  return [envelope, ...field(CONTROLLER_START, [start, ...history])];
}

/** A length-delimited field, in pieces. */
function field(tag: number, pieces: readonly Uint8Array[]): Uint8Array[] {
  let length = 0;
  for (const piece of pieces) length += piece.length;
  const head = [tag];
  for (let rest = length; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) {
      head.push(rest);
      break;
    }
    head.push((rest % 128) | 128);
  }
  return [Uint8Array.from(head), ...pieces];
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const piece of pieces) length += piece.length;
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
