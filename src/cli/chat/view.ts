/** What is printed and drawn, as lines of a terminal. Pure. */

import { clipped, plain } from "../plain.ts";
import type { Unfinished } from "./answer-text.ts";
import type { ChatStatus } from "./chat-core.ts";
import { codeLines, markdownLines, type Layout } from "./markdown/blocks.ts";
import { painted, span, type Line, type Paint } from "./markdown/spans.ts";
import type { MarkdownBlock } from "./markdown/stream.ts";
import { wrapped } from "./markdown/wrap.ts";
import type { Printed } from "./printed.ts";
import type { Question } from "./questions.ts";
import { draftView, type Draft } from "./terminal/line-editor.ts";
import type { LiveArea } from "./terminal/live-screen.ts";
import type { ToolOutcome } from "./tools/index.ts";

export const PROMPT = "› ";

/** Lines of a result that are shown at once, and lines of a message that a person reads again. */
const OUTCOME_LINES = 6;
/** Lines of a diff that are shown with the question about it. */
const DIFF_LINES = 12;

/** How this terminal shows things. */
export interface Looks {
  readonly layout: Layout;
  readonly paint: Paint;
}

/** Turns what is printed into lines, with the blank lines between. */
export class Printer {
  /** What the line before belongs to; undefined at the top. */
  #before: Printed["kind"] | undefined;

  lines(printed: Printed, looks: Looks): readonly string[] {
    const lines = linesOf(printed, looks.layout).map((line) => painted(line, looks.paint));
    const isSetOff = this.#before !== undefined && setsOff(printed, this.#before);
    this.#before = printed.kind;
    return isSetOff ? ["", ...lines] : lines;
  }

  /** What is not finished, as it would be printed. */
  unfinished(unfinished: Unfinished, looks: Looks): readonly string[] {
    const lines = linesOf(unfinished, looks.layout).map((line) => painted(line, looks.paint));
    return this.#before !== undefined && setsOff(unfinished, this.#before) ? ["", ...lines] : lines;
  }
}

function setsOff(printed: Printed, before: Printed["kind"]): boolean {
  switch (printed.kind) {
    case "answer":
      return before !== "answer" || !printed.block.isJoined;
    case "thought":
      return before !== "thought" || !printed.isJoined;
    case "said":
    case "typed":
    case "call":
      return true;
    case "problem":
      return before === "answer" || before === "thought" || before === "said";
    case "note":
      return before === "answer" || before === "thought";
    case "lines":
    case "details":
    case "outcome":
    case "raw":
      return false;
  }
}

function linesOf(printed: Printed, layout: Layout): readonly Line[] {
  const { columns } = layout;
  switch (printed.kind) {
    case "said":
      return wrapped([span(plain(printed.text), "bold")], columns, { first: [span(PROMPT, "cyan")], rest: [span("  ")] });
    case "typed":
      return [[span(PROMPT, "cyan"), span(plain(printed.text), "dim")]];
    case "answer":
      return blockLines(printed.block, layout);
    case "thought":
      return wrapped([span(plain(printed.text), "dim", "italic")], columns);
    case "raw":
      return [[span(printed.text)]];
    case "call":
      return wrapped([span(clippedLines(printed.summary, 6), "bold")], columns, { first: [span("▸ ", "yellow")], rest: [span("  ")] });
    case "details":
      return printed.isWhole ? plain(printed.text).split("\n").map(detailLine) : diffStart(plain(printed.text).split("\n"), columns);
    case "outcome":
      return outcomeLines(printed.outcome, printed.isWhole, columns);
    case "note":
      return wrapped([span(plain(printed.text), "dim")], columns, { first: [span("  ")], rest: [span("  ")] });
    case "problem":
      return wrapped([span(plain(printed.text), "red")], columns, { first: [span("✗ ", "red")], rest: [span("  ")] });
    case "lines":
      return printed.lines.flatMap((line) => rowLines(plain(line), columns));
  }
}

/** A row of columns; what is too long for its last column goes on below it. */
function rowLines(row: string, columns: number): readonly Line[] {
  const [before = ""] = /^(?:.*\S)? {2,}/.exec(row) ?? [];
  const margin = before.length > columns / 2 ? 0 : before.length;
  return wrapped([span(row.slice(margin))], columns, {
    first: [span(`  ${row.slice(0, margin)}`)],
    rest: [span(" ".repeat(margin + 2))],
  });
}

function blockLines({ kind, text }: MarkdownBlock, layout: Layout): readonly Line[] {
  return kind === "code" ? codeLines(text, layout) : markdownLines(text, layout);
}

