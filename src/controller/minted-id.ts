/** When an execution id was made, as far as it says so itself. Pure. */

import { timestampMs, type Timestamp } from "@bufbuild/protobuf/wkt";
import type { ExecutionId } from "../base/ids.ts";

/** A UUID of version 7, which begins with the milliseconds of its making. */
const TIME_ORDERED = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Whether `id` was made after `time`, so that nothing that was recorded until then can have it. False where it does not say. */
export function isMintedAfter(id: ExecutionId, time: Timestamp | undefined): boolean {
  const match = TIME_ORDERED.exec(id);
  if (match === null || time === undefined) return false;
  return Number.parseInt(`${match[1]}${match[2]}`, 16) > timestampMs(time);
}
