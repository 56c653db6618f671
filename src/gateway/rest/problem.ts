/**
 * Problem documents (RFC 9457): every error of the REST front door, from the one table of codes.
 *
 * Invariants:
 * - `detail` is the error's message and nothing else: no cause, no details, no stack ever leaves the host.
 * - HTTP has refusals of its own (no such route, wrong method, wrong content type). They keep their HTTP status and carry
 *   the code of the table that means the same to a caller.
 */

import { HoldfastError, type ErrorCode } from "../../base/errors.ts";

/** The media type of a problem document. */
export const PROBLEM_TYPE = "application/problem+json";

/** A problem document. */
export interface Problem {
  /** `urn:holdfast:error:` and the code. */
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: ErrorCode;
  /** The request field that is wrong, where one is. */
  readonly field?: string;
}

/** A refusal that HTTP has a status of its own for. */
export class HttpRefusal extends HoldfastError {
  override readonly name = "HttpRefusal";
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    code: ErrorCode,
    message: string,
    options: { readonly field?: string; readonly headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(code, message, { field: options.field });
    this.status = status;
    this.headers = options.headers ?? {};
  }
}

/** The problem document of an error. */
export function problemOf(error: HoldfastError): Problem {
  const problem: Problem = {
    type: `urn:holdfast:error:${error.code}`,
    title: error.facts.title,
    status: error instanceof HttpRefusal ? error.status : error.facts.http,
    detail: error.message,
    code: error.code,
  };
  return error.field === undefined ? problem : { ...problem, field: error.field };
}

/** The response of an error. */
export function problemResponse(error: HoldfastError): Response {
  const problem = problemOf(error);
  const headers: Record<string, string> = { "content-type": PROBLEM_TYPE };
  if (error.facts.retry === "backoff" && !(error instanceof HttpRefusal)) headers["retry-after"] = "1";
  if (error.code === "unauthenticated") headers["www-authenticate"] = "Bearer";
  if (error instanceof HttpRefusal) Object.assign(headers, error.headers);
  return new Response(JSON.stringify(problem), { status: problem.status, headers });
}
