/**
 * Between HoldfastErrors and gRPC statuses, both ways, by the one table of `base/errors.ts`.
 *
 * Invariants:
 * - A status that a Holdfast server sent carries its code as trailing metadata, so a client can tell the server's words from those
 *   that grpc-js makes up for a lost connection, which hold addresses.
 * - What is sent is code, message and field, nothing else of an error.
 */

import { Metadata, status as GrpcStatus, type ServiceError } from "@grpc/grpc-js";
import { codeOfGrpcStatus, ERROR_CODES, HoldfastError, type ErrorCode } from "../base/errors.ts";

/** The trailing metadata key with the request field that is wrong. */
export const FIELD_KEY = "holdfast-field";
/** The trailing metadata key with the error's code, as `base/errors.ts` writes it. */
export const CODE_KEY = "holdfast-code";

/** A status as grpc-js sends it. */
export interface OutgoingStatus {
  readonly code: GrpcStatus;
  readonly details: string;
  readonly metadata: Metadata;
}

/** The status of an error, for a server to send. */
export function statusOf(error: HoldfastError): OutgoingStatus {
  const metadata = new Metadata();
  metadata.set(CODE_KEY, error.code);
  if (error.field !== undefined && HEADER_SAFE.test(error.field)) metadata.set(FIELD_KEY, error.field);
  // grpc-js percent-encodes the details with encodeURI, which throws on a lone surrogate.
  return { code: error.facts.grpc, details: error.message.toWellFormed(), metadata };
}

const HEADER_SAFE = /^[\x20-\x7e]{1,256}$/;

/** What grpc-js rejects a call with, as an error of the closed set. Anything that is no gRPC status becomes `internal`. */
export function errorOfStatus(error: unknown): HoldfastError {
  if (error instanceof HoldfastError) return error;
  if (!isServiceError(error)) return new HoldfastError("internal", "the call failed in the client", { cause: error });
  const sent = firstText(error.metadata, CODE_KEY);
  if (sent !== undefined && isErrorCode(sent)) {
    return new HoldfastError(sent, error.details, { field: firstText(error.metadata, FIELD_KEY), cause: error });
  }
  const code = isCut(error) ? "unavailable" : codeOfForeignStatus(error.code);
  return new HoldfastError(code, LOCAL_WORDS[code] ?? error.details, { cause: error, details: { grpcStatus: error.code } });
}

/** Whether `error` is one that grpc-js makes of a status. */
export function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && "code" in error && typeof error.code === "number" && "details" in error && "metadata" in error;
}

function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(ERROR_CODES, text);
}

/**
 * Whether the connection was reset under a call. grpc-js calls some of that INTERNAL: a peer or a proxy that closed the connection with an error
 * code, such as for too many calls that were cancelled.
 */
function isCut({ code, details }: ServiceError): boolean {
  return code === GrpcStatus.INTERNAL && details.startsWith("Received RST_STREAM");
}

/** The codes outside the closed set, as servers of other makes may send them. */
function codeOfForeignStatus(code: number): ErrorCode {
  if (code === GrpcStatus.OUT_OF_RANGE) return "invalid_argument";
  return codeOfGrpcStatus(code) ?? "internal";
}

/** For the codes that grpc-js makes up itself: its own words name peers and sockets. */
const LOCAL_WORDS: Partial<Record<ErrorCode, string>> = {
  cancelled: "the call was cancelled",
  deadline_exceeded: "the call's deadline passed before the server answered",
  unavailable: "the server cannot be reached, or it closed the connection",
  internal: "the call failed in the transport",
};

function firstText(metadata: Metadata | undefined, key: string): string | undefined {
  const [value] = metadata?.get(key) ?? [];
  return typeof value === "string" ? value : undefined;
}
