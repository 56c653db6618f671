/** A committed record as stores hold it: the bytes of its LogRecord exactly as they go on the wire, and what indexes need. */

import type { Fence, Seq } from "../base/ids.ts";
import { EventKindSchema, type Event, type EventKind } from "../gen/agentsessions/v1/common_pb.ts";

/** A committed record. Reading and replaying a journal decodes none of it. */
export interface StoredRecord {
  readonly seq: Seq;
  readonly kind: EventKind;
  readonly contentHash: string;
  readonly fence: Fence;
  /** The protobuf encoding of the whole `agentsessions.v1.LogRecord`. */
  readonly bytes: Uint8Array;
}

/** An event that is to be appended. */
export interface NewEvent {
  /** The event, already normalised (see canon's `normaliseEvent`). */
  readonly event: Event;
  /** Facts kept beside the record, outside the chain: an encoded message of `holdfast.v1`. */
  readonly aside?: Uint8Array | undefined;
}

/** A record that another journal sealed. */
export interface SealedRecord {
  /** The protobuf encoding of its LogRecord, to be kept as it is. */
  readonly bytes: Uint8Array;
  readonly aside?: Uint8Array | undefined;
}

/** The end of a chain: what the next record links to. */
export interface Head {
  readonly seq: Seq;
  /** The content hash of the record at `seq`; "" where there is none. */
  readonly hash: string;
}

/** An event kind in short: `MODEL_CALL`; a kind that this version does not know is `KIND_<number>`. */
export function eventKindName(kind: EventKind): string {
  const name = EventKindSchema.value[kind]?.name;
  return name === undefined ? `KIND_${kind}` : name.replace(/^EVENT_/, "");
}
