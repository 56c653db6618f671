/** Whether anything is still held that nobody needs. */

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** How many of these values a collection of garbage leaves. One or two may be: what was at hand last is on the stack yet. */
export async function stillHeld(values: readonly WeakRef<object>[]): Promise<number> {
  // What a WeakRef gave out is held to the end of its job.
  await new Promise(setImmediate);
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  if (typeof collect === "function") Reflect.apply(collect, undefined, []);
  return values.filter((value) => value.deref() !== undefined).length;
}
