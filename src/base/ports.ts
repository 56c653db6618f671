/**
 * The ports through which the core reaches the world. Core code takes them as arguments; only `node/` and the simulator
 * implement them, so a whole host can run on a seeded clock and seeded randomness.
 */

/** Time. */
export interface Clock {
  /** The wall clock in whole milliseconds since the Unix epoch. It may jump; nothing that is ordered relies on it. */
  nowMs(): number;
  /** A clock for measuring spans, in milliseconds with a fraction. It never goes back. */
  monotonicMs(): number;
  /**
   * Resolves after `ms` milliseconds, or at once with an abort: the promise rejects with the signal's reason when it fires.
   */
  sleep(ms: number, options?: { readonly signal?: AbortSignal | undefined }): Promise<void>;
  /** Calls `task` once after `ms` milliseconds unless the returned timer is cancelled first. It keeps no process alive. */
  after(ms: number, task: () => void): Timer;
}

/** A pending call of a Clock. */
export interface Timer {
  /** Makes sure that the task will not run. Cancelling twice does nothing. */
  cancel(): void;
}

/** Randomness. */
export interface Random {
  /** `count` fresh random bytes; the caller owns them. */
  bytes(count: number): Uint8Array;
}

/** Hashing. */
export interface Digest {
  /** The lowercase hex SHA-256 of `data`; a string is hashed as its UTF-8 bytes. */
  sha256Hex(data: string | Uint8Array): string;
  /** A SHA-256 that is given its data piece by piece. */
  sha256(): RunningHash;
}

/** A hash under way. */
export interface RunningHash {
  /** Goes on with the UTF-8 bytes of a text. */
  update(text: string): void;
  /** Another one that has been given the same. */
  copy(): RunningHash;
  /** The lowercase hex hash of everything that it was given. It takes nothing more after that. */
  hex(): string;
}

/** Signs with one key. The key itself never leaves whoever implements this. */
export interface Signer {
  /** The public key: SubjectPublicKeyInfo in DER, of an Ed25519 key. */
  readonly publicKey: Uint8Array;
  /** The Ed25519 signature of `data`. */
  sign(data: Uint8Array): Promise<Uint8Array>;
}

/** Checks signatures. */
export interface SignatureCheck {
  /** Whether `signature` is the Ed25519 signature of `data` by `publicKey` (SubjectPublicKeyInfo in DER). False for what is no key. */
  isSignature(publicKey: Uint8Array, data: Uint8Array, signature: Uint8Array): boolean;
}

/** The ports that most of the core needs. */
export interface Ports {
  readonly clock: Clock;
  readonly random: Random;
  readonly digest: Digest;
}

/** Where operating facts go. Fields are names, codes, counts and times: never a payload, a secret or a prompt. */
export interface Log {
  log(level: "debug" | "info" | "warn" | "error", message: string, fields?: LogFields): void;
}

/** The fields of a log line. */
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/** A log that keeps nothing. */
export const SILENT_LOG: Log = { log: () => undefined };
