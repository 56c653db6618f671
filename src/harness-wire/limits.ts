/** What an end of a line holds at most. */

/** Bounds of the host's end. */
export interface WireLimits {
  /** The most bytes of one frame of the harness. */
  readonly frameBytesMax: number;
  /** The most bytes of a history that is pushed with the start; a harness whose history is longer pulls it. */
  readonly pushedHistoryBytesMax: number;
  /** How many effects of one execution may be under way; with so many the line is not read until one is done. */
  readonly effectsInFlightMax: number;
  /** How many reads of the history one execution may have open. */
  readonly readsMax: number;
  /** How many pages a harness may ask for before it has taken any. */
  readonly pagesAheadMax: number;
  /** The most events, and about the most bytes, of one page of a history. */
  readonly pageEventsMax: number;
  readonly pageBytesMax: number;
  /** How many tokens one execution may ask for at once. */
  readonly tokenRequestsMax: number;
  /** How long the harness may take to answer the host's hello. */
  readonly helloTimeoutMs: number;
  /** How long it may take to describe itself. */
  readonly describeTimeoutMs: number;
  /** How long a cancelled execution is waited for. */
  readonly cancelGraceMs: number;
  /** How long an execution is waited for after its END or PARKED, which must be followed by the end of the exchange. */
  readonly endGraceMs: number;
  /** How long a harness may take to unwind once it was told to park. */
  readonly parkGraceMs: number;
}

const MIB = 1024 * 1024;

/** The bounds where nothing else is said. */
export const WIRE_LIMITS: WireLimits = {
  frameBytesMax: 32 * MIB,
  pushedHistoryBytesMax: 48 * MIB,
  effectsInFlightMax: 256,
  readsMax: 16,
  pagesAheadMax: 16,
  pageEventsMax: 512,
  pageBytesMax: 256 * 1024,
  tokenRequestsMax: 16,
  helloTimeoutMs: 10_000,
  describeTimeoutMs: 10_000,
  cancelGraceMs: 5_000,
  endGraceMs: 5_000,
  parkGraceMs: 30_000,
};

/** The most bytes of one frame of the host that a harness's end takes, where nothing else is said. */
export const HOST_FRAME_BYTES_MAX = 64 * MIB;
