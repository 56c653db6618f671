/**
 * Takes captures of living VMs and stores them.
 *
 * Invariant: what a VM's thread takes for stored is stored, or the next capture is a whole one. That holds also where somebody removed it:
 * before each capture its layers are looked for.
 */

import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "../../base/index.ts";
import { SnapshotRefSchema } from "../../gen/agentsessions/v1/session_pb.ts";
import { snapshotUri, type CallOptions, type SnapshotRef } from "../../spi/index.ts";
import type { Resident, Residents } from "./residents.ts";
import type { Layer } from "./snapshot-format.ts";
import type { Merge, SnapshotStore } from "./snapshot-store.ts";

/** Throws ABORTED while a turn runs. */
export function refuseInTurn({ turns }: Resident): void {
  if (turns > 0) throw new HoldfastError("aborted", "session: a turn runs; its memory is captured between turns");
}

/** Captures, one after the other for each VM. */
export class Captures {
  readonly #store: SnapshotStore;
  readonly #residents: Residents;
  readonly #merge: Merge;
  readonly #underWay = new WeakMap<Resident, Promise<unknown>>();

  constructor(store: SnapshotStore, residents: Residents, merge: Merge) {
    this.#store = store;
    this.#residents = residents;
    this.#merge = merge;
  }

  /** Captures a VM and stores it. A VM in which nothing changed since gives the same snapshot again. */
  async take(resident: Resident, options: CallOptions): Promise<SnapshotRef> {
    const before = this.#underWay.get(resident);
    const taken = Promise.resolve(before)
      .catch(() => undefined)
      .then(() => this.#take(resident, options));
    this.#underWay.set(resident, taken);
    return create(SnapshotRefSchema, { externalUri: snapshotUri(await taken), memory: true });
  }

  async #take(resident: Resident, options: CallOptions): Promise<Layer> {
    options.signal?.throwIfAborted();
    refuseInTurn(resident);
    const { sandbox, incarnation } = resident;
    if (!(await this.#store.ready(resident.base, resident.chain, options))) [resident.chain, resident.capturedAt] = [[], undefined];
    await sandbox.rest();
    refuseInTurn(resident);
    const newest = resident.chain.at(-1);
    if (newest !== undefined && resident.capturedAt === sandbox.deliveries) return newest;
    const { chain } = resident;
    const { pages, delta, memoryBytes, deliveries, timers, nowMs } = await sandbox.capture(chain.length === 0);
    // Until it is stored, what the thread holds for stored is not.
    [resident.chain, resident.capturedAt] = [[], undefined];
    const isSame = newest !== undefined && pages === 0;
    const head = { base: resident.base.ref, session: incarnation.sessionUid, memoryBytes, timers, nowMs };
    const layers = isSame ? chain : await this.#store.put(head, chain, delta, this.#merge, options);
    [resident.chain, resident.capturedAt] = [layers, deliveries];
    if (!isSame) this.#residents.recovered(incarnation.sessionUid);
    return layers.at(-1)!;
  }
}
