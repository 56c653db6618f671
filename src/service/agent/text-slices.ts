/** Texts in slices. Pure. */

const UTF8 = { encoder: new TextEncoder(), decoder: new TextDecoder("utf-8", { ignoreBOM: true }) };

/**
 * A well-formed text in slices of at most `charsMax` characters, 2 at least, none of which ends within a surrogate pair. None for an empty text.
 * Each slice of several is a text of its own: engines let a slice keep all of the text that it was taken from.
 */
export function* slicesOf(text: string, charsMax: number): Generator<string, void, undefined> {
  if (text.length <= charsMax) {
    if (text !== "") yield text;
    return;
  }
  for (let start = 0; start < text.length;) {
    const end = start + charsMax;
    const last = end < text.length ? text.charCodeAt(end - 1) : 0;
    const slice = text.slice(start, last >= 0xd800 && last <= 0xdbff ? end - 1 : end);
    start += slice.length;
    yield UTF8.decoder.decode(UTF8.encoder.encode(slice));
  }
}
