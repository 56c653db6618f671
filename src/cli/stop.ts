/** Why a command stops before it is done: Ctrl-C, or its output has nowhere to go any more. */

import { outputFaultOf, type OutputFault } from "./output-fault.ts";

/** The reason of a command's signal. */
export class Stopped extends Error {
  override readonly name = "Stopped";
  readonly why: "interrupt" | "output";

  constructor(why: "interrupt" | "output") {
    super(why);
    this.why = why;
  }
}

export interface StopOptions {
  /** Whether the command goes on without its output, as a server does. */
  readonly outlivesOutput?: boolean | undefined;
  readonly exit?: ((code: number) => void) | undefined;
}

/**
 * What stops a command. The first Ctrl-C asks it to (its signal fires, unless it has a way of its own), the second ends the process.
 */
export class Stop implements Disposable {
  readonly #controller = new AbortController();
  readonly #exit: (code: number) => void;
  readonly #outlivesOutput: boolean;
  readonly #onInterrupt = (): void => this.#interrupted();
  readonly #onOutputError = (error: NodeJS.ErrnoException): void => this.#outputFailed(error);
  #interrupts = 0;
  #ownWay: (() => void) | undefined;
  #outputFault: OutputFault | undefined;

  constructor({ outlivesOutput = false, exit = (code) => process.exit(code) }: StopOptions = {}) {
    this.#exit = exit;
    this.#outlivesOutput = outlivesOutput;
    process.on("SIGINT", this.#onInterrupt);
    process.stdout.on("error", this.#onOutputError);
  }

  /** Fires when the command is to stop; its reason is a `Stopped`. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get interrupted(): boolean {
    return this.#interrupts > 0;
  }

  /** What happened to standard output, where that ends the command. */
  get outputFault(): OutputFault | undefined {
    return this.#outputFault;
  }

  /** Whether the command stops because of Ctrl-C: a person is there to be told something. */
  get leaving(): boolean {
    const reason: unknown = this.signal.aborted ? this.signal.reason : undefined;
    return reason instanceof Stopped && reason.why === "interrupt";
  }

  /** The person leaves by a way of the command's own: what still runs for it is not waited for. */
  leave(): void {
    this.#controller.abort(new Stopped("interrupt"));
  }

  /** Does `way` at the first Ctrl-C instead of firing the signal. */
  onInterrupt(way: () => void): void {
    this.#ownWay = way;
  }

  [Symbol.dispose](): void {
    process.off("SIGINT", this.#onInterrupt);
    process.stdout.off("error", this.#onOutputError);
  }

  #interrupted(): void {
    this.#interrupts++;
    if (this.#interrupts > 1) return this.#exit(130);
    if (this.#ownWay === undefined) this.#controller.abort(new Stopped("interrupt"));
    else this.#ownWay();
  }

  #outputFailed(error: NodeJS.ErrnoException): void {
    if (this.#outlivesOutput) return;
    this.#outputFault ??= outputFaultOf(error);
    this.#controller.abort(new Stopped("output"));
  }
}
