/** The first place where a harness left its record, as a person reads it: what is recorded against what was asked, line by line. Pure. */

import type { Digest } from "../base/ports.ts";
import type { ReplayDivergence } from "../client/index.ts";
import type { ModelCall } from "../gen/agentsessions/v1/common_pb.ts";
import { diffLines, folded, type DiffLine, type ShownLine } from "./line-diff.ts";
import { plain, plainLine } from "./plain.ts";
import { requestLines } from "./request-text.ts";

/** A line of the report and what kind it is, for colours. */
export interface DivergenceLine {
  readonly kind: "head" | "note" | DiffLine["kind"];
  readonly text: string;
}

/** Characters of one line that are shown. */
const LINE_CHARS_MAX = 2_000;
/** Characters before the first difference of a long line that are shown. */
const LEAD_CHARS = 200;

/** The report of a divergence. */
export function divergenceLines(divergence: ReplayDivergence, digest: Digest): readonly DivergenceLine[] {
  const { seq, reason } = divergence;
  return [{ kind: "head", text: `seq ${seq}: ${plainLine(reason)}` }, ...comparison(divergence, digest)];
}

function comparison(divergence: ReplayDivergence, digest: Digest): readonly DivergenceLine[] {
  const { recordedKind, askedKind, recordedCall, askedCall, recordedText, askedText } = divergence;
  if (recordedKind === "model" && askedKind === "model" && recordedCall !== undefined && askedCall !== undefined) {
    return modelComparison(divergence, recordedCall, askedCall, digest);
  }
  if (recordedKind === "output" && askedKind === "output") {
    return [note("- recorded, + asked for"), ...shown(diffLines(plain(recordedText).split("\n"), plain(askedText).split("\n")))];
  }
  return [
    ...side("removed", "recorded", recordedKind, recordedCall, recordedText, digest),
    ...side("added", "asked for", askedKind, askedCall, askedText, digest),
  ];
}

function modelComparison(
  { recordedCallWhole }: ReplayDivergence,
  recorded: ModelCall,
  asked: ModelCall,
  digest: Digest,
): readonly DivergenceLine[] {
  const notes: DivergenceLine[] = recordedCallWhole ? [] : [note(notWhole(recorded))];
  const lines = diffLines(requestLines(recorded, digest), requestLines(asked, digest));
  const isSame = lines.every(({ kind }) => kind === "same");
  if (isSame) {
    notes.push(note(`they look the same here; their hashes are ${recorded.inputHash} (recorded) and ${asked.inputHash} (asked for)`));
  }
  return [...notes, note("- recorded, + asked for"), ...shown(lines)];
}

/** Why the left side is not to be relied on. */
function notWhole(recorded: ModelCall): string {
  if (recorded.messages.length === 0) {
    return `the recorded request could not be rebuilt: of it the journal has model, params and the hash ${recorded.inputHash} only`;
  }
  return "the recorded request could not be rebuilt whole: its hash is not the recorded one, so what is marked - may not be what was sent";
}

/** One side alone, where the two are not of one kind. */
function side(
  kind: "removed" | "added",
  name: string,
  what: string,
  call: ModelCall | undefined,
  text: string,
  digest: Digest,
): readonly DivergenceLine[] {
  const head = note(`${name}: ${WORDS[what] ?? (what === "" ? "nothing more" : plainLine(what))}`);
  const lines = what === "model" && call !== undefined ? requestLines(call, digest) : what === "output" ? plain(text).split("\n") : [];
  return [head, ...shown(lines.map((line) => ({ kind, text: line })))];
}

const WORDS: Readonly<Record<string, string>> = {
  model: "a model call",
  output: "an output",
  tool: "a tool call",
  report: "a tool result",
  usage: "usage",
};

const MARKS = { same: " ", removed: "-", added: "+" } as const;

function shown(lines: readonly DiffLine[]): readonly DivergenceLine[] {
  const found: readonly ShownLine[] = folded(lines);
  return found.map((line, index) => {
    if (line.kind === "folded") return note(`… ${line.count} lines are the same`);
    return { kind: line.kind, text: `${MARKS[line.kind]} ${excerpt(line.text, leadOf(found, index))}` };
  });
}

/** How many characters a changed line begins like its counterpart: the line that was removed or added next to it. */
function leadOf(lines: readonly ShownLine[], index: number): number {
  const line = lines[index];
  if (line === undefined || line.kind === "folded" || line.kind === "same" || line.text.length <= LINE_CHARS_MAX) return 0;
  const other = lines
    .slice(Math.max(0, index - 8), index + 9)
    .find((near) => near.kind !== "folded" && near.kind !== "same" && near.kind !== line.kind);
  if (other === undefined || other.kind === "folded") return 0;
  let length = 0;
  while (length < line.text.length && line.text[length] === other.text[length]) length++;
  return length;
}

function excerpt(text: string, lead: number): string {
  if (text.length <= LINE_CHARS_MAX) return text;
  const start = lead > LINE_CHARS_MAX / 2 ? lead - LEAD_CHARS : 0;
  const end = start + LINE_CHARS_MAX;
  const before = start > 0 ? `(${start} characters) …` : "";
  const after = end < text.length ? `… (${text.length - end} more characters)` : "";
  return `${before}${text.slice(start, end).toWellFormed()}${after}`;
}

function note(text: string): DivergenceLine {
  return { kind: "note", text };
}
