/**
 * The one error class of Holdfast and the one table that says what each of its codes means to a transport.
 *
 * Invariants:
 * - Expected outcomes (a lost compare-and-swap, a name that is taken) are return values of the layer that knows them; an
 *   error is for the caller who cannot go on.
 * - `message` is written for the caller: it names the field or state that is wrong and what would be right. It never
 *   holds a payload, a path, an address or a provider's text. What a developer needs goes into `details` and `cause`,
 *   which no transport sends.
 */

/** The closed set of fault codes. */
export type ErrorCode =
  | "invalid_argument"
  | "not_found"
  | "already_exists"
  | "failed_precondition"
  | "aborted"
  | "unauthenticated"
  | "permission_denied"
  | "resource_exhausted"
  | "deadline_exceeded"
  | "cancelled"
  | "unavailable"
  | "unimplemented"
  | "data_loss"
  | "internal";

/**
 * What a caller may do after an error: `never` (the same call fails again), `after-read` (read the state, then decide),
 * `backoff` (the same call may succeed later).
 */
export type RetryAdvice = "never" | "after-read" | "backoff";

/** What one code is on each transport. */
export interface ErrorCodeFacts {
  /** The gRPC status number. */
  readonly grpc: number;
  /** The HTTP status. */
  readonly http: number;
  /** What a caller may do. */
  readonly retry: RetryAdvice;
  /** The short title of a problem document. */
  readonly title: string;
}

/** The one table from codes to gRPC, HTTP and retry. */
export const ERROR_CODES: Readonly<Record<ErrorCode, ErrorCodeFacts>> = {
  cancelled: { grpc: 1, http: 499, retry: "never", title: "Cancelled by the caller" },
  invalid_argument: { grpc: 3, http: 400, retry: "never", title: "Invalid argument" },
  deadline_exceeded: { grpc: 4, http: 504, retry: "never", title: "Deadline exceeded" },
  not_found: { grpc: 5, http: 404, retry: "never", title: "Not found" },
  already_exists: { grpc: 6, http: 409, retry: "never", title: "Already exists" },
  permission_denied: { grpc: 7, http: 403, retry: "never", title: "Permission denied" },
  resource_exhausted: { grpc: 8, http: 429, retry: "backoff", title: "Over a limit" },
  failed_precondition: { grpc: 9, http: 412, retry: "never", title: "The state forbids it" },
  aborted: { grpc: 10, http: 409, retry: "after-read", title: "Lost a race" },
  unimplemented: { grpc: 12, http: 501, retry: "never", title: "Not served here" },
  internal: { grpc: 13, http: 500, retry: "never", title: "Internal error" },
  unavailable: { grpc: 14, http: 503, retry: "backoff", title: "Unavailable" },
  data_loss: { grpc: 15, http: 500, retry: "never", title: "The journal does not verify" },
  unauthenticated: { grpc: 16, http: 401, retry: "never", title: "Not authenticated" },
};

/** The code whose gRPC status number is `status`, or undefined for one outside the closed set. */
export function codeOfGrpcStatus(status: number): ErrorCode | undefined {
  for (const code of Object.keys(ERROR_CODES) as ErrorCode[]) {
    if (ERROR_CODES[code].grpc === status) return code;
  }
  return undefined;
}

/** What an error carries beside its code and message. */
export interface ErrorOptions {
  /** The field of the request that is wrong, in the contract's snake_case (`page_size`, `session.metadata.name`). */
  readonly field?: string | undefined;
  /** Facts for a developer. Never sent, never with payloads. */
  readonly details?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** What was caught underneath. Never sent. */
  readonly cause?: unknown;
}

/** An operating fault with a code of the closed set. */
export class HoldfastError extends Error {
  override readonly name: string = "HoldfastError";
  readonly code: ErrorCode;
  readonly field: string | undefined;
  readonly details: Readonly<Record<string, string | number | boolean>> | undefined;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.field = options.field;
    this.details = options.details;
  }

  /** What each transport makes of this error. */
  get facts(): ErrorCodeFacts {
    return ERROR_CODES[this.code];
  }
}

/** An INVALID_ARGUMENT that names the request field and says what would be right. */
export function invalidArgument(field: string, message: string, options: ErrorOptions = {}): HoldfastError {
  return new HoldfastError("invalid_argument", `${field}: ${message}`, { ...options, field });
}

/** `error` as a HoldfastError; anything unknown becomes `internal` with a message that tells nothing of it. */
export function toHoldfastError(error: unknown): HoldfastError {
  if (error instanceof HoldfastError && Object.hasOwn(ERROR_CODES, error.code)) return error;
  return new HoldfastError("internal", "an internal error; the server's log has the details", { cause: error });
}
