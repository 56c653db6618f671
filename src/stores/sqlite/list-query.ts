/**
 * Listings as SQL. The index is named, so that a listing is a walk along one index whatever the planner believes: newest first,
 * and only sessions of one millisecond are put in order as they are met.
 */

import type { SQLInputValue } from "node:sqlite";
import type { ListRequest } from "../../journal/index.ts";
import { SESSION_COLUMNS, SESSION_JOINS } from "./session-row.ts";

/** A query and its values. */
export interface ListQuery {
  readonly sql: string;
  readonly values: readonly SQLInputValue[];
}

/** The query of a listing: its rows in order, one more than the limit where there are more. */
export function listQueryOf(request: ListRequest): ListQuery {
  const conditions: string[] = [];
  const values: SQLInputValue[] = [];
  const where = (condition: string, ...given: SQLInputValue[]): void => {
    conditions.push(condition);
    values.push(...given);
  };
  if (request.project !== undefined) where("s.project = ?", request.project);
  if (request.parent !== undefined) where("s.parent_key = (SELECT key FROM sessions WHERE uid = ?)", request.parent);
  if (request.openTurn !== undefined) where(`s.open_turn = ${request.openTurn ? 1 : 0}`);
  if (request.openApproval !== undefined) where(`s.open_approval = ${request.openApproval ? 1 : 0}`);
  if (request.deletedBeforeMs !== undefined) where("s.deleted = 1 AND s.update_time_ms <= ?", request.deletedBeforeMs);
  else if (request.includeDeleted !== true) where("s.deleted = 0");
  if (request.sinceMs !== undefined) where("s.create_time_ms >= ?", request.sinceMs);
  if (request.after !== undefined) {
    const { createTimeMs, uid } = request.after;
    where("s.create_time_ms <= ? AND (s.create_time_ms < ? OR s.uid > ?)", createTimeMs, createTimeMs, uid);
  }
  const filter = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
  const sql = `SELECT ${SESSION_COLUMNS} FROM sessions AS s INDEXED BY ${indexOf(request)} ${SESSION_JOINS}
    ${filter} ORDER BY s.create_time_ms DESC, s.uid LIMIT ?`;
  return { sql, values: [...values, request.limit + 1] };
}

/** The index that leaves the fewest rows to skip. */
function indexOf({ project, parent, openTurn, openApproval, includeDeleted, deletedBeforeMs }: ListRequest): string {
  if (deletedBeforeMs !== undefined) return "sessions_by_deletion";
  if (parent !== undefined) return "sessions_by_parent";
  if (openApproval === true) return "sessions_by_open_approval";
  if (openTurn === true) return "sessions_by_open_turn";
  if (project !== undefined && includeDeleted !== true) return "sessions_by_project";
  return "sessions_by_time";
}
