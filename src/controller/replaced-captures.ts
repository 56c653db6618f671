/**
 * The capture that a session's newest one replaced goes as soon as the newest is durable in the row, where it is nobody else's. It is the
 * cheap case; whatever is passed over here, the sweep finds (`capture-sweep.ts`).
 *
 * Invariants:
 * - It is asked after the append, so a kill before leaves both.
 * - A session with children keeps it: one of them may begin with it, or have handed it on. Who forks at the same time either has its children
 *   in the journal before that append, and they are seen here, or finds the head moved on.
 */

import { toHoldfastError } from "../base/errors.ts";
import type { SessionUid } from "../base/ids.ts";
import type { Log } from "../base/ports.ts";
import type { JournalStore } from "../journal/index.ts";
import type { ComputeRef, HarnessEntry } from "../spi/index.ts";

/** What a session's row told of its compute, and what it tells now. */
export interface ReplacedCapture {
  readonly session: SessionUid;
  readonly harness: HarnessEntry;
  readonly before: ComputeRef | undefined;
  readonly now: ComputeRef | undefined;
}

/** Removes replaced captures, beside whatever goes on. */
export class ReplacedCaptures {
  readonly #journal: Pick<JournalStore, "list">;
  readonly #log: Log;
  readonly #underWay = new Set<Promise<void>>();

  constructor(journal: Pick<JournalStore, "list">, log: Log) {
    this.#journal = journal;
    this.#log = log;
  }

  /** Removes what was replaced, soon; nobody waits for it. */
  drop(replaced: ReplacedCapture): void {
    const { before, now } = replaced;
    if (before?.snapshot?.memory !== true || now?.snapshot?.memory !== true) return;
    if (before.snapshot.externalUri === now.snapshot.externalUri) return;
    const dropped = this.#drop(replaced, before, now).finally(() => this.#underWay.delete(dropped));
    this.#underWay.add(dropped);
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  async #drop({ session, harness }: ReplacedCapture, before: ComputeRef, now: ComputeRef): Promise<void> {
    try {
      const { rows } = await this.#journal.list({ parent: session, includeDeleted: true, limit: 1 });
      if (rows.length === 0) await harness.discard(before, now);
    } catch (error) {
      this.#log.log("warn", "a capture that was replaced is left to the sweep", { session, code: toHoldfastError(error).code });
    }
  }
}
