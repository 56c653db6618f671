/** The interactive door of a server: what it keeps beside sessions, the tools that clients run, and its service. */

import type { Log, Ports, SessionUid } from "../base/index.ts";
import type { Controller } from "../controller/index.ts";
import type { JournalStore } from "../journal/index.ts";
import { ClientDoor, type AgentService } from "../service/index.ts";
import type { Authorizer, EnvironmentCatalog, HarnessCatalog, ModelCatalog, NoteStore, ToolExecutor, TurnTools } from "../spi/index.ts";
import { createMemoryNotes, openSqliteNotes } from "../stores/notes/index.ts";
import { compileSchema } from "../tools/index.ts";
import type { ServerConfig } from "./config.ts";
import type { ServerOptions } from "./start.ts";

/** What the door needs before there is a controller. */
export interface HostClientDoorOptions {
  readonly config: ServerConfig;
  readonly options: ServerOptions;
  /** The host's own tools. */
  readonly tools: ToolExecutor | undefined;
  readonly ports: Ports;
}

/** What its service needs. */
export interface ClientServiceParts {
  readonly journal: JournalStore;
  readonly controller: Controller;
  readonly harnesses: HarnessCatalog;
  readonly models: ModelCatalog;
  readonly environments: EnvironmentCatalog;
  readonly authorizer: Authorizer;
  readonly log: Log;
}

/** The door. Disposing of it closes its notes. */
export interface HostClientDoor extends AsyncDisposable {
  readonly notes: NoteStore;
  /** The tools that clients run, for the controller. */
  readonly turnTools: TurnTools;
  /** See `ClientDoor`. */
  readonly untilClientIsMissed: (session: SessionUid, signal: AbortSignal) => Promise<void>;
  readonly service: (parts: ClientServiceParts) => Pick<AgentService, "streamSession">;
}

/** Opens the door's notes; the data folder must be there. */
export async function openClientDoor({ config, options, tools, ports }: HostClientDoorOptions): Promise<HostClientDoor> {
  const { store, defaults } = config;
  const notes = store.kind === "memory" ? createMemoryNotes() : openSqliteNotes({ folder: store.folder });
  const door = new ClientDoor({ clock: ports.clock, compile: compileSchema, tools, limits: options.limits?.agent });
  return {
    notes,
    turnTools: door.turnTools,
    untilClientIsMissed: (session, signal) => door.untilClientIsMissed(session, signal),
    service: (parts) => door.service({ ...parts, notes, ports, defaults }),
    [Symbol.asyncDispose]: () => notes[Symbol.asyncDispose](),
  };
}

/**
 * The journal as a sweeper has it: what is beside a session goes with the session. It stays as long as children share the session's records: a fork
 * without notes of its own has those of its nearest ancestor.
 */
export function withNotes(journal: JournalStore, notes: NoteStore): Pick<JournalStore, "list" | "reclaim"> {
  return {
    list: (request) => journal.list(request),
    reclaim: async (session, options) => {
      const outcome = await journal.reclaim(session, options);
      if (outcome.kind === "reclaimed") await notes.remove(session);
      return outcome;
    },
  };
}
