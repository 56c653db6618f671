/**
 * ListSessions' request and the tokens of its pages. Pure but for the digest.
 *
 * A token is opaque to callers: the position after which the next page begins and the project that it belongs to, with a checksum,
 * so that a token which was cut, mixed up or made up is refused instead of listing from somewhere.
 */

import { invalidArgument } from "../base/errors.ts";
import { sessionUidOf } from "../base/ids.ts";
import type { Digest } from "../base/ports.ts";
import type { ListSessionsRequest } from "../gen/agentsessions/v1/session_pb.ts";
import type { ListCursor } from "../journal/index.ts";
import type { ServiceLimits } from "./limits.ts";
import { nameText } from "./text.ts";

const FIELD = "page_token";
const CHECKSUM_CHARS = 16;
/** More than any token that was ever given out. */
const TOKEN_CHARS_MAX = 4_096;
/** The last millisecond that a Timestamp can name. */
const CREATE_TIME_MS_MAX = 253_402_300_799_999;

/** Which sessions a page holds. */
export interface ParsedList {
  readonly project: string;
  readonly limit: number;
  readonly after: ListCursor | undefined;
}

/** Throws INVALID_ARGUMENT that names the field. */
export function parseListSessions(request: ListSessionsRequest, limits: ServiceLimits, digest: Digest): ParsedList {
  const project = nameText(request.project, "project", limits.nameCharsMax);
  return {
    project,
    limit: pageSizeOf(request.pageSize, limits),
    after: request.pageToken === "" ? undefined : readPageToken(request.pageToken, project, digest),
  };
}

function pageSizeOf(size: number, limits: ServiceLimits): number {
  if (size < 0) throw invalidArgument("page_size", `must be 0 (for ${limits.pageSizeDefault}) or the number of sessions wanted`);
  return size === 0 ? limits.pageSizeDefault : Math.min(size, limits.pageSizeMax);
}

/** The token of the page after `cursor`. */
export function pageToken(cursor: ListCursor, project: string, digest: Digest): string {
  const body = toBase64Url(JSON.stringify([cursor.createTimeMs, cursor.uid, project]));
  return `${body}.${checksum(body, digest)}`;
}

/** The position in a token. Throws INVALID_ARGUMENT for one that was not given out for this project. */
export function readPageToken(token: string, project: string, digest: Digest): ListCursor {
  const [body = "", sum = "", ...rest] = token.length > TOKEN_CHARS_MAX ? [] : token.split(".");
  if (rest.length > 0 || body === "" || checksum(body, digest) !== sum) throw unreadable();
  const content = readBody(body);
  if (content === undefined) throw unreadable();
  if (content.project !== project) throw invalidArgument(FIELD, "belongs to another project; ask for its first page instead");
  return { createTimeMs: content.createTimeMs, uid: sessionUidOf(content.uid, FIELD) };
}

function readBody(body: string): { createTimeMs: number; uid: string; project: string } | undefined {
  try {
    const content: unknown = JSON.parse(fromBase64Url(body));
    if (!Array.isArray(content) || content.length !== 3) return undefined;
    const [createTimeMs, uid, project] = content as readonly unknown[];
    if (typeof createTimeMs !== "number" || typeof uid !== "string" || typeof project !== "string") return undefined;
    if (!Number.isSafeInteger(createTimeMs) || createTimeMs < 0 || createTimeMs > CREATE_TIME_MS_MAX) return undefined;
    return { createTimeMs, uid, project };
  } catch {
    return undefined;
  }
}

function unreadable(): Error {
  return invalidArgument(FIELD, "cannot be read; it must be the next_page_token of an earlier answer, or empty for the first page");
}

function checksum(body: string, digest: Digest): string {
  return digest.sha256Hex(`holdfast page ${body}`).slice(0, CHECKSUM_CHARS);
}

function toBase64Url(text: string): string {
  let binary = "";
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function fromBase64Url(body: string): string {
  const binary = atob(body.replaceAll("-", "+").replaceAll("_", "/"));
  return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(binary, (char) => char.charCodeAt(0)));
}
