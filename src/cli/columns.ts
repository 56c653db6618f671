/** Rows under a heading, for a person. Pure. */

/** Rows in columns as wide as they need to be. The last column is not padded. */
export function columnLines(
  columns: readonly string[],
  rows: readonly (readonly string[])[],
  bold: (text: string) => string,
): readonly string[] {
  const widths = columns.map((column, index) => Math.max(column.length, ...rows.map((row) => row[index]?.length ?? 0)));
  const joined = (cells: readonly string[]): string => cells.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join("  ");
  return [bold(joined(columns).trimEnd()), ...rows.map((row) => joined(row).trimEnd())];
}

/** The width of help, as commander has it where no terminal says another. */
const HELP_COLUMNS = 80;

/** A text behind a head, broken between words; what does not fit goes on below its beginning. */
export function hanging(head: string, text: string): string {
  const lines: string[] = [];
  let line = head;
  for (const word of text.split(" ")) {
    const isFirst = line.length === head.length;
    if (!isFirst && line.length + 1 + word.length > HELP_COLUMNS) {
      lines.push(line);
      line = " ".repeat(head.length) + word;
    } else line += isFirst ? word : ` ${word}`;
  }
  return [...lines, line].join("\n");
}
