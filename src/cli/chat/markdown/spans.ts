/** Text with styles, before a terminal is known. Pure. */

/** How a piece of text looks. */
export type TextStyle = "bold" | "italic" | "underline" | "strikethrough" | "dim" | "cyan" | "green" | "yellow" | "red";

/** A piece of text in one look. */
export interface Span {
  readonly text: string;
  readonly styles: readonly TextStyle[];
}

/** The spans of a line of the screen. */
export type Line = readonly Span[];

/** Puts a style on a text, where the screen has styles. */
export type Paint = (style: TextStyle, text: string) => string;

/** No styles at all. */
export const UNPAINTED: Paint = (_, text) => text;

export function span(text: string, ...styles: readonly TextStyle[]): Span {
  return { text, styles };
}

/** `spans` with one style more. */
export function styled(spans: Line, style: TextStyle): Line {
  return spans.map(({ text, styles }) => ({ text, styles: styles.includes(style) ? styles : [...styles, style] }));
}

/** A line as it is written. */
export function painted(line: Line, paint: Paint): string {
  return line.map(({ text, styles }) => (text === "" ? "" : styles.reduce((done, style) => paint(style, done), text))).join("");
}

/** The text of a line alone. */
export function textOf(line: Line): string {
  return line.map(({ text }) => text).join("");
}
