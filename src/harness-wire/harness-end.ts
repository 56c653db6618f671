/**
 * The harness's end of a line: takes a harness and drives it as the host's frames say. It needs no protobuf library, no clock and no
 * timer, so it also runs inside a sandbox.
 *
 * Invariants:
 * - Every frame of the host carries the session and the execution that its exchange was opened for, or the exchange ends.
 * - An exchange that is over sends nothing more.
 * - A harness that is asked to describe itself and to run at once does both; executions share nothing here.
 */

import { HoldfastError } from "../base/errors.ts";
import type { HostFrame } from "../gen/holdfast/v1/harness_wire_pb.ts";
import type { Harness } from "../spi/harness.ts";
import { HarnessExecution } from "./harness-execution.ts";
import { HOST_FRAME_BYTES_MAX } from "./limits.ts";
import { LINE_PROTOCOL, type HarnessFrameInit, type HarnessLine } from "./line.ts";
import { STATUS_INTERNAL, thrownErrorOf } from "./status.ts";

/** How a harness's end is set up. */
export interface HarnessEndOptions {
  /** True (the default) where a history is pulled as it is read; false where the host pushes it with the start. */
  readonly pullsHistory?: boolean | undefined;
  /** The most bytes of one frame of the host. Default 64 MiB. */
  readonly frameBytesMax?: number | undefined;
}

/** The body of a harness's frame. */
export type HarnessFrameBody = NonNullable<HarnessFrameInit["frame"]>;

/** Drives a harness for the host at the other end. */
export class HarnessEnd {
  readonly #harness: Harness;
  readonly #line: HarnessLine;
  readonly #options: HarnessEndOptions;
  readonly #executions = new Map<number, HarnessExecution>();
  #describing = 0;
  #isClosed = false;
  #onIdle: (() => void)[] = [];

  constructor(harness: Harness, line: HarnessLine, options: HarnessEndOptions = {}) {
    this.#harness = harness;
    this.#line = line;
    this.#options = options;
  }

  /** How many exchanges are under way. */
  get openExchanges(): number {
    return this.#executions.size + this.#describing;
  }

  /** Resolves as soon as no exchange is under way. */
  idle(): Promise<void> {
    if (this.openExchanges === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onIdle.push(resolve));
  }

  /** Takes a frame of the host. Frames come in the order in which they were sent. */
  receive({ exchange, frame }: HostFrame): void {
    if (this.#isClosed) return;
    switch (frame.case) {
      case "hello":
        return this.#greet(frame.value.frameBytesMax);
      case "describe":
        return void this.#describe(exchange);
      case "open": {
        const execution = new HarnessExecution(this.#harness, frame.value, {
          send: (body) => this.#line.send({ exchange, frame: body }),
          release: () => this.#release(exchange, execution),
        });
        this.#executions.set(exchange, execution);
        return;
      }
      case undefined:
        return;
      default:
        this.#executions.get(exchange)?.receive(frame);
    }
  }

  /** The line is closed: whatever runs is told to stop, and nothing is sent any more. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const fault = new HoldfastError("unavailable", "host: the line to it was closed");
    for (const execution of this.#executions.values()) execution.abandon(fault);
  }

  #greet(frameBytesMax: number): void {
    if (frameBytesMax > 0) this.#line.limitFrames?.(frameBytesMax);
    const { pullsHistory = true, frameBytesMax: ownBytesMax = HOST_FRAME_BYTES_MAX } = this.#options;
    this.#trySend(0, { case: "hello", value: { protocol: LINE_PROTOCOL, pullsHistory, frameBytesMax: ownBytesMax } });
  }

  async #describe(exchange: number): Promise<void> {
    this.#describing += 1;
    try {
      this.#trySend(exchange, { case: "descriptor", value: await this.#harness.describe() });
    } catch (error) {
      this.#trySend(exchange, { case: "end", value: thrownErrorOf(error) });
    } finally {
      this.#describing -= 1;
      this.#checkIdle();
    }
  }

  #trySend(exchange: number, frame: HarnessFrameBody): void {
    if (this.#isClosed) return;
    try {
      this.#line.send({ exchange, frame }).catch(() => undefined);
    } catch (error) {
      // What cannot be sent is said in few words.
      const end: HarnessFrameInit = { exchange, frame: { case: "end", value: { code: STATUS_INTERNAL, description: wordsOf(error) } } };
      this.#line.send(end).catch(() => undefined);
    }
  }

  #release(exchange: number, execution: HarnessExecution): void {
    if (this.#executions.get(exchange) === execution) this.#executions.delete(exchange);
    this.#checkIdle();
  }

  #checkIdle(): void {
    if (this.openExchanges > 0) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }
}

function wordsOf(error: unknown): string {
  return error instanceof HoldfastError ? error.message : "the frame could not be sent";
}
