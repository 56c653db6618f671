/** What a harness and its host tell each other in the metadata of the contract's calls. */

import { Metadata } from "@grpc/grpc-js";

/** In the answer to Describe: the version of the harness wire that the peer serves. */
export const WIRE_KEY = "holdfast-wire";
/** In the answer to Describe: `pull` where the peer pulls histories through HarnessHost. */
export const HISTORY_KEY = "holdfast-history";
/** In the answer to Describe: `stream` where a line may also be opened as frames on a connection of its own to the same address. */
export const LINE_KEY = "holdfast-line";
/** With Connect: the address of the host's HarnessHost, and what is good for one execution there. */
export const HOST_KEY = "holdfast-host";
export const CREDENTIAL_KEY = "holdfast-credential";
/** With Connect: the session's model, encoded as a component of a URI. */
export const MODEL_KEY = "holdfast-model";
/** With Connect: the seq of the last event before the execution. */
export const LAST_SEQ_KEY = "holdfast-history-last-seq";

/** The first value of a key as text; undefined where there is none. */
export function textOf(metadata: Metadata | undefined, key: string): string | undefined {
  const [value] = metadata?.get(key) ?? [];
  return typeof value === "string" ? value : undefined;
}

/** Metadata of plain pairs. Throws for what no header can hold. */
export function metadataOf(pairs: Readonly<Record<string, string | undefined>>): Metadata {
  const metadata = new Metadata();
  for (const [key, value] of Object.entries(pairs)) if (value !== undefined) metadata.set(key, value);
  return metadata;
}
