/** A difference of two texts line by line, as short as it can be (Myers), with what is the same folded. Pure. */

/** One line of a difference. */
export interface DiffLine {
  readonly kind: "same" | "removed" | "added";
  readonly text: string;
}

/** A difference as it is shown: runs of equal lines away from any change are counted only. */
export type ShownLine = DiffLine | { readonly kind: "folded"; readonly count: number };

/** Changed lines after which the search for the shortest difference is given up: what is left is shown as replaced. */
const EDITS_MAX = 1_000;

/** What has to be removed from `before` and added to make `after`. */
export function diffLines(before: readonly string[], after: readonly string[]): readonly DiffLine[] {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < before.length - head && tail < after.length - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  return [
    ...before.slice(0, head).map(same),
    ...middle(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
    ...before.slice(before.length - tail).map(same),
  ];
}

/** `lines` with at most `context` equal lines before and after each change. A single line is not folded: its count takes as much room. */
export function folded(lines: readonly DiffLine[], context = 3): readonly ShownLine[] {
  const isShown = lines.map(() => false);
  for (const [index, { kind }] of lines.entries()) {
    if (kind === "same") continue;
    for (let near = Math.max(0, index - context); near <= Math.min(lines.length - 1, index + context); near++) isShown[near] = true;
  }
  const shown: ShownLine[] = [];
  for (let index = 0; index < lines.length;) {
    let end = index;
    while (end < lines.length && isShown[end] !== true) end++;
    if (end - index > 1) shown.push({ kind: "folded", count: end - index });
    else shown.push(...lines.slice(index, end));
    index = end;
    if (index < lines.length) shown.push(lines[index++]!);
  }
  return shown;
}

function same(text: string): DiffLine {
  return { kind: "same", text };
}

/** The furthest reaching paths of Myers' algorithm, one array of ends a number of edits; then the way back through them. */
function middle(before: readonly string[], after: readonly string[]): readonly DiffLine[] {
  const editsMax = Math.min(before.length + after.length, EDITS_MAX);
  const ends = new Int32Array(2 * editsMax + 3);
  const at = (diagonal: number): number => editsMax + 1 + diagonal;
  const trace: Int32Array[] = [];
  for (let edits = 0; edits <= editsMax; edits++) {
    trace.push(ends.slice());
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const isDown = diagonal === -edits || (diagonal !== edits && ends[at(diagonal - 1)]! < ends[at(diagonal + 1)]!);
      let x = isDown ? ends[at(diagonal + 1)]! : ends[at(diagonal - 1)]! + 1;
      while (x < before.length && x - diagonal < after.length && before[x] === after[x - diagonal]) x++;
      ends[at(diagonal)] = x;
      if (x >= before.length && x - diagonal >= after.length) return wayBack(before, after, trace, at);
    }
  }
  return [...before.map((text): DiffLine => ({ kind: "removed", text })), ...after.map((text): DiffLine => ({ kind: "added", text }))];
}

function wayBack(
  before: readonly string[],
  after: readonly string[],
  trace: readonly Int32Array[],
  at: (diagonal: number) => number,
): readonly DiffLine[] {
  const reversed: DiffLine[] = [];
  let x = before.length;
  let y = after.length;
  for (let edits = trace.length - 1; edits >= 0; edits--) {
    const ends = trace[edits]!;
    const diagonal = x - y;
    const isDown = diagonal === -edits || (diagonal !== edits && ends[at(diagonal - 1)]! < ends[at(diagonal + 1)]!);
    const fromDiagonal = isDown ? diagonal + 1 : diagonal - 1;
    const fromX = edits === 0 ? 0 : ends[at(fromDiagonal)]!;
    const fromY = edits === 0 ? 0 : fromX - fromDiagonal;
    while (x > fromX && y > fromY) {
      x--;
      y--;
      reversed.push(same(before[x]!));
    }
    if (edits === 0) break;
    if (isDown) reversed.push({ kind: "added", text: after[--y]! });
    else reversed.push({ kind: "removed", text: before[--x]! });
  }
  return reversed.toReversed();
}
