/** What a start does with what an earlier one left: turns that are open, tasks that it had not begun. */

import { toHoldfastError, type Log, type Ports } from "../base/index.ts";
import { resumeInterrupted, type Controller } from "../controller/index.ts";
import type { JournalStore } from "../journal/index.ts";
import { dropUnbegunTasks } from "../service/index.ts";
import type { HostClientDoor } from "./client-door.ts";
import type { ServerConfig } from "./config.ts";

/** Turns that are resumed at once when a server starts. */
const RECOVERED_AT_ONCE_MAX = 16;

/** The start's look at what an earlier one left. */
export interface Recovery {
  /** Takes up no further turn, and resolves when those that it took up have stopped or wait for their client. */
  stop(): Promise<void>;
}

/** What recovery needs of its server. */
export interface RecoveryContext {
  readonly journal: JournalStore;
  readonly controller: Controller;
  readonly ports: Pick<Ports, "clock">;
  readonly log: Log;
  readonly clientDoor: Pick<HostClientDoor, "untilClientIsMissed">;
}

/** Begins after the port is open: nobody waits for turns that may take long. */
export function startRecovery(recover: ServerConfig["recover"], context: RecoveryContext): Recovery {
  const stopping = new AbortController();
  const resuming = recover === "leave" ? undefined : resume(context, stopping.signal);
  const dropping = drop(context, stopping.signal);
  return {
    stop: async () => {
      stopping.abort();
      await Promise.all([resuming, dropping]);
    },
  };
}

async function resume({ journal, controller, log, clientDoor }: RecoveryContext, signal: AbortSignal): Promise<void> {
  const { untilClientIsMissed } = clientDoor;
  try {
    const options = { journal, controller, log, signal, concurrencyMax: RECOVERED_AT_ONCE_MAX, untilClientIsMissed };
    log.log("info", "looked for interrupted turns", { ...(await resumeInterrupted(options)) });
  } catch (error) {
    log.log("error", "interrupted turns could not be looked for", { code: toHoldfastError(error).code });
  }
}

async function drop({ journal, controller, ports, log }: RecoveryContext, signal: AbortSignal): Promise<void> {
  try {
    const dropped = await dropUnbegunTasks({ journal, controller, clock: ports.clock, signal });
    if (dropped > 0) log.log("info", "deleted tasks whose turn had never begun", { dropped });
  } catch (error) {
    if (!signal.aborted) log.log("warn", "tasks whose turn had never begun could not be looked for", { code: toHoldfastError(error).code });
  }
}
