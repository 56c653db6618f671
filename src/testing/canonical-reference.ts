/**
 * The slow path to the canonical text, by other people's code: protobuf-es writes the pinned JSON mapping, a third-party
 * RFC 8785 library sorts and prints it. Tests hold the direct writer equal to it.
 */

import { toJson } from "@bufbuild/protobuf";
import canonicalize from "canonicalize";
import { EventSchema, type Event } from "../gen/agentsessions/v1/common_pb.ts";

/** The canonical text of an Event. */
export function referenceEvent(event: Event): string {
  return canonical(toJson(EventSchema, event, { useProtoFieldName: true }));
}

/** The canonical text that a record's content hash covers. */
export function referenceRecord(record: { readonly event: Event; readonly prevHash: string; readonly seq: bigint }): string {
  // The envelope is built by hand: a message would drop the empty prev_hash of the first record.
  const event = toJson(EventSchema, record.event, { useProtoFieldName: true });
  return canonical({ event, prev_hash: record.prevHash, seq: `${record.seq}` });
}

/** Plain JSON by the third-party library alone. */
export function canonical(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError("has no JSON form");
  return text;
}
