/** One connection to a harness elsewhere: many sessions over it, until it is lost. */

import { createLineHarness, type LineHarness } from "../../harness-wire/index.ts";
import { dialHarness, type DialOptions } from "../../harness-wire/node/index.ts";
import type { CallOptions, HarnessDescriptor } from "../../spi/index.ts";
import type { RemoteRuntimeOptions } from "./options.ts";

/** A connection that was answered. */
export class Connection implements AsyncDisposable {
  readonly harness: LineHarness;
  readonly #descriptor: HarnessDescriptor;
  readonly #isLine: boolean;
  #isLost = false;

  /** Dials. Rejects with UNAVAILABLE where nobody answers in time. */
  static async dial(options: RemoteRuntimeOptions, dial: DialOptions): Promise<Connection> {
    const { line, speaks } = await dialHarness(options.address, dial);
    const { ports, limits, log, grant } = options;
    const harness = createLineHarness({ line, clock: ports.clock, limits, log, grant });
    try {
      // Over the line itself: whoever answered when it was dialled may have been replaced since.
      const descriptor = await harness.describe(dial);
      return new Connection(harness, descriptor, speaks === "wire");
    } catch (error) {
      await harness[Symbol.asyncDispose]();
      throw error;
    }
  }

  private constructor(harness: LineHarness, descriptor: HarnessDescriptor, isLine: boolean) {
    this.harness = harness;
    this.#descriptor = descriptor;
    this.#isLine = isLine;
    void harness.closed.then(() => (this.#isLost = true));
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  /**
   * What the harness says of itself. A line ends with the process at its other end, so what was said over it first holds for as long as
   * it does; calls of the contract may reach another process each, so it is asked again.
   */
  async describe(options?: CallOptions): Promise<HarnessDescriptor> {
    return this.#isLine && !this.#isLost ? this.#descriptor : this.harness.describe(options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isLost = true;
    await this.harness[Symbol.asyncDispose]();
  }
}
