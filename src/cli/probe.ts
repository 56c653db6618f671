/** Whether a Holdfast server answers at the default address: not just any process that happens to listen there. */

/** Where a client looks for a server when it is told of none. */
export const DEFAULT_ADDRESS = "http://127.0.0.1:8080";

/** How long the question may take. A server on this machine answers within a few milliseconds. */
const PROBE_TIMEOUT_MS = 1_000;

export type ProbeOutcome = "holdfast" | "somebody-else" | "nobody";

/** Asks the health route, which names the server. */
export async function probe(address: string = DEFAULT_ADDRESS): Promise<ProbeOutcome> {
  try {
    const response = await fetch(`${address}/healthz`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS), redirect: "error" });
    const body: unknown = await response.json();
    return isOurs(body) ? "holdfast" : "somebody-else";
  } catch (error) {
    return isRefused(error) ? "nobody" : "somebody-else";
  }
}

function isOurs(body: unknown): boolean {
  return typeof body === "object" && body !== null && "server" in body && body.server === "holdfast";
}

function isRefused(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && "code" in cause && cause.code === "ECONNREFUSED";
}
