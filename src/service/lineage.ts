/**
 * Lineage: the family of a session as a tree, from any of its members.
 *
 * Invariants:
 * - The answer is bounded: what does not fit is left out and said to be. The session that was asked for and its ancestors come before
 *   everything else.
 * - A member that was reclaimed is still one, as long as its children name it.
 */

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { invalidArgument } from "../base/errors.ts";
import { sessionUidOf, type SessionUid } from "../base/ids.ts";
import {
  LineageResponseSchema,
  LineageRowSchema,
  type LineageRequest,
  type LineageResponse,
  type LineageRow,
} from "../gen/holdfast/v1/lineage_pb.ts";
import { execStateOf, type JournalStore, type ListCursor, type SessionRow } from "../journal/index.ts";
import { accessSession, authorize, type SessionAccess } from "./access.ts";
import type { CallContext } from "./contract.ts";

const ROWS_DEFAULT = 1_000;
const ROWS_MAX = 10_000;
/** Children that are read at once: rows carry labels and annotations, of which nothing is kept. */
const PAGE_ROWS = 100;

/** See `JournalService.lineage`. */
export async function lineage(host: SessionAccess, request: LineageRequest, context: CallContext): Promise<LineageResponse> {
  const session = sessionUidOf(request.session, "session");
  const rowsMax = rowsMaxOf(request.rowsMax);
  const row = await accessSession(host, "session.read", session, "session", context);
  await authorize(host.authorizer, "session.list", { project: row.seed.project }, context);
  return new Family(host.journal, rowsMax, context.signal).around(row);
}

function rowsMaxOf(rowsMax: number): number {
  if (rowsMax < 0) throw invalidArgument("rows_max", `must be 0 (for ${ROWS_DEFAULT}) or the number of rows wanted`);
  return rowsMax === 0 ? ROWS_DEFAULT : Math.min(rowsMax, ROWS_MAX);
}

/** Gathers one family. */
class Family {
  readonly #journal: JournalStore;
  readonly #signal: AbortSignal;
  readonly #rowsMax: number;
  #truncated = false;

  constructor(journal: JournalStore, rowsMax: number, signal: AbortSignal) {
    this.#journal = journal;
    this.#rowsMax = rowsMax;
    this.#signal = signal;
  }

  async around(row: SessionRow): Promise<LineageResponse> {
    const line = await this.#lineOf(row);
    const rows: LineageRow[] = [];
    const waiting = [line[0]!];
    const onLine = new Set(line.map(({ uid }) => uid));
    let left = this.#rowsMax - line.length;
    for (let member = waiting.pop(); member !== undefined; member = waiting.pop()) {
      if (!onLine.has(member.uid)) {
        if (left === 0) {
          this.#truncated = true;
          continue;
        }
        left -= 1;
      }
      rows.push(member);
      const next = line.find(({ parentUid }) => parentUid === member.uid);
      for (const child of await this.#childrenOf(member, left, next)) waiting.push(child);
    }
    return create(LineageResponseSchema, { rows, truncated: this.#truncated });
  }

  /** The members from the oldest ancestor to `row`, at their depths. */
  async #lineOf(row: SessionRow): Promise<readonly LineageRow[]> {
    const upwards = [memberOf(row)];
    for (let { parent } = row; parent !== undefined;) {
      if (upwards.length === this.#rowsMax) {
        this.#truncated = true;
        break;
      }
      const above = await this.#journal.get(parent.uid, { signal: this.#signal });
      upwards.push(above === undefined ? create(LineageRowSchema, { uid: parent.uid, reclaimed: true }) : memberOf(above));
      parent = above?.parent;
    }
    const line = upwards.toReversed();
    for (const [depth, member] of line.entries()) member.depth = depth;
    return line;
  }

  /** The children that there is room for, last one first; `next` is among them whatever the room. */
  async #childrenOf(member: LineageRow, room: number, next: LineageRow | undefined): Promise<readonly LineageRow[]> {
    const children: LineageRow[] = next === undefined ? [] : [next];
    let others = 0;
    let after: ListCursor | undefined;
    do {
      const limit = Math.min(PAGE_ROWS, room - others + 1);
      const page = await this.#journal.list({
        parent: member.uid as SessionUid,
        includeDeleted: true,
        after,
        limit,
        signal: this.#signal,
      });
      for (const row of page.rows) {
        if (row.seed.uid === next?.uid) continue;
        others += 1;
        if (others > room) break;
        const child = memberOf(row);
        child.depth = member.depth + 1;
        children.push(child);
      }
      after = page.next;
    } while (after !== undefined && others <= room);
    if (others > room) this.#truncated = true;
    return children.sort(lastFirst);
  }
}

function lastFirst(left: LineageRow, right: LineageRow): number {
  return Number(right.forkSeq - left.forkSeq) || timeOf(right) - timeOf(left) || (left.uid < right.uid ? 1 : -1);
}

function timeOf({ createTime }: LineageRow): number {
  return createTime === undefined ? 0 : Number(createTime.seconds) * 1_000 + createTime.nanos / 1_000_000;
}

function memberOf(row: SessionRow): LineageRow {
  const { seed, parent, projection, keptSeq } = row;
  return create(LineageRowSchema, {
    uid: seed.uid,
    parentUid: parent?.uid ?? "",
    forkSeq: BigInt(parent?.forkSeq ?? 0),
    name: seed.name,
    lastSeq: BigInt(projection.lastSeq),
    execState: execStateOf(projection, row.holder !== undefined),
    computeState: projection.computeState,
    deletionState: projection.deletionState,
    createTime: timestampFromMs(seed.createTimeMs),
    reclaimed: keptSeq !== undefined && keptSeq < projection.lastSeq,
  });
}
