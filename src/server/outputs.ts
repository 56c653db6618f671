/**
 * Where a host keeps outputs of tools that are too large for their records: the folder `outputs` beside the journal, in it one for each session.
 * They go with their sessions.
 *
 * An earlier version stored them in `blobs`, under no session. From there nothing is removed.
 */

import { join } from "node:path";
import type { Log, Ports } from "../base/index.ts";
import { startOutputSweeper, type Sweeper } from "../controller/index.ts";
import type { JournalStore } from "../journal/index.ts";
import type { SessionBlobs } from "../spi/index.ts";
import { createFileSessionBlobs, createMemorySessionBlobs } from "../stores/blobs/index.ts";
import type { ServerConfig } from "./config.ts";

/** What a host's outputs are kept by. */
export interface HostOutputsOptions {
  readonly config: Pick<ServerConfig, "store">;
  readonly ports: Pick<Ports, "clock">;
}

/** The outputs of a host. Nothing is made on the disk before there is one. */
export class HostOutputs {
  readonly store: SessionBlobs;
  readonly #clock: Ports["clock"];

  constructor({ config: { store }, ports: { clock } }: HostOutputsOptions) {
    this.#clock = clock;
    this.store =
      store.kind === "memory"
        ? createMemorySessionBlobs({ clock })
        : createFileSessionBlobs({ folder: join(store.folder, "outputs"), clock });
  }

  /** Sweeps them, also on a host that has no tools any more. */
  startSweeper(journal: JournalStore, log: Log): Sweeper {
    return startOutputSweeper({ journal, outputs: this.store, clock: this.#clock, log });
  }
}
