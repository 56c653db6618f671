/**
 * Where a host keeps the memory that its runtimes capture: the folder `captures` beside the journal, apart from other large payloads, since
 * what no session needs is removed from it.
 *
 * Invariant: a capture that an earlier version stored among other payloads (`blobs`) is found there. What is named anew of it is moved here;
 * from there nothing is removed.
 */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { toHoldfastError, type Log, type Ports } from "../base/index.ts";
import { startCaptureSweeper, type Sweeper } from "../controller/index.ts";
import type { JournalStore } from "../journal/index.ts";
import { gvisorCaptureParts } from "../runtimes/gvisor/index.ts";
import { quickJsCaptureParts } from "../runtimes/quickjs/index.ts";
import type { BlobStore, CaptureParts } from "../spi/index.ts";
import { createMemoryBlobStore, openFileBlobStore } from "../stores/blobs/index.ts";
import type { ServerConfig } from "./config.ts";

/** Of every runtime that stores captures here, configured or not: a session may have been made before its harness was taken away. */
const KINDS: readonly CaptureParts[] = [quickJsCaptureParts, gvisorCaptureParts];

/** What a host's captures are opened with. */
export interface HostCapturesOptions {
  readonly config: Pick<ServerConfig, "store">;
  readonly ports: Pick<Ports, "clock">;
}

/** The captures of a host. Nothing is made on the disk before there is one. */
export class HostCaptures {
  readonly #options: HostCapturesOptions;
  #store: BlobStore | undefined;

  constructor(options: HostCapturesOptions) {
    this.#options = options;
  }

  /** Where they are stored. Throws FAILED_PRECONDITION where that cannot be. */
  get store(): BlobStore {
    return (this.#store ??= openCaptures(this.#options));
  }

  /** Sweeps them; undefined where there can be none. */
  startSweeper(journal: JournalStore, log: Log): Sweeper | undefined {
    const { config, ports } = this.#options;
    const wasThere = config.store.kind === "sqlite" && existsSync(folderOf(config.store.folder));
    if (this.#store === undefined && !wasThere) return undefined;
    try {
      return startCaptureSweeper({ journal, captures: this.store, kinds: KINDS, clock: ports.clock, log });
    } catch (error) {
      // No harness here needs them, or the host would not have come so far.
      log.log("warn", "captures cannot be swept", { code: toHoldfastError(error).code });
      return undefined;
    }
  }
}

function folderOf(dataFolder: string): string {
  return join(dataFolder, "captures");
}

function openCaptures({ config: { store }, ports: { clock } }: HostCapturesOptions): BlobStore {
  if (store.kind === "memory") return createMemoryBlobStore({ clock });
  const captures = openFileBlobStore({ folder: folderOf(store.folder), clock });
  const earlier = join(store.folder, "blobs");
  return existsSync(earlier) ? withEarlier(captures, openFileBlobStore({ folder: earlier, clock })) : captures;
}

/** A store that also has what `earlier` has; what is renewed is in the store from then on. */
function withEarlier(store: BlobStore, earlier: BlobStore): BlobStore {
  return {
    put: (bytes, options) => store.put(bytes, options),
    get: async (name, options) => (await store.get(name, options)) ?? earlier.get(name, options),
    renew: async (name, options) => {
      if (await store.renew(name, options)) return true;
      const bytes = await earlier.get(name, options);
      if (bytes !== undefined) await store.put(bytes, options);
      return bytes !== undefined;
    },
    list: (options) => store.list(options),
    delete: (name, options) => store.delete(name, options),
  };
}
