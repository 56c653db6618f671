/** The ids of environments. */

import { invalidArgument } from "../../base/errors.ts";

/** `id` if an environment can have it. Throws INVALID_ARGUMENT that names `field`. */
export function environmentId(id: string, field: string): string {
  if (/^[a-z0-9_-]{1,64}$/.test(id)) return id;
  throw invalidArgument(field, "must be 1 to 64 lowercase letters, digits, underscores and hyphens");
}