function outcomeLines({ success, result }: ToolOutcome, isWhole: boolean, columns: number): readonly Line[] {
  const all = plain(result.trimEnd()).split("\n");
  if (!success && all.length === 1 && !isWhole) return sentenceLines(all[0] ?? "", columns);
  const shown = isWhole || all.length <= OUTCOME_LINES + 1 ? all : all.slice(0, OUTCOME_LINES);
  const room = columns - 2;
  const lines = (isWhole ? shown : shown.map((line) => clipped(line, room))).map((line): Line => [
    span("  "),
    span(line, success ? "dim" : "red"),
  ]);
  const left = all.length - shown.length;
  return left === 0 ? lines : [...lines, [span(`  … ${left} more lines (/show)`, "dim")]];
}

/** What went wrong in one sentence is read whole, unless it is none. */
function sentenceLines(text: string, columns: number): readonly Line[] {
  const room = columns - 2;
  return wrapped([span(clipped(text, room * OUTCOME_LINES), "red")], columns, { first: [span("  ")], rest: [span("  ")] });
}

/** The first lines of a diff, and whether that is all of it: what is not shown is said, since a person allows it with the rest. */
function diffStart(all: readonly string[], columns: number): readonly Line[] {
  const shown = all.length <= DIFF_LINES + 1 ? all : all.slice(0, DIFF_LINES);
  const room = columns - 2;
  const lines = shown.map((line) => clipped(line, room));
  const left = all.length - shown.length;
  const isCut = shown.some((line) => line.length > room);
  if (left === 0 && !isCut) return lines.map(detailLine);
  const rest = left === 0 ? "lines are cut" : `${left} more lines`;
  return [...lines.map(detailLine), [span(`  … ${rest}, d to see all`, "dim")]];
}

function detailLine(line: string): Line {
  if (line.startsWith("+ ")) return [span("  "), span(line, "green")];
  return [span("  "), line.startsWith("- ") ? span(line, "red") : span(line)];
}

function clippedLines(text: string, linesMax: number): string {
  const lines = plain(text).split("\n");
  return lines.length <= linesMax
    ? lines.join("\n")
    : [...lines.slice(0, linesMax - 1), `… ${lines.length - linesMax + 1} more lines`].join("\n");
}

/** What is drawn below what was printed. */
export interface LiveState {
  readonly unfinished: readonly string[];
  readonly question: Question | undefined;
  readonly isQuestionArmed: boolean;
  /** Whether keys go to the question and not to the line. */
  readonly isAnswering: boolean;
  readonly status: ChatStatus;
  readonly draft: Draft;
}

/** The live area: what is not finished, the status, and the question or the line that is written. */
export function liveArea(state: LiveState, { layout: { columns }, paint }: Looks): LiveArea {
  const above = [...state.unfinished, ...statusRows(state, columns, paint)];
  if (state.question !== undefined && state.isAnswering) {
    const asked = state.isQuestionArmed ? `  allow it? ${keysOf(state.question)} ` : "  allow it? ";
    return { rows: [...above, paint("yellow", asked)], cursor: { row: above.length, column: Math.min(columns - 1, asked.length) } };
  }
  const { rows, row, column } = draftView(state.draft, columns, PROMPT);
  const hasGap = above.length > 0 || rows.length > 0;
  return {
    rows: [...above, ...(hasGap ? [""] : []), ...rows],
    cursor: { row: above.length + (hasGap ? 1 : 0) + row, column },
  };
}

function keysOf({ canAlways }: Question): string {
  return `[y]es  [n]o  ${canAlways ? "[a]lways in this session  " : ""}[d]etails`;
}

function statusRows({ status, question, isAnswering }: LiveState, columns: number, paint: Paint): readonly string[] {
  const rows: string[] = [];
  if (status.connection === "lost") rows.push("the server is gone; reconnecting");
  if (status.isTurn && question === undefined)
    rows.push(`${turnText(status)}${status.isCancelling ? "; Ctrl-C leaves" : "; Ctrl-C cancels"}`);
  if (question !== undefined && !isAnswering) rows.push(`${question.summary}: Tab to answer`);
  for (const held of status.held) rows.push(`held until the turn is over: ${held}`);
  return rows.map((row) => paint("dim", `  ${clipped(row, columns - 3)}`));
}

function turnText({ isCancelling, running, activity }: ChatStatus): string {
  if (isCancelling) return "cancelling";
  if (running.length > 0) return `running: ${running.join(", ")}`;
  return activityText(activity);
}

/** What the agent is doing, in words. */
function activityText({ state, detail }: ChatStatus["activity"]): string {
  switch (state) {
    case "thinking":
      return "thinking";
    case "calling_tool":
      return detail === "" ? "a tool runs" : `${detail} runs`;
    case "waiting_approval":
      return "waiting for an approval";
    default:
      return "working";
  }
}
