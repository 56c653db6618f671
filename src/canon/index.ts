/** Canonical bytes and hashes, exactly as `docs/canonical-form.md` states them. Pure and browser-safe. */

import type { Fence, Seq } from "../base/ids.ts";
import type { Digest } from "../base/ports.ts";
import type { Event } from "../gen/agentsessions/v1/common_pb.ts";

export declare function contentHash(record: { event: Event; prevHash: string; seq: Seq }, digest: Digest): string;
export declare function encodeLogRecord(record: {
  seq: Seq;
  prevHash: string;
  contentHash: string;
  fence: Fence;
  event: Event;
}): Uint8Array;
