/**
 * How much of a completion its client has been told. Pure.
 *
 * Invariants:
 * - What was told of a part is a beginning of it: joined, the deltas of a part are its text.
 * - No character is told in halves.
 */

import type { PartialPiece } from "../../controller/index.ts";
import type { Message, Part } from "../../spi/index.ts";

/** A piece of a completion that is to be told. */
export interface FreshText {
  readonly kind: PartialPiece["kind"];
  readonly text: string;
}

/** A completion as far as it was told. */
export class ToldCompletion {
  readonly #toldUnits = new Map<string, number>();

  /** What is new in a completion that is not whole yet; of that the first, and at most `charsMax` characters. None when all was told. */
  partial(pieces: readonly PartialPiece[], charsMax: number): FreshText[] {
    for (const { kind, partIndex, text } of pieces) {
      const fresh = this.#fresh(kind, partIndex, (told) => wholeCharacters(text.from(told, charsMax)));
      if (fresh.length > 0) return fresh;
    }
    return [];
  }

  /** What is new in the whole completion. */
  whole(message: Message): FreshText[] {
    return message.parts.flatMap((part, partIndex) => {
      const shown = shownOf(part);
      return shown === undefined ? [] : this.#fresh(shown.kind, partIndex, (told) => shown.text.slice(told));
    });
  }

  /** What is new in a part; `from` gives what stands behind so many units of it. */
  #fresh(kind: PartialPiece["kind"], partIndex: number, from: (told: number) => string): FreshText[] {
    const key = `${kind} ${partIndex}`;
    const told = this.#toldUnits.get(key) ?? 0;
    const text = from(told);
    if (text === "") return [];
    this.#toldUnits.set(key, told + text.length);
    return [{ kind, text: text.toWellFormed() }];
  }
}

/** What of a part its client is told: text, and the words of reasoning. */
function shownOf({ part }: Part): FreshText | undefined {
  if (part.case === "text") return { kind: "text", text: part.value.text };
  if (part.case !== "reasoning") return undefined;
  return { kind: "reasoning", text: part.value.summary.map((each) => (each.part.case === "text" ? each.part.value.text : "")).join("") };
}

/** A text without the first half of a character at its end. */
function wholeCharacters(text: string): string {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? text.slice(0, -1) : text;
}
