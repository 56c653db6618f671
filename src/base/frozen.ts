/** Values that nobody changes any more. */

/** Freezes a value with all that is in it, but for bytes, which cannot be frozen. Returns the value. */
export function deeplyFrozen<T>(value: T): T {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
  for (const inner of Object.values(value)) deeplyFrozen(inner);
  return Object.freeze(value);
}
