/**
 * The interactive door's limits and times. Each is documented in `docs/limits.md` and tested at its edge; over one of them a request is
 * answered with `invalid_argument` and has no effect, unless the table says otherwise.
 */

export interface AgentLimits {
  /** Tools of one session, and of one turn. */
  readonly toolsMax: number;
  /** Bytes of one tool's schema, as JSON. */
  readonly schemaBytesMax: number;
  /** Bytes of all tools of one session, as they are offered: names, descriptions and schemas. */
  readonly toolsBytesMax: number;
  /** Characters of a tool's description. */
  readonly descriptionCharsMax: number;
  /** How long a call may take whose tool names no time. */
  readonly toolTimeoutDefaultMs: number;
  /** The longest time that a tool may name; a longer one is this one. */
  readonly toolTimeoutMaxMs: number;
  /** Bytes of a tool's result; what is beyond is cut, and the result says so. */
  readonly resultBytesMax: number;
  /** Messages of a history. */
  readonly historyMessagesMax: number;
  /** Bytes of all blocks of project context. */
  readonly projectContextBytesMax: number;
  /** Bytes of a user's message, its context included. */
  readonly messageBytesMax: number;
  /** Blocks of context of one message. */
  readonly contextBlocksMax: number;
  /** Bytes of a system context. */
  readonly systemContextBytesMax: number;
  /** Characters of an id or a name that a client gives. */
  readonly idCharsMax: number;
  /** Characters of a reason. */
  readonly reasonCharsMax: number;
  /** Entries of feedback that are kept of one session. */
  readonly feedbackMax: number;
  /** Responses that may wait for a reader before nothing further is read for it, nor of it. */
  readonly responsesWaitingMax: number;
  /** Characters of text in them; what one record says is taken whole. */
  readonly charsWaitingMax: number;
  /** Characters of one TextDelta or ThinkingDelta; what is longer is several. */
  readonly deltaCharsMax: number;
  /** Streams that this host has at once; a further one is refused with `internal`, to be retried. */
  readonly streamsMax: number;
  /** The time between two keepalives. */
  readonly keepaliveIntervalMs: number;
  /** Updates of activity, and of presence, in each span of `updatesSpanMs`. */
  readonly updatesMax: number;
  readonly updatesSpanMs: number;
}

export const AGENT_LIMITS: AgentLimits = {
  toolsMax: 256,
  schemaBytesMax: 64 * 1024,
  toolsBytesMax: 256 * 1024,
  descriptionCharsMax: 8_192,
  toolTimeoutDefaultMs: 120_000,
  toolTimeoutMaxMs: 3_600_000,
  resultBytesMax: 512 * 1024,
  historyMessagesMax: 4_096,
  projectContextBytesMax: 128 * 1024,
  messageBytesMax: 3 * 1024 * 1024,
  contextBlocksMax: 256,
  systemContextBytesMax: 64 * 1024,
  idCharsMax: 128,
  reasonCharsMax: 4_096,
  feedbackMax: 10_000,
  responsesWaitingMax: 64,
  charsWaitingMax: 64 * 1024,
  // Any client takes a message of this size, whatever it has been told.
  deltaCharsMax: 16 * 1024,
  streamsMax: 16_384,
  keepaliveIntervalMs: 15_000,
  updatesMax: 4,
  // A little over a second: what arrives unevenly is no more often than four times a second either.
  updatesSpanMs: 1_200,
};
