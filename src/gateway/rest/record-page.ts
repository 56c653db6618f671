/** A page of records as JSON. */

import { create, type JsonObject } from "@bufbuild/protobuf";
import { invalidArgument } from "../../base/errors.ts";
import { ReplayRequestSchema } from "../../gen/agentsessions/v1/session_pb.ts";
import type { SessionsService } from "../../service/contract.ts";
import type { StoredRecord } from "../../journal/index.ts";
import { recordJson } from "./json.ts";
import type { RestLimits } from "./limits.ts";
import type { RestCall } from "./route.ts";

/** The JSON schema of a page. */
export const RECORD_PAGE_SCHEMA = {
  type: "object",
  required: ["records"],
  properties: {
    records: { type: "array", items: { $ref: "#/components/schemas/agentsessions.v1.LogRecord" } },
    next_seq: { type: "string", format: "int64", description: "Where the next page begins; absent when this one ends the range." },
  },
};

/**
 * The records of the range that fit on one page. A page ends at `limit` records or at the first record past the limit of
 * bytes, so one record is always delivered.
 */
export async function recordPage(call: RestCall, sessions: SessionsService, limits: RestLimits): Promise<JsonObject> {
  const request = create(ReplayRequestSchema, {
    session: call.uid,
    fromSeq: call.query.int64("from_seq") ?? 0n,
    toSeq: call.query.int64("to_seq") ?? 0n,
  });
  const limit = pageLimit(call.query.int32("limit") ?? 0, limits);
  const records: StoredRecord[] = [];
  let sizeBytes = 0;
  for await (const page of sessions.replay(request, call.context)) {
    for (const record of page) {
      if (records.length === limit || sizeBytes > limits.pageBytesSoftMax) {
        return { records: records.map(recordJson), next_seq: String(record.seq) };
      }
      records.push(record);
      sizeBytes += record.bytes.length;
    }
  }
  return { records: records.map(recordJson) };
}

function pageLimit(asked: number, limits: RestLimits): number {
  if (asked < 0) throw invalidArgument("limit", "must not be negative");
  return asked === 0 ? limits.pageRecordsDefault : Math.min(asked, limits.pageRecordsMax);
}
