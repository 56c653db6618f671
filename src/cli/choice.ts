/**
 * Which server a command speaks to: `--server`, else HOLDFAST_SERVER, else one that answers on the default port, else an embedded
 * one. The word `embedded` in place of an address asks for that at once.
 */

import { DEFAULT_ADDRESS, type ProbeOutcome } from "./probe.ts";

/** In place of an address: the embedded server, whoever listens. */
export const EMBEDDED = "embedded";

export type ServerChoice =
  | {
      readonly kind: "remote";
      readonly address: string;
      /** What a later command line needs to reach the same server: "" when it finds it by itself. */
      readonly serverFlag: string;
    }
  | EmbeddedChoice;

/** Nobody named a server, and none was found; or the embedded one was asked for. */
export interface EmbeddedChoice {
  readonly kind: "embedded";
  /** What was found in place of a server at the default address; undefined when nobody looked. */
  readonly found: "nobody" | "somebody-else" | undefined;
}

/** Chooses. `probe` is asked only when nobody named a server. */
export async function chooseServer(
  flag: string | undefined,
  variable: string | undefined,
  probe: () => Promise<ProbeOutcome>,
): Promise<ServerChoice> {
  const named = flag ?? (variable === "" ? undefined : variable);
  if (named === EMBEDDED) return { kind: "embedded", found: undefined };
  if (named !== undefined) return { kind: "remote", address: named, serverFlag: flag === undefined ? "" : ` --server ${named}` };
  const found = await probe();
  return found === "holdfast" ? { kind: "remote", address: DEFAULT_ADDRESS, serverFlag: "" } : { kind: "embedded", found };
}
