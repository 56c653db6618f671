/** The controller's limits and times. Each is documented in `docs/limits.md` and tested at its edge. */

export interface ControllerLimits {
  /** Messages of one Exec. */
  readonly inputsMax: number;
  /** Bytes of `config`. */
  readonly configBytesMax: number;
  /** Records of one turn; one more ends it FAILED. */
  readonly turnRecordsMax: number;
  /** Turns that this host runs at once; further ones are RESOURCE_EXHAUSTED. */
  readonly turnsRunningMax: number;
  /** Appends of a turn that may be on their way before its harness has to wait. */
  readonly appendsInFlightMax: number;
  /** Bytes of a TOOL_RESULT that a tool of the host may give; a larger one is recorded as the tool's failure. */
  readonly toolResultBytesMax: number;
  /** How long a lease lasts without a heartbeat. */
  readonly leaseMs: number;
  /** Items that a watcher may be behind before it is served from the store again. */
  readonly watchQueueItemsMax: number;
  /** Bytes that a watcher may be behind before it is served from the store again. */
  readonly watchQueueBytesMax: number;
  /** Bytes of decoded events that are kept for histories. */
  readonly historyCacheBytesMax: number;
  /** Messages of last requests that are remembered, so that the next request of their session is sketched as what is new in it. */
  readonly sketchKeysMax: number;
  /** Characters and bytes of such messages that are remembered as hashed, so that the next request is hashed as what is new in it. */
  readonly requestPrefixBytesMax: number;
}

export const CONTROLLER_LIMITS: ControllerLimits = {
  inputsMax: 256,
  configBytesMax: 256 * 1024,
  turnRecordsMax: 100_000,
  turnsRunningMax: 4_096,
  appendsInFlightMax: 64,
  toolResultBytesMax: 1024 * 1024,
  leaseMs: 15_000,
  watchQueueItemsMax: 1_024,
  watchQueueBytesMax: 1024 * 1024,
  historyCacheBytesMax: 64 * 1024 * 1024,
  sketchKeysMax: 500_000,
  requestPrefixBytesMax: 64 * 1024 * 1024,
};
