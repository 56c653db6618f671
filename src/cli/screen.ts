/**
 * Where a command's words go: results to standard output, everything else to standard error.
 *
 * Invariants: colours, progress and notes only where a person looks (a terminal, no `--json`, no NO_COLOR for colours); with `--json`
 * every line of either stream is one JSON value.
 */

import { styleText } from "node:util";
import type { HoldfastError } from "../base/errors.ts";
import { exitOfError } from "./exit.ts";
import { plain } from "./plain.ts";

/** A stream that may be a terminal. */
export type Output = NodeJS.WritableStream & { readonly isTTY?: boolean };

export interface ScreenOptions {
  readonly json: boolean;
  readonly stdout: Output;
  readonly stderr: Output;
}

/** A colour or a weight. */
export type Style = Parameters<typeof styleText>[0];

export class Screen {
  readonly json: boolean;
  readonly #stdout: Output;
  readonly #stderr: Output;

  constructor(options: ScreenOptions) {
    this.json = options.json;
    this.#stdout = options.stdout;
    this.#stderr = options.stderr;
  }

  /** Whether a person watches standard output as it comes. */
  get live(): boolean {
    return !this.json && this.#stdout.isTTY === true;
  }

  /** Writes to standard output as it is. */
  write(text: string): void {
    this.#stdout.write(text);
  }

  /** A line of standard output. */
  line(text: string): void {
    this.#stdout.write(`${text}\n`);
  }

  /** A JSON value on a line of standard output. */
  value(value: unknown): void {
    this.#stdout.write(`${JSON.stringify(value)}\n`);
  }

  /** A remark for a person; nothing is said where none looks. */
  note(text: string): void {
    if (!this.json && this.#stderr.isTTY === true) this.#stderr.write(`${this.#paint("dim", text)}\n`);
  }

  /** Something that a person or a script should know beside the result, and that is no error. */
  hint(text: string): void {
    if (!this.json) this.#stderr.write(`${text}\n`);
  }

  /** How to go on with what the command leaves behind: a script needs that as much as a person does. */
  pickUp(text: string): void {
    this.#stderr.write(this.json ? `${JSON.stringify({ hint: text })}\n` : `${text}\n`);
  }

  /** An error, with what can be done about it. */
  error(error: HoldfastError, hint?: string): void {
    if (this.json) {
      const { code, message, field } = error;
      this.#stderr.write(`${JSON.stringify({ error: { code, message, field, exit_code: exitOfError(code), hint } })}\n`);
      return;
    }
    this.#stderr.write(`${this.#paint("red", "holdfast:")} ${plain(error.message)}\n`);
    if (hint !== undefined) this.#stderr.write(`${hint}\n`);
  }

  /** `text` in bold on a coloured terminal. */
  bold(text: string): string {
    return this.styled("bold", text);
  }

  /** `text` for standard output, in a style where that is a coloured terminal. */
  styled(style: Style, text: string): string {
    return this.json ? text : styleText(style, text, { stream: this.#stdout });
  }

  #paint(style: Style, text: string): string {
    return styleText(style, text, { stream: this.#stderr });
  }
}
