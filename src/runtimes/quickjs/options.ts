/** What the `quickjs` runtime is made of. */

import type { Log, Ports, SessionUid } from "../../base/index.ts";
import type { BlobStore } from "../../spi/index.ts";
import type { QuickJsLimits } from "./limits.ts";

/** The runtime serves one harness. */
export interface QuickJsRuntimeOptions {
  /** The harness as one script, as `bundleHarness` makes it. Captures are pinned to its SHA-256. */
  readonly script: string;
  /** Where captures are kept. */
  readonly blobs: BlobStore;
  readonly ports: Ports;
  readonly limits?: Partial<QuickJsLimits> | undefined;
  readonly log?: Log | undefined;
  /** Threads that share the VMs of well-behaved sessions. Default 2; one more is for slow ones. */
  readonly workers?: number | undefined;
  /** A session that once computes for so long without waiting shares its thread with its like from then on. Default 20 ms. */
  readonly slowSliceCpuMs?: number | undefined;
  /** A thread that answers nothing for so long is ended, with all VMs on it. Default 10,000 ms. */
  readonly hungAfterMs?: number | undefined;
  /** Is given what guests print: the words of a harness's author, and whatever they print of a session. Default: it is dropped. */
  readonly onConsole?: ((session: SessionUid, text: string) => void) | undefined;
}
