/** Listings: newest first by (create time, uid), by keyset, so that a listing is stable while sessions are created. */

import { invalidArgument } from "../base/errors.ts";
import { isLive, rowOf, type SessionState } from "./session-state.ts";
import type { ListCursor, ListPage, ListRequest } from "./store.ts";

/** Throws INVALID_ARGUMENT unless the limit is a whole number of at least 1. */
export function requireListLimit({ limit }: ListRequest): void {
  if (!Number.isSafeInteger(limit) || limit < 1) throw invalidArgument("page_size", "must be a whole number of at least 1");
}

/** The page of `states`, which are in order and, where there are more, one more than the limit. */
export function listPageOf(states: readonly SessionState[], limit: number, nowMs: number): ListPage {
  const rows = states.slice(0, limit).map((state) => rowOf(state, nowMs));
  const last = rows.at(-1);
  const next = states.length > limit && last !== undefined ? cursorOf(last.seed) : undefined;
  return { rows, next };
}

function cursorOf({ createTimeMs, uid }: ListCursor): ListCursor {
  return { createTimeMs, uid };
}

/** Whether `request` asks for this session. */
export function isListed(state: SessionState, request: ListRequest): boolean {
  const { seed, parent, projection } = state;
  const { openTurn } = projection;
  if (request.project !== undefined && seed.project !== request.project) return false;
  if (request.parent !== undefined && parent?.uid !== request.parent) return false;
  if (request.openTurn !== undefined && (openTurn !== undefined) !== request.openTurn) return false;
  if (request.openApproval !== undefined && hasOpenApproval(state) !== request.openApproval) return false;
  if (request.sinceMs !== undefined && seed.createTimeMs < request.sinceMs) return false;
  if (!isLifeAsked(state, request)) return false;
  return request.after === undefined || compareListed(request.after, seed) < 0;
}

function isLifeAsked(state: SessionState, { includeDeleted, deletedBeforeMs }: ListRequest): boolean {
  if (deletedBeforeMs !== undefined) return !isLive(state) && state.updateTimeMs <= deletedBeforeMs;
  return includeDeleted === true || isLive(state);
}

/** Whether an approval call of the session has no receipt. */
export function hasOpenApproval({ projection }: SessionState): boolean {
  return projection.openTurn !== undefined && projection.openTurn.approvals.length > 0;
}

/** The order of listings: newest first, then uids by their code points, as databases order them. */
export function compareListed(left: ListCursor, right: ListCursor): number {
  return right.createTimeMs - left.createTimeMs || compareCodePoints(left.uid, right.uid);
}

function compareCodePoints(left: string, right: string): number {
  if (left === right) return 0;
  const rights = right[Symbol.iterator]();
  for (const char of left) {
    const other = rights.next();
    if (other.done === true) return 1;
    const order = char.codePointAt(0)! - other.value.codePointAt(0)!;
    if (order !== 0) return order;
  }
  return -1;
}
