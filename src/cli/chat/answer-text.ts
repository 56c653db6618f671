/** The model's text and reasoning as they come, as what is printed. Pure. */

import type { RetractedChars } from "../../client/index.ts";
import { MarkdownStream, type MarkdownBlock } from "./markdown/stream.ts";
import type { Printed } from "./printed.ts";

/** What has come and is not finished. */
export type Unfinished =
  | { readonly kind: "answer"; readonly block: MarkdownBlock }
  | { readonly kind: "thought"; readonly text: string; readonly isJoined: boolean };

export class AnswerText {
  readonly #isRaw: boolean;
  readonly #answer = new MarkdownStream();
  #thought = "";
  #isThinking = false;

  /** `isRaw`: the text as it came, and no reasoning: for whoever is not a person at a terminal. */
  constructor({ isRaw }: { readonly isRaw: boolean }) {
    this.#isRaw = isRaw;
  }

  get unfinished(): Unfinished | undefined {
    if (this.#thought !== "") return { kind: "thought", text: this.#thought, isJoined: this.#isThinking };
    const { rest } = this.#answer;
    return rest === undefined ? undefined : { kind: "answer", block: rest };
  }

  addText(text: string): readonly Printed[] {
    if (this.#isRaw) return [{ kind: "raw", text }];
    return [...this.#endThought(), ...this.#answer.add(text).map(answerOf)];
  }

  addThought(text: string): readonly Printed[] {
    if (this.#isRaw) return [];
    const printed: Printed[] = this.#answer.end().map(answerOf);
    const lines = (this.#thought + text).split("\n");
    this.#thought = lines.pop() ?? "";
    for (const line of lines) printed.push(this.#thoughtOf(line));
    return printed;
  }

  /** Takes back what is void. Where that has been printed, a note says so. */
  retract({ text, thinking }: RetractedChars): readonly Printed[] {
    if (this.#isRaw) return text === 0 ? [] : [{ kind: "raw", text: "\n" }, AGAIN];
    const isThoughtOut = thinking > this.#thought.length;
    this.#thought = this.#thought.slice(0, Math.max(0, this.#thought.length - thinking));
    const isTextOut = text > 0 && this.#answer.retract(text);
    return isTextOut || isThoughtOut ? [AGAIN] : [];
  }

  /** Something else comes: what has come is finished. */
  end(): readonly Printed[] {
    return [...this.#endThought(), ...this.#answer.end().map(answerOf)];
  }

  #endThought(): readonly Printed[] {
    const printed = this.#thought === "" ? [] : [this.#thoughtOf(this.#thought)];
    this.#thought = "";
    this.#isThinking = false;
    return printed;
  }

  #thoughtOf(text: string): Printed {
    const isJoined = this.#isThinking;
    this.#isThinking = true;
    return { kind: "thought", text, isJoined };
  }
}

const AGAIN: Printed = { kind: "note", text: "the model was asked again; what follows stands in the place of the end above" };

function answerOf(block: MarkdownBlock): Printed {
  return { kind: "answer", block };
}
