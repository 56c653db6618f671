/** A family of sessions as a tree of lines. Pure. */

import { ComputeState, type LineageRow } from "../client/index.ts";
import { plainLine } from "./plain.ts";
import { stateOf } from "./session-text.ts";

/** A line of the tree, and whether it is the session that was asked for. */
export interface TreeLine {
  readonly text: string;
  readonly isAsked: boolean;
}

/** The lines of a family; `rows` come each after its parent, as Lineage answers them. */
export function treeLines(rows: readonly LineageRow[], asked: string): readonly TreeLine[] {
  const base = rows[0]?.depth ?? 0;
  /** For each depth, whether a further sibling comes below the branch that is drawn there. */
  const goesOn: boolean[] = [];
  return rows.map((row, index) => {
    const depth = row.depth - base;
    goesOn[depth] = hasNextSibling(rows, index);
    const stems = goesOn.slice(1, depth).map((isOpen) => (isOpen ? "│  " : "   "));
    const branch = depth === 0 ? "" : `${stems.join("")}${goesOn[depth] ? "├─ " : "└─ "}at ${row.forkSeq}  `;
    return { text: `${branch}${memberText(row, depth === 0)}`, isAsked: row.uid === asked };
  });
}

function hasNextSibling(rows: readonly LineageRow[], index: number): boolean {
  const depth = rows[index]!.depth;
  for (let below = index + 1; below < rows.length && rows[below]!.depth >= depth; below++) if (rows[below]!.depth === depth) return true;
  return false;
}

/** The uppermost member may have been forked itself, from one that there was no room for. */
function memberText(row: LineageRow, isFirst: boolean): string {
  const uid = plainLine(row.uid);
  if (row.reclaimed && row.createTime === undefined) return `${uid}  reclaimed`;
  const state = row.reclaimed ? "reclaimed" : stateOf(row);
  const cold = row.computeState === ComputeState.COMPUTE_COLD ? "  suspended" : "";
  const name = row.name === "" ? "" : `  ${plainLine(row.name)}`;
  const above = isFirst && row.parentUid !== "" ? `  (forked from ${plainLine(row.parentUid)} at ${row.forkSeq})` : "";
  return `${uid}  ${state}${cold}  seq ${row.lastSeq}${name}${above}`;
}
