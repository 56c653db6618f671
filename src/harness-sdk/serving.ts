/** How a harness is served, the same wherever its program runs. */

/** What is said about serving. Inside a sandbox there is one door, and nothing of this is asked but `history`. */
export interface ServeOptions {
  /**
   * `stdio` (frames on the standard streams; what the program prints goes to standard error), `unix:///path` or `host:port`.
   * Default: what the environment variable HOLDFAST_HARNESS_LISTEN says, otherwise 127.0.0.1:7070.
   */
  readonly listen?: string | undefined;
  /** `pulled` (the default) reads a session's history as the harness does; `pushed` gets the whole of it with every turn. */
  readonly history?: "pulled" | "pushed" | undefined;
  /** How long turns may go on once the program was told to end, in milliseconds. Default 5,000. */
  readonly graceMs?: number | undefined;
}

/** A harness that is served. */
export interface ServedHarness extends AsyncDisposable {
  /** Where it is served: `stdio`, `door`, or the address with the port that it got. */
  readonly address: string;
  /** Resolves once nothing is served any more: the host closed the line, or the program was told to end. */
  readonly closed: Promise<void>;
}
