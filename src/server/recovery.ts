/** What a start does with the turns that an earlier one left open. */

import { toHoldfastError, type Log } from "../base/index.ts";
import { resumeInterrupted, type Controller } from "../controller/index.ts";
import type { JournalStore } from "../journal/index.ts";
import type { HostClientDoor } from "./client-door.ts";
import type { ServerConfig } from "./config.ts";

/** Turns that are resumed at once when a server starts. */
const RECOVERED_AT_ONCE_MAX = 16;

/** The start's look at the turns that an earlier one left open. */
export interface Recovery {
  /** Takes up no further turn, and resolves when those that it took up have stopped or wait for their client. */
  stop(): Promise<void>;
}

/** What recovery needs of its server. */
export interface RecoveryContext {
  readonly journal: JournalStore;
  readonly controller: Controller;
  readonly log: Log;
  readonly clientDoor: Pick<HostClientDoor, "untilClientIsMissed">;
}

/** Begins after the port is open: nobody waits for turns that may take long. */
export function startRecovery(recover: ServerConfig["recover"], { journal, controller, log, clientDoor }: RecoveryContext): Recovery {
  const stopping = new AbortController();
  if (recover === "leave") return { stop: async () => undefined };
  const { untilClientIsMissed } = clientDoor;
  const { signal } = stopping;
  const resuming = resumeInterrupted({ journal, controller, log, signal, concurrencyMax: RECOVERED_AT_ONCE_MAX, untilClientIsMissed }).then(
    (report) => log.log("info", "looked for interrupted turns", { ...report }),
    (error: unknown) => log.log("error", "interrupted turns could not be looked for", { code: toHoldfastError(error).code }),
  );
  return {
    stop: async () => {
      stopping.abort();
      await resuming;
    },
  };
}
