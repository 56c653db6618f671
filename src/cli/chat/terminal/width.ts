/** How many columns of a terminal a text takes. Pure. */

const SEGMENTER = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** What a person sees as one character, one after the other. */
export function graphemesOf(text: string): readonly string[] {
  // oxlint-disable-next-line no-control-regex -- plain ASCII has one grapheme a character, and is nearly everything.
  if (/^[\x00-\x7f]*$/.test(text)) return text.split("");
  return Array.from(SEGMENTER.segment(text), ({ segment }) => segment);
}

/** The columns of a text without line breaks and control characters. */
export function widthOf(text: string): number {
  return graphemesOf(text).reduce((sum, grapheme) => sum + graphemeWidth(grapheme), 0);
}

/** East Asian wide and fullwidth blocks, first and last code point. */
const WIDE: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x2e80, 0x303e],
  [0x3041, 0x33ff],
  [0x3400, 0x4dbf],
  [0x4e00, 0x9fff],
  [0xa000, 0xa4cf],
  [0xa960, 0xa97c],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x1f300, 0x1f64f],
  [0x1f680, 0x1f6ff],
  [0x1f900, 0x1f9ff],
  [0x20000, 0x3fffd],
];

function graphemeWidth(grapheme: string): number {
  const code = grapheme.codePointAt(0) ?? 0;
  if (code < 0x300) return 1;
  if (/^[\p{M}\p{Cf}]+$/u.test(grapheme)) return 0;
  if (/\p{Emoji_Presentation}|\ufe0f/u.test(grapheme)) return 2;
  return WIDE.some(([first, last]) => code >= first && code <= last) ? 2 : 1;
}
