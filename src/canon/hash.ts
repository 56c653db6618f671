/**
 * The hashes of the contract: `content_hash` of a record and `spec_digest` of a harness registration. A record's hash covers
 * its event, its seq and the hash before it; fence, and everything of the session resource, is outside.
 */

import { toJson } from "@bufbuild/protobuf";
import type { Seq } from "../base/ids.ts";
import type { Digest } from "../base/ports.ts";
import type { Event } from "../gen/agentsessions/v1/common_pb.ts";
import { HarnessSpecSchema, type HarnessSpec } from "../gen/agentsessions/v1/harness_registry_pb.ts";
import { canonicalEvent } from "./event-text.ts";
import { stringText, valueText } from "./json-text.ts";

export { valueText as canonicalJson };

/** What a record's hash covers. */
export interface HashedRecord {
  readonly event: Event;
  /** The content hash of the record before this one; "" for the first. */
  readonly prevHash: string;
  /** A bigint may be any int64; the text is exact past 2^53. */
  readonly seq: Seq | bigint;
}

/** The canonical text that `contentHash` hashes. Throws INVALID_ARGUMENT for what has no JSON form. */
export function canonicalRecord(record: HashedRecord): string {
  return `{"event":${canonicalEvent(record.event)},"prev_hash":${stringText(record.prevHash)},"seq":"${record.seq}"}`;
}

/** The lowercase hex SHA-256 that chains `record` to the one before it. Throws INVALID_ARGUMENT for what has no JSON form. */
export function contentHash(record: HashedRecord, digest: Digest): string {
  return digest.sha256Hex(canonicalRecord(record));
}

/** The content address of a harness registration: `sha256:` and the lowercase hex SHA-256 of the spec's canonical text. */
export function specDigest(spec: HarnessSpec, digest: Digest): string {
  return `sha256:${digest.sha256Hex(valueText(toJson(HarnessSpecSchema, spec, { useProtoFieldName: true })))}`;
}
