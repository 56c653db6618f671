/**
 * The end of a terminal's output that is drawn again and again: what is not finished, and the line that a person writes.
 *
 * Invariants:
 * - What was printed is never touched again: it scrolls, and can be copied.
 * - One update is one write, so that nothing flickers and nothing of another update comes between.
 */

import { widthOf } from "./width.ts";

/** What is drawn below all that was printed. Rows have at most `columns` columns, styles not counted. */
export interface LiveArea {
  readonly rows: readonly string[];
  /** Where the cursor stands in it. */
  readonly cursor: { readonly row: number; readonly column: number };
}

/** The size of a terminal. */
export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

const HIDE_CURSOR = "\u001b[?25l";
const SHOW_CURSOR = "\u001b[?25h";
const ERASE_BELOW = "\u001b[J";

export class LiveScreen {
  readonly #write: (text: string) => void;
  readonly #size: () => TerminalSize;
  #drawn: LiveArea = { rows: [], cursor: { row: 0, column: 0 } };

  constructor(write: (text: string) => void, size: () => TerminalSize) {
    this.#write = write;
    this.#size = size;
  }

  /** Prints lines above the area, and draws it anew. */
  update(printed: readonly string[], area: LiveArea): void {
    const lines = printed.map((line) => `${line}\r\n`).join("");
    const shown = fitted(area, this.#size().rows - 1);
    const last = shown.rows.length - 1;
    const { row, column } = shown.cursor;
    const place = `${up(last - row)}\r${column === 0 ? "" : `\u001b[${column}C`}`;
    this.#write(`${HIDE_CURSOR}${this.#toTop()}${ERASE_BELOW}${lines}${shown.rows.join("\r\n")}${place}${SHOW_CURSOR}`);
    this.#drawn = shown;
  }

  /** Clears the screen and draws the area at its top. */
  redraw(): void {
    const area = this.#drawn;
    this.#write("\u001b[2J\u001b[H");
    this.#drawn = { rows: [], cursor: { row: 0, column: 0 } };
    this.update([], area);
  }

  /** Prints lines and takes the area away. */
  close(printed: readonly string[] = []): void {
    this.#write(`${this.#toTop()}${ERASE_BELOW}${printed.map((line) => `${line}\r\n`).join("")}${SHOW_CURSOR}`);
    this.#drawn = { rows: [], cursor: { row: 0, column: 0 } };
  }

  /** To the first column of the area's first row. A terminal that became narrower has broken rows in two. */
  #toTop(): string {
    const { columns } = this.#size();
    const { rows, cursor } = this.#drawn;
    const above = rows.slice(0, cursor.row).reduce((sum, row) => sum + rowsOf(row, columns), 0);
    return `${up(above + Math.floor(cursor.column / Math.max(1, columns)))}\r`;
  }
}

function rowsOf(row: string, columns: number): number {
  return Math.max(1, Math.ceil(widthOf(withoutStyles(row)) / Math.max(1, columns)));
}

/** `text` without the sequences that style it. */
export function withoutStyles(text: string): string {
  // oxlint-disable-next-line no-control-regex -- these sequences are exactly what is taken out.
  return text.replaceAll(/\u001b\[[0-9;]*m/g, "");
}

function up(rows: number): string {
  return rows === 0 ? "" : `\u001b[${rows}A`;
}

/** The area's last rows, as many as there is room for. */
function fitted(area: LiveArea, rowsMax: number): LiveArea {
  const surplus = Math.max(0, area.rows.length - Math.max(1, rowsMax));
  if (surplus === 0) return area;
  return { rows: area.rows.slice(surplus), cursor: { row: Math.max(0, area.cursor.row - surplus), column: area.cursor.column } };
}
