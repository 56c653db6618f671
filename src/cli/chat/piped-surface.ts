/** A chat through pipes: each line of standard input is a message, the answer goes to standard output as it comes, the rest to standard error. */

import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { plain } from "../plain.ts";
import type { ChatCore } from "./chat-core.ts";
import { UNPAINTED } from "./markdown/spans.ts";
import type { Printed } from "./printed.ts";
import type { Surface } from "./surface.ts";
import { Printer, type Looks } from "./view.ts";

/** Lines are not broken: whoever reads them may be a program. */
const LOOKS: Looks = { layout: { columns: 10_000, keep: true }, paint: UNPAINTED };

export interface PipedOutput {
  /** Whether standard output is a terminal, which nothing that a model says may control. */
  readonly isTerminal: boolean;
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
}

export class PipedSurface implements Surface {
  readonly #input: Readable;
  readonly #output: PipedOutput;
  readonly #printer = new Printer();
  #lines: AsyncIterator<string> | undefined;
  #changed: () => void = () => undefined;
  /** Whether a line is read, or there are no more. */
  #isReading = false;
  /** Whether the answer's last line is not finished. */
  #isInLine = false;

  constructor(input: Readable, output: PipedOutput) {
    this.#input = input;
    this.#output = output;
  }

  start(core: ChatCore, changed: () => void): void {
    this.#lines = createInterface({ input: this.#input, crlfDelay: Number.POSITIVE_INFINITY })[Symbol.asyncIterator]();
    this.#changed = changed;
    this.show([], core);
  }

  show(printed: readonly Printed[], core: ChatCore): void {
    for (const one of printed) this.#print(one);
    if (!core.isIdle || this.#lines === undefined || this.#isReading) return;
    this.#endLine();
    this.#isReading = true;
    void this.#read(this.#lines, core);
  }

  fill(text: string): void {
    this.#output.stderr(`this was not sent before: ${text}\n`);
  }

  redraw(): void {
    // There is nothing that is drawn.
  }

  suspend(): void {
    // Whoever sends lines does not suspend.
  }

  close(): void {
    this.#endLine();
    this.#input.destroy();
  }

  /** The next line is a message. It is read when the one before it was answered. */
  async #read(lines: AsyncIterator<string>, core: ChatCore): Promise<void> {
    let next = await lines.next();
    while (next.done !== true && next.value.trim() === "") next = await lines.next();
    if (next.done === true) core.onQuit();
    else {
      this.#isReading = false;
      core.onLine(next.value);
    }
    this.#changed();
  }

  #print(printed: Printed): void {
    switch (printed.kind) {
      case "raw":
        this.#isInLine = !printed.text.endsWith("\n");
        return this.#output.stdout(this.#output.isTerminal ? plain(printed.text) : printed.text);
      case "said":
      case "typed":
        return;
      case "lines":
        this.#endLine();
        return this.#output.stdout(printed.lines.map((line) => `${plain(line)}\n`).join(""));
      default:
        this.#endLine();
        return this.#output.stderr(
          this.#printer
            .lines(printed, LOOKS)
            .filter((line) => line !== "")
            .map((line) => `${line}\n`)
            .join(""),
        );
    }
  }

  #endLine(): void {
    if (this.#isInLine) this.#output.stdout("\n");
    this.#isInLine = false;
  }
}
