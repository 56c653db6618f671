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
