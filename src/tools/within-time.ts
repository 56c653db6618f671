/**
 * Work in this thread that is given up when it takes too long: code that loops, and regular expressions that do.
 *
 * The engine ends what runs in it, wherever that is, so `work` must leave nothing half done that is used again.
 */

import { createContext, Script, type Context } from "node:vm";

/** The engine has a limit for scripts and for nothing else, so the work is called by one. */
const SCRIPT = new Script("work()");
let context: Context | undefined;

/** What `work` comes to; undefined when it took longer than `timeoutMs`. Throws what it throws. */
export function withinTime<T>(timeoutMs: number, work: () => T): { readonly value: T } | undefined {
  context ??= createContext();
  let value: { readonly value: T } | undefined;
  context["work"] = (): void => {
    value = { value: work() };
  };
  try {
    SCRIPT.runInContext(context, { timeout: timeoutMs });
    return value;
  } catch (error) {
    // The error is one of the script's own world, in which Error is another class.
    if (typeof error === "object" && error !== null && "code" in error && error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return undefined;
    throw error;
  } finally {
    context["work"] = undefined;
  }
}
