/** What spawning is limited by. Each is documented in `docs/limits.md` and tested at its edge. */

export interface SpawnLimits {
  /** How many spawns may lie between a session and the root of its tree. */
  readonly depthMax: number;
  /** Sessions that one session may spawn in its life. */
  readonly childrenMax: number;
  /** UTF-8 bytes of a prompt. */
  readonly promptBytesMax: number;
  /** UTF-8 bytes of a worker's answer that its spawner is given; a longer one is cut. */
  readonly answerBytesMax: number;
  /** How long a worker may take in all, whatever it waits for; undefined for as long as it likes. */
  readonly timeoutMs: number | undefined;
}

export const SPAWN_LIMITS: SpawnLimits = {
  depthMax: 3,
  childrenMax: 16,
  promptBytesMax: 64 * 1024,
  answerBytesMax: 64 * 1024,
  timeoutMs: undefined,
};
