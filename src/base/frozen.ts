/** Values that nobody changes any more. */

/** Freezes a value with all that is in it, but for bytes, which cannot be frozen and go into `bytes`. Returns the value. */
export function deeplyFrozen<T>(value: T, bytes?: Uint8Array[]): T {
  if (typeof value !== "object" || value === null) return value;
  if (ArrayBuffer.isView(value)) {
    if (value instanceof Uint8Array) bytes?.push(value);
    return value;
  }
  for (const inner of Object.values(value)) deeplyFrozen(inner, bytes);
  return Object.freeze(value);
}

/** Nothing that is nested deeper can be recorded, or asked. */
const DEPTH_MAX = 1_000;

/** Whether a value cannot change but for the bytes in it, which go into `bytes`. */
export function isDeeplyFrozen(value: unknown, bytes: Uint8Array[] = [], depth = 0): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (value instanceof Uint8Array) {
    bytes.push(value);
    return true;
  }
  if (depth > DEPTH_MAX || !Object.isFrozen(value)) return false;
  for (const inner of Object.values(value)) if (!isDeeplyFrozen(inner, bytes, depth + 1)) return false;
  return true;
}
