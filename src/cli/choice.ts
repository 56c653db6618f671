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
  /** `note`: what a person may want to know about it. */
  | { readonly kind: "embedded"; readonly note: string };

/** Chooses. `probe` is asked only when nobody named a server. */
export async function chooseServer(
  flag: string | undefined,
  variable: string | undefined,
  probe: () => Promise<ProbeOutcome>,
): Promise<ServerChoice> {
  const named = flag ?? (variable === "" ? undefined : variable);
  if (named === EMBEDDED) return { kind: "embedded", note: "" };
  if (named !== undefined) return { kind: "remote", address: named, serverFlag: flag === undefined ? "" : ` --server ${named}` };
  switch (await probe()) {
    case "holdfast":
      return { kind: "remote", address: DEFAULT_ADDRESS, serverFlag: "" };
    case "somebody-else":
      return { kind: "embedded", note: `${DEFAULT_ADDRESS} is answered by something that is not Holdfast` };
    case "nobody":
      return { kind: "embedded", note: `no server answers at ${DEFAULT_ADDRESS}` };
  }
}
