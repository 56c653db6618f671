/**
 * The names of a server's tools among all tools of the host. Pure.
 *
 * Invariant: the name depends on the server's and the tool's name alone, so that it is the same on every host and after every restart,
 * whatever other tools there are.
 */

import { hash } from "node:crypto";

/** The longest name that every model provider takes. */
const NAME_LENGTH_MAX = 64;
const BETWEEN = "__";
const FINGERPRINT_LENGTH = 8;

/** Whether a server may have this name: the first `__` of a tool's name ends its server's. */
export function isServerName(name: string): boolean {
  return /^(?!.*__)(?!_)[A-Za-z0-9_-]{1,32}(?<!_)$/.test(name);
}

/**
 * `server__tool`. A tool whose name no provider would take (bad characters, too long) is named by what is good of it and a fingerprint of
 * the whole.
 */
export function hostToolName(server: string, tool: string): string {
  const whole = server + BETWEEN + tool;
  if (/^[A-Za-z0-9_-]+$/.test(tool) && whole.length <= NAME_LENGTH_MAX) return whole;
  const fingerprint = `_${hash("sha256", tool, "hex").slice(0, FINGERPRINT_LENGTH)}`;
  const good = whole.replaceAll(/[^A-Za-z0-9_-]+/g, "_");
  return good.slice(0, NAME_LENGTH_MAX - fingerprint.length) + fingerprint;
}
