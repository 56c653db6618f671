/**
 * What came of text and reasoning since the last cursor. After a reconnect the server tells it anew from that cursor on, word for word or, where
 * a model call was made anew, in other words.
 *
 * Invariant: what was handed out, less what was retracted, is what an uncut stream would have told.
 */

/** What deltas are of. */
export type DeltaKind = "text" | "thinking";

/** What a delta adds to what was handed out before: first so many characters at its end are void, then this goes there. */
export interface DeltaStep {
  readonly retracted: RetractedChars | undefined;
  readonly fresh: string;
}

/** How many characters (UTF-16 units) at the end of what was handed out are void. */
export interface RetractedChars {
  readonly text: number;
  readonly thinking: number;
}

export class DeltaTail {
  #seen: Record<DeltaKind, string> = { text: "", thinking: "" };
  /** What is to be told again, less what has been. */
  #expected: Record<DeltaKind, string> = { text: "", thinking: "" };

  /** A delta came. */
  take(kind: DeltaKind, content: string): DeltaStep {
    this.#seen[kind] += content;
    const expected = this.#expected[kind];
    if (expected.startsWith(content)) {
      this.#expected[kind] = expected.slice(content.length);
      return { retracted: undefined, fresh: "" };
    }
    const same = commonLength(expected, content);
    this.#expected[kind] = "";
    const chars = expected.length - same;
    return { retracted: chars === 0 ? undefined : { text: 0, thinking: 0, [kind]: chars }, fresh: content.slice(same) };
  }

  /** Something came that no further delta of what is expected can follow. What of that has not come is void. */
  settle(): RetractedChars | undefined {
    const { text, thinking } = this.#expected;
    this.#expected = { text: "", thinking: "" };
    return text === "" && thinking === "" ? undefined : { text: text.length, thinking: thinking.length };
  }

  /** A cursor came: what was seen before it will not be told again. What was expected and did not come is void. */
  cover(): RetractedChars | undefined {
    this.#seen = { text: "", thinking: "" };
    return this.settle();
  }

  /** The connection was lost: all since the last cursor will be told again. */
  rewind(): void {
    this.#expected = { text: this.#seen.text + this.#expected.text, thinking: this.#seen.thinking + this.#expected.thinking };
    this.#seen = { text: "", thinking: "" };
  }
}

function commonLength(a: string, b: string): number {
  let length = 0;
  while (length < a.length && length < b.length && a.charCodeAt(length) === b.charCodeAt(length)) length++;
  // A character of two units is kept or void as a whole.
  return /[\ud800-\udbff]/.test(a.charAt(length - 1)) ? length - 1 : length;
}
