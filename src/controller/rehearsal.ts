/**
 * The harnesses of one replay, apart from any session: each is started once, and what it keeps in memory grows from turn to turn as it
 * did when the turns were recorded.
 *
 * Invariant: a turn is replayed with the memory that it was recorded with, or it is refused. A turn that was stopped left no trace in
 * memory; in a rehearsal it does, so what follows it is not replayed for a harness that keeps memory.
 */

import { HoldfastError } from "../base/errors.ts";
import { Resumability, type CallOptions, type Harness, type HarnessCatalog, type RehearsedHarness } from "../spi/index.ts";
import type { RecordedTurn } from "./recorded-turn.ts";

interface Rehearsed {
  readonly rehearsed: RehearsedHarness;
  readonly keepsMemory: boolean;
}

/** Starts harnesses for a replay and keeps them until its end. */
export class Rehearsal implements AsyncDisposable {
  readonly #harnesses: HarnessCatalog;
  readonly #started = new Map<string, Rehearsed>();
  #stoppedSeq: number | undefined;

  constructor(harnesses: HarnessCatalog) {
    this.#harnesses = harnesses;
  }

  /** The harness for a turn, which is the next to be replayed. Throws FAILED_PRECONDITION where it is not served, or has lost its memory. */
  async harnessFor(name: string, turn: RecordedTurn, options: CallOptions): Promise<Harness> {
    const { rehearsed, keepsMemory } = this.#started.get(name) ?? (await this.#start(name, options));
    if (keepsMemory && this.#stoppedSeq !== undefined) throw memoryLost(this.#stoppedSeq);
    if (turn.end === "CANCELED") this.#stoppedSeq ??= turn.startSeq;
    return rehearsed.harness;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#started.values()].map(({ rehearsed }) => rehearsed[Symbol.asyncDispose]()));
  }

  async #start(name: string, options: CallOptions): Promise<Rehearsed> {
    const entry = this.#harnesses.find(name);
    if (entry === undefined) {
      throw new HoldfastError("failed_precondition", "harness: the one that the turn was recorded with is not served here; name another");
    }
    const { capabilities } = await entry.describe(options);
    const rehearsed = await entry.rehearse(options);
    const started = { rehearsed, keepsMemory: capabilities?.resumability === Resumability.REQUIRES_MEMORY_SNAPSHOT };
    this.#started.set(name, started);
    return started;
  }
}

function memoryLost(seq: number): HoldfastError {
  return new HoldfastError(
    "failed_precondition",
    `session: the turn at seq ${seq} was cancelled and left no trace in memory, which a replay cannot undo; later turns are not replayed`,
  );
}
