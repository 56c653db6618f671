/** What a terminal shows of what is written to it: the sequences that the chat uses, and no others, which it refuses. */

import { graphemesOf, widthOf } from "../../src/cli/chat/terminal/width.ts";

export class VirtualScreen {
  readonly columns: number;
  readonly rows: number;
  /** All rows from the first that was ever written; the screen is the last `rows` of them. */
  readonly #lines: string[][] = [[]];
  #row = 0;
  #column = 0;
  /** What came of a sequence whose end has not come. */
  #open = "";
  /** The sequences that were not known. */
  readonly unknown: string[] = [];

  constructor(columns: number, rows: number) {
    this.columns = columns;
    this.rows = rows;
  }

  /** Everything that is or was on the screen, without blanks at the end of rows. */
  get text(): string {
    return this.#lines
      .map((cells) =>
        cells
          .map((cell) => cell ?? " ")
          .join("")
          .trimEnd(),
      )
      .join("\n")
      .trimEnd();
  }

  write(text: string): void {
    let rest = this.#open + text;
    this.#open = "";
    while (rest !== "") {
      // oxlint-disable-next-line no-control-regex -- these sequences are what a screen is driven with.
      const match = /^(?:[^\u0000-\u001f]+|\u001b\[([?0-9;]*)([A-Za-z])|[\r\n\u0007\b])/.exec(rest);
      if (match === null) {
        // oxlint-disable-next-line no-control-regex -- as above.
        if (/^\u001b(\[[?0-9;]*)?$/.test(rest)) {
          this.#open = rest;
          return;
        }
        this.unknown.push(JSON.stringify(rest.slice(0, 8)));
        rest = rest.slice(1);
        continue;
      }
      rest = rest.slice(match[0].length);
      if (match[2] !== undefined) this.#control(match[2], match[1] ?? "");
      else if (match[0] === "\r") this.#column = 0;
      else if (match[0] === "\n") this.#newLine();
      else if (match[0] === "\b") this.#column = Math.max(0, this.#column - 1);
      else if (match[0] !== "\u0007") for (const grapheme of graphemesOf(match[0])) this.#put(grapheme);
    }
  }

  get #top(): number {
    return Math.max(0, this.#lines.length - this.rows);
  }

  #put(grapheme: string): void {
    const width = widthOf(grapheme);
    if (this.#column + width > this.columns) {
      this.#column = 0;
      this.#newLine();
    }
    const line = this.#line();
    for (let fill = line.length; fill < this.#column; fill++) line[fill] = " ";
    line[this.#column] = grapheme;
    for (let more = 1; more < width; more++) line[this.#column + more] = "";
    this.#column += width;
  }

  #line(): string[] {
    return (this.#lines[this.#row] ??= []);
  }

  #newLine(): void {
    this.#row++;
    if (this.#row === this.#lines.length) this.#lines.push([]);
  }

  #control(final: string, parameters: string): void {
    const count = Math.max(1, Number(parameters) || 0);
    switch (final) {
      case "A":
        this.#row = Math.max(this.#top, this.#row - count);
        return;
      case "C":
        this.#column = Math.min(this.columns - 1, this.#column + count);
        return;
      case "J":
        if (parameters === "2") {
          // The screen is cleared by scrolling what was on it away.
          this.#lines.push(...Array.from({ length: this.rows }, () => []));
          return;
        }
        this.#line().length = Math.min(this.#line().length, this.#column);
        this.#lines.length = this.#row + 1;
        return;
      case "H":
        this.#row = this.#top;
        this.#column = 0;
        return;
      case "m":
        return;
      case "h":
      case "l":
        if (parameters === "?25" || parameters === "?2004") return;
        break;
      default:
    }
    this.unknown.push(`CSI ${parameters}${final}`);
  }
}
