/**
 * Text from a provider made fit for the record. Some servers cut their deltas between the two halves of a surrogate pair, so a
 * half at the end of a delta waits for the next one; a half that stays alone becomes U+FFFD.
 */

/** Joins deltas into well-formed text. What it returned, joined, is always the well-formed form of what it was given, joined. */
export class WellFormedText {
  #held = "";
  #text = "";

  /** The well-formed text so far. */
  get text(): string {
    return this.#text;
  }

  /** Takes a delta; returns what can be handed on now, perhaps nothing. */
  push(delta: string): string {
    const raw = this.#held + delta;
    const last = raw.charCodeAt(raw.length - 1);
    const cut = last >= 0xd800 && last <= 0xdbff ? raw.length - 1 : raw.length;
    this.#held = raw.slice(cut);
    return this.#append(raw.slice(0, cut));
  }

  /** Nothing more will come: returns what was held back. */
  end(): string {
    const rest = this.#held;
    this.#held = "";
    return this.#append(rest);
  }

  #append(raw: string): string {
    const text = raw.toWellFormed();
    this.#text += text;
    return text;
  }
}

/**
 * Whether no text in a JSON value, and no key, has half of a surrogate pair alone. Of the value's JSON that cannot be told: there such a half stands as
 * an escape.
 */
export function isWellFormedJson(value: unknown): boolean {
  let isWellFormed = true;
  JSON.stringify(value, (key, inner: unknown) => {
    isWellFormed &&= key.isWellFormed() && (typeof inner !== "string" || inner.isWellFormed());
    return inner;
  });
  return isWellFormed;
}
