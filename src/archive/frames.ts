/**
 * An export in binary form: `ExportFrame`s, each with its length in front.
 *
 * Invariant: a frame says one thing in one way. What is not encoded as we encode it (a field that no frame has, a field twice) is
 * refused, so that nothing can hide between the records, which bring their own checks.
 */

import { create, fromBinary, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { isSameBytes } from "../base/bytes.ts";
import { invalidArgument } from "../base/errors.ts";
import { seqOf, type SessionUid } from "../base/ids.ts";
import { ExportFrameSchema, type ExportFrame } from "../gen/holdfast/v1/export_pb.ts";
import { exportedOf, factsOf } from "./facts.ts";
import { malformed, readingAt, type ArchiveItem } from "./item.ts";
import { readVarint, varintLength, writeVarint } from "./varint.ts";

/** What a binary export begins with. A text editor or a transfer as text spoils it visibly. */
export const MAGIC: Uint8Array = Uint8Array.of(0x89, 0x48, 0x46, 0x58, 0x0d, 0x0a, 0x1a, 0x0a);

/** Frames name sessions by their place among the sessions of the export. */
export class SessionIndex {
  readonly #indexOf = new Map<SessionUid, number>();
  readonly #uids: SessionUid[] = [];

  add(uid: SessionUid): void {
    this.#indexOf.set(uid, this.#uids.length);
    this.#uids.push(uid);
  }

  indexOf(uid: SessionUid): number {
    return this.#indexOf.get(uid) ?? -1;
  }

  uidAt(index: number): SessionUid {
    const uid = this.#uids[index];
    if (uid === undefined) throw invalidArgument("session_index", "must be the place of a session that came before");
    return uid;
  }
}

/** The frame of an item with its length in front. `sessions` gains a session that comes by. */
export function frameBytesOf(item: ArchiveItem, sessions: SessionIndex): Uint8Array {
  if (item.kind === "record") return recordFrame(sessions.indexOf(item.session), item.bytes);
  if (item.kind === "session") sessions.add(item.facts.seed.uid);
  const frame = toBinary(ExportFrameSchema, create(ExportFrameSchema, { frame: frameOf(item, sessions) }));
  const bytes = new Uint8Array(varintLength(frame.length) + frame.length);
  bytes.set(frame, writeVarint(bytes, 0, frame.length));
  return bytes;
}

type FrameInit = NonNullable<MessageInitShape<typeof ExportFrameSchema>["frame"]>;

function frameOf(item: Exclude<ArchiveItem, { kind: "record" }>, sessions: SessionIndex): FrameInit {
  switch (item.kind) {
    case "header":
      return { case: "header", value: { version: item.version } };
    case "session":
      return { case: "session", value: exportedOf(item.facts) };
    case "aside":
      return { case: "aside", value: { sessionIndex: sessions.indexOf(item.session), seq: BigInt(item.seq), data: item.bytes } };
    case "head":
      return { case: "head", value: item.head };
    case "end":
      return { case: "end", value: { sessions: BigInt(item.sessions), records: BigInt(item.records) } };
  }
}

/** The item of a frame, without its length. `where` is the frame's place. Throws INVALID_ARGUMENT about the file. */
export function itemOfFrame(frame: Uint8Array, sessions: SessionIndex, where: string): ArchiveItem {
  return readingAt(where, () => {
    if (frame[0] === RECORD_TAG) return readRecordFrame(frame, sessions);
    const message = fromBinary(ExportFrameSchema, frame);
    if (!isSameBytes(toBinary(ExportFrameSchema, message), frame)) {
      throw malformed(where, "is not encoded as a frame is: it has a field that no frame has, or one twice");
    }
    const item = itemOf(message, sessions);
    if (item === undefined) throw malformed(where, "is of no kind that an export has");
    if (item.kind === "session") sessions.add(item.facts.seed.uid);
    return item;
  });
}

function itemOf({ frame }: ExportFrame, sessions: SessionIndex): ArchiveItem | undefined {
  switch (frame.case) {
    case "header":
      return { kind: "header", version: frame.value.version };
    case "session":
      return { kind: "session", facts: factsOf(frame.value) };
    case "record":
      return { kind: "record", session: sessions.uidAt(frame.value.sessionIndex), bytes: frame.value.logRecord };
    case "aside": {
      const { sessionIndex, seq, data } = frame.value;
      return { kind: "aside", session: sessions.uidAt(sessionIndex), seq: seqOf(seq), bytes: new Uint8Array(data) };
    }
    case "head":
      return { kind: "head", head: frame.value };
    case "end":
      return { kind: "end", sessions: seqOf(frame.value.sessions, "sessions"), records: seqOf(frame.value.records, "records") };
    case undefined:
      return undefined;
  }
}

/** Fields 3 of a frame, 1 and 2 of a record in it. Nearly all frames are records, so these are written and read by hand. */
const RECORD_TAG = 0x1a;
const INDEX_TAG = 0x08;
const BYTES_TAG = 0x12;

function recordFrame(index: number, record: Uint8Array): Uint8Array {
  const indexLength = index === 0 ? 0 : 1 + varintLength(index);
  const innerLength = indexLength + 1 + varintLength(record.length) + record.length;
  const frameLength = 1 + varintLength(innerLength) + innerLength;
  const bytes = new Uint8Array(varintLength(frameLength) + frameLength);
  let at = writeVarint(bytes, 0, frameLength);
  bytes[at++] = RECORD_TAG;
  at = writeVarint(bytes, at, innerLength);
  if (index !== 0) {
    bytes[at++] = INDEX_TAG;
    at = writeVarint(bytes, at, index);
  }
  bytes[at++] = BYTES_TAG;
  bytes.set(record, writeVarint(bytes, at, record.length));
  return bytes;
}

function readRecordFrame(frame: Uint8Array, sessions: SessionIndex): ArchiveItem {
  const inner = natural(frame, 1);
  if (inner.end + inner.value !== frame.length) throw notARecord();
  let index = 0;
  let at = inner.end;
  if (frame[at] === INDEX_TAG) {
    const read = natural(frame, at + 1);
    if (read.value === 0) throw notARecord();
    index = read.value;
    at = read.end;
  }
  if (frame[at] !== BYTES_TAG) throw notARecord();
  const length = natural(frame, at + 1);
  if (length.end + length.value !== frame.length || length.value === 0) throw notARecord();
  // The frame is a view of a chunk that goes on to hold others, and that may be a Node Buffer, whose `slice` copies nothing.
  return { kind: "record", session: sessions.uidAt(index), bytes: new Uint8Array(frame.subarray(length.end)) };
}

function natural(frame: Uint8Array, at: number): { readonly value: number; readonly end: number } {
  const reading = readVarint(frame, at);
  if (reading.kind !== "read") throw notARecord();
  return reading;
}

function notARecord(): Error {
  return invalidArgument("record", "must be a record's place and its bytes, and nothing else");
}
