/** ListSessions' request and the tokens of its pages. Pure but for the digest. */

import { invalidArgument } from "../base/errors.ts";
import { sessionUidOf } from "../base/ids.ts";
import type { Digest } from "../base/ports.ts";
import type { ListSessionsRequest } from "../gen/agentsessions/v1/session_pb.ts";
import type { ListCursor } from "../journal/index.ts";
import type { ServiceLimits } from "./limits.ts";
import { openPageToken, PAGE_TOKEN_FIELD, sealPageToken, unreadableToken } from "./page-token.ts";
import { nameText } from "./text.ts";

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
    limit: pageSizeOf(request.pageSize, limits, "sessions"),
    after: request.pageToken === "" ? undefined : readPageToken(request.pageToken, project, digest),
  };
}

/** The size of a page of `things`: the default for 0, the most for more than that. Throws INVALID_ARGUMENT for a negative one. */
export function pageSizeOf(size: number, limits: Pick<ServiceLimits, "pageSizeDefault" | "pageSizeMax">, things: string): number {
  if (size < 0) throw invalidArgument("page_size", `must be 0 (for ${limits.pageSizeDefault}) or the number of ${things} wanted`);
  return size === 0 ? limits.pageSizeDefault : Math.min(size, limits.pageSizeMax);
}

/** The token of the page after `cursor`. */
export function pageToken(cursor: ListCursor, project: string, digest: Digest): string {
  return sealPageToken([cursor.createTimeMs, cursor.uid, project], digest);
}

/** The position in a token. Throws INVALID_ARGUMENT for one that was not given out for this project. */
export function readPageToken(token: string, project: string, digest: Digest): ListCursor {
  const [createTimeMs, uid, owner, ...rest] = openPageToken(token, digest);
  if (typeof createTimeMs !== "number" || typeof uid !== "string" || typeof owner !== "string" || rest.length > 0) throw unreadableToken();
  if (!Number.isSafeInteger(createTimeMs) || createTimeMs < 0 || createTimeMs > CREATE_TIME_MS_MAX) throw unreadableToken();
  if (owner !== project) throw invalidArgument(PAGE_TOKEN_FIELD, "belongs to another project; ask for its first page instead");
  return { createTimeMs, uid: sessionUidOf(uid, PAGE_TOKEN_FIELD) };
}
