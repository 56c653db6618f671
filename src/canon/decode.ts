/** Reading records back. The library's reader takes about as long as hashing a record does, so there is none of our own. */

import { fromBinary } from "@bufbuild/protobuf";
import { HoldfastError } from "../base/errors.ts";
import { LogRecordSchema, type LogRecord } from "../gen/agentsessions/v1/common_pb.ts";

/**
 * The LogRecord that `bytes` encode; fields that this version does not know stay in `$unknown`. Throws DATA_LOSS for bytes
 * that are no LogRecord. Bytes in the result are views of `bytes`, not copies.
 */
export function decodeLogRecord(bytes: Uint8Array): LogRecord {
  try {
    return fromBinary(LogRecordSchema, bytes);
  } catch (cause) {
    throw new HoldfastError("data_loss", "record: its stored bytes cannot be read", { cause });
  }
}
