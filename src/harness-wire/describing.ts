/** The exchange in which a harness describes itself, at the host's end. */

import type { Timer } from "../base/ports.ts";
import type { HarnessDescriptor } from "../gen/agentsessions/v1/harness_pb.ts";
import type { HarnessFrame } from "../gen/holdfast/v1/harness_wire_pb.ts";
import { Deferred } from "./promise.ts";
import type { ExchangeContext, HostExchange } from "./host-exchange.ts";
import { brokenProtocol, noAnswer, outsideTurn } from "./protocol.ts";
import { STATUS_CANCELLED, STATUS_INTERNAL, thrownErrorOfWire } from "./status.ts";

/** Asks once. */
export class DescribeExchange implements HostExchange {
  readonly #context: ExchangeContext;
  readonly #answer = new Deferred<HarnessDescriptor>();
  #timer: Timer | undefined;
  #isOver = false;

  constructor(context: ExchangeContext) {
    this.#context = context;
  }

  async ask(signal: AbortSignal | undefined): Promise<HarnessDescriptor> {
    const { clock, limits } = this.#context;
    const onAbort = (): void => this.#giveUp(signal?.reason, STATUS_CANCELLED);
    signal?.addEventListener("abort", onAbort, { once: true });
    this.#timer = clock.after(limits.describeTimeoutMs, () => {
      this.#giveUp(noAnswer("describe", limits.describeTimeoutMs), STATUS_CANCELLED);
    });
    try {
      this.#context.send({ case: "describe", value: {} }).catch((error: unknown) => this.#settle(error));
      return await this.#answer.promise;
    } finally {
      signal?.removeEventListener("abort", onAbort);
      this.#settle(undefined);
    }
  }

  receive(frame: HarnessFrame["frame"]): undefined {
    if (frame.case === "descriptor") {
      this.#answer.resolve(frame.value);
      this.#settle(undefined);
    } else if (frame.case === "end" && frame.value.code !== 0) {
      this.#settle(thrownErrorOfWire(frame.value));
    } else {
      this.#giveUp(brokenProtocol("describe must be answered with a descriptor"), STATUS_INTERNAL);
    }
  }

  fail(error: Error): void {
    this.#settle(outsideTurn(error));
  }

  #giveUp(error: unknown, code: number): void {
    if (this.#isOver) return;
    void this.#sayEnd(code);
    this.#settle(error instanceof Error ? outsideTurn(error) : error);
  }

  async #sayEnd(code: number): Promise<void> {
    try {
      await this.#context.send({ case: "end", value: { code, description: "describe is not waited for any longer" } });
    } catch {
      // The line is closed, and every exchange on it has been told so.
    }
  }

  #settle(error: unknown): void {
    if (error !== undefined) this.#answer.reject(error);
    if (this.#isOver) return;
    this.#isOver = true;
    this.#timer?.cancel();
    this.#context.release();
  }
}
