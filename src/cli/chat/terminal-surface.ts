/** A chat on a terminal: keys, the line that is written, and what is drawn below what was printed. */

import { emitKeypressEvents } from "node:readline";
import type { ReadStream, WriteStream } from "node:tty";
import { styleText } from "node:util";
import type { Clock, Timer } from "../../base/index.ts";
import type { ChatCore } from "./chat-core.ts";
import type { Paint } from "./markdown/spans.ts";
import type { Printed } from "./printed.ts";
import type { StateFolder } from "./state-folder.ts";
import type { Surface } from "./surface.ts";
import { KeyReader, type Key, type Keypress } from "./terminal/keys.ts";
import { edited, newDraft, withText, type Draft } from "./terminal/line-editor.ts";
import { LiveScreen } from "./terminal/live-screen.ts";
import { liveArea, Printer, type Looks } from "./view.ts";

const PASTE_ON = "\u001b[?2004h";
const PASTE_OFF = "\u001b[?2004l";

/** How often the screen is drawn at most: what streams in fast is drawn together. */
const DRAW_INTERVAL_MS = 20;

export class TerminalSurface implements Surface {
  readonly #input: ReadStream;
  readonly #output: WriteStream;
  readonly #state: StateFolder;
  readonly #paint: Paint;
  readonly #hasStyles: boolean;
  readonly #screen: LiveScreen;
  readonly #printer = new Printer();
  readonly #keys = new KeyReader();
  #draft: Draft;
  /** The question that keys go to; a line that was begun before it is not taken from a person. */
  #answering: string | undefined;
  #isOpen = false;
  #isClosed = false;
  readonly #clock: Clock;
  /** Lines that wait to be drawn. */
  #lines: string[] = [];
  #drawnMs = Number.NEGATIVE_INFINITY;
  #soon: Timer | undefined;
  #redraw = (): void => undefined;

  constructor(input: ReadStream, output: WriteStream, state: StateFolder, clock: Clock) {
    this.#clock = clock;
    this.#input = input;
    this.#output = output;
    this.#state = state;
    this.#paint = (style, text) => styleText(style, text, { stream: output });
    this.#hasStyles = this.#paint("bold", "x") !== "x";
    this.#screen = new LiveScreen(
      (text) => void output.write(text),
      () => ({ columns: output.columns || 80, rows: output.rows || 24 }),
    );
    this.#draft = newDraft(state.history);
  }

  start(core: ChatCore, changed: () => void): void {
    emitKeypressEvents(this.#input);
    this.#open();
    this.#input.on("keypress", (text: string | undefined, press: Keypress) => {
      const key = this.#keys.read(text, press);
      if (key === undefined) return;
      this.#onKey(key, core);
      changed();
    });
    this.#redraw = () => this.show([], core);
    this.#output.on("resize", () => this.#redraw());
    process.on("SIGCONT", this.#onContinue);
  }

  show(printed: readonly Printed[], core: ChatCore): void {
    const looks = this.#looks();
    for (const one of printed) this.#lines.push(...this.#printer.lines(one, looks));
    const waitMs = this.#drawnMs + DRAW_INTERVAL_MS - this.#clock.monotonicMs();
    if (waitMs <= 0) this.#draw(core);
    else this.#soon ??= this.#clock.after(waitMs, () => this.#draw(core));
  }

  #draw(core: ChatCore): void {
    this.#soon?.cancel();
    this.#soon = undefined;
    this.#drawnMs = this.#clock.monotonicMs();
    const lines = this.#lines;
    this.#lines = [];
    const looks = this.#looks();
    const { question, isQuestionArmed, status, unfinished } = core;
    if (question === undefined) this.#answering = undefined;
    else if (this.#answering === undefined && this.#draft.text === "") this.#answering = question.callId;
    const area = liveArea(
      {
        unfinished: unfinished === undefined ? [] : this.#printer.unfinished(unfinished, looks),
        question,
        isQuestionArmed,
        isAnswering: this.#answering !== undefined,
        status,
        draft: this.#draft,
      },
      looks,
    );
    this.#screen.update(lines, area);
  }

  fill(text: string): void {
    this.#draft = withText(this.#draft, text);
  }

  redraw(core: ChatCore): void {
    this.#screen.redraw();
    this.#draw(core);
  }

  suspend(): void {
    this.#screen.close(this.#rest());
    this.#release();
    process.kill(process.pid, "SIGTSTP");
    // Where nobody can call it back, as without a shell, the system does not stop it.
    setImmediate(this.#onContinue);
  }

  close(): void {
    this.#isClosed = true;
    process.off("SIGCONT", this.#onContinue);
    this.#redraw = () => undefined;
    this.#input.removeAllListeners("keypress");
    this.#screen.close(this.#rest());
    this.#release();
  }

  /** The lines that wait; they are drawn no more. */
  #rest(): readonly string[] {
    this.#soon?.cancel();
    this.#soon = undefined;
    const lines = this.#lines;
    this.#lines = [];
    return lines;
  }

  readonly #onContinue = (): void => {
    if (this.#isClosed) return;
    // The shell has set the terminal anew, of which Node knows nothing.
    this.#release();
    this.#open();
    this.#redraw();
  };

  #open(): void {
    this.#isOpen = true;
    this.#input.setRawMode(true);
    this.#input.resume();
    this.#output.write(PASTE_ON);
  }

  #release(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#output.write(PASTE_OFF);
    this.#input.setRawMode(false);
    this.#input.pause();
  }

  #onKey(key: Key, core: ChatCore): void {
    switch (key.kind) {
      case "interrupt":
        return this.#interrupt(core);
      case "end-of-input":
        return this.#draft.text === "" ? core.onQuit() : this.#edit({ kind: "delete" }, core);
      case "redraw":
        return core.onRedraw();
      case "suspend":
        return core.onSuspend();
      case "tab":
        if (core.question === undefined) return;
        this.#answering = this.#answering === undefined ? core.question.callId : undefined;
        return core.onAnswerKey(undefined);
      default:
        if (this.#answering === undefined) return this.#edit(key, core);
        return core.onAnswerKey(key.kind === "text" ? key.text : undefined);
    }
  }

  #edit(key: Key, core: ChatCore): void {
    const { draft, submitted } = edited(this.#draft, key);
    this.#draft = draft;
    if (submitted === undefined) return;
    this.#state.keepHistory(draft.history);
    core.onLine(submitted);
  }

  /** Ctrl-C clears the line first; a turn that runs goes before it. */
  #interrupt(core: ChatCore): void {
    if (this.#draft.text !== "" && !core.status.isTurn) {
      this.#draft = withText(this.#draft, "");
      return;
    }
    core.onInterrupt();
    const held = core.status.isCancelling ? core.takeHeld() : [];
    if (held.length > 0) this.#draft = withText(this.#draft, [...held, this.#draft.text].filter((text) => text !== "").join("\n"));
  }

  #looks(): Looks {
    return { layout: { columns: this.#output.columns || 80, keep: !this.#hasStyles }, paint: this.#paint };
  }
}
