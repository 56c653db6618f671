/** Reading records back. */

import { fromBinary } from "@bufbuild/protobuf";
import { HoldfastError } from "../base/errors.ts";
import { LogRecordSchema, type LogRecord } from "../gen/agentsessions/v1/common_pb.ts";
import { readLogRecord } from "./read-record.ts";

/**
 * The LogRecord that `bytes` encode; fields that this version does not know stay in `$unknown`. Throws DATA_LOSS for bytes
 * that are no LogRecord. Bytes in the result are views of `bytes`, not copies.
 */
export function decodeLogRecord(bytes: Uint8Array): LogRecord {
  const reading = readLogRecord(bytes);
  if (reading.kind === "read") return reading.record;
  try {
    // What our reader does not vouch for, the library may still make sense of.
    return fromBinary(LogRecordSchema, bytes);
  } catch (cause) {
    throw new HoldfastError("data_loss", "record: its stored bytes cannot be read", { cause });
  }
}
