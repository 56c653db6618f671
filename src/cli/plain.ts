/** Text of others on a terminal: nothing in it may move the cursor, change colours or pretend to be a line of ours. */

// oxlint-disable-next-line no-control-regex -- control characters are exactly what is taken out.
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** `text` with its control and direction characters made visible; line breaks and tabs stay. */
export function plain(text: string): string {
  return text.toWellFormed().replaceAll("\r\n", "\n").replace(CONTROL, escaped);
}

/** `text` on one line. */
export function plainLine(text: string): string {
  return plain(text).replaceAll("\n", "\\n").replaceAll("\t", " ");
}

/** `text` on one line of at most `chars` characters; what was cut is marked. */
export function clipped(text: string, chars: number): string {
  const line = plainLine(text);
  return line.length > chars ? `${line.slice(0, chars - 1).toWellFormed()}…` : line;
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
