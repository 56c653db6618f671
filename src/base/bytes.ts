/** Bytes, compared and counted. */

/** Whether two pieces of memory hold the same. */
export function isSameBytes(left: Uint8Array, right: Uint8Array): boolean {
  if (left.length !== right.length) return false;
  for (let index = 0; index < left.length; index++) if (left[index] !== right[index]) return false;
  return true;
}

const UTF8 = new TextEncoder();
/** Bytes that nobody reads. */
const scratch = new Uint8Array(4_096);
/** A shorter text is looked at character by character sooner than encoded. */
const SHORT_CHARS_MAX = 24;

/** The bytes of a text in UTF-8, in which a lone surrogate is U+FFFD. */
export function utf8Length(text: string): number {
  if (text.length <= SHORT_CHARS_MAX && isAscii(text)) return text.length;
  let bytes = 0;
  for (let rest = text; rest !== "";) {
    const { read, written } = UTF8.encodeInto(rest, scratch);
    bytes += written;
    rest = read === rest.length ? "" : rest.slice(read);
  }
  return bytes;
}

/** The start of a text, in at most `bytesMax` bytes of UTF-8; no character is split. */
export function textStart(text: string, bytesMax: number): string {
  // No character takes more than three bytes for each of its units.
  if (text.length * 3 <= bytesMax) return text;
  const { read } = UTF8.encodeInto(text, new Uint8Array(Math.min(bytesMax, text.length * 3)));
  return read === text.length ? text : text.slice(0, read);
}

function isAscii(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) if (text.charCodeAt(index) > 0x7f) return false;
  return true;
}
