/** The interactive door: `roz.v1.AgentService.StreamSession` over a journal and a controller. */

import type { SessionUid } from "../../base/ids.ts";
import type { Log, Ports } from "../../base/ports.ts";
import type { Controller } from "../../controller/index.ts";
import type { JournalStore } from "../../journal/index.ts";
import type { Authorizer, EnvironmentCatalog, HarnessCatalog, ModelCatalog, NoteStore, ToolExecutor, TurnTools } from "../../spi/index.ts";
import type { AgentService } from "../contract.ts";
import type { SessionDefaults } from "../creation.ts";
import { Channels } from "./channels.ts";
import { ClientTools } from "./client-tools.ts";
import { AGENT_LIMITS, type AgentLimits } from "./limits.ts";
import { SchemaChecks, type SchemaCompiler } from "./schema-checks.ts";
import { streamSession } from "./stream-session.ts";

/** What a host's clients have in common, before there is a controller: its turns have tools that clients run. */
export interface ClientDoorOptions {
  readonly clock: Ports["clock"];
  /** Makes checks by JSON Schemas. */
  readonly compile: SchemaCompiler;
  /** The host's own tools. */
  readonly tools?: ToolExecutor | undefined;
  readonly limits?: Partial<AgentLimits> | undefined;
}

/** What the service is made of. */
export interface AgentServiceOptions {
  readonly journal: JournalStore;
  /** Made with the door's `turnTools`. */
  readonly controller: Controller;
  readonly harnesses: HarnessCatalog;
  readonly models: ModelCatalog;
  readonly environments: EnvironmentCatalog;
  readonly notes: NoteStore;
  readonly authorizer: Authorizer;
  readonly ports: Ports;
  readonly log: Log;
  /** What a session takes where neither client nor environment say. */
  readonly defaults: SessionDefaults;
}

/** The interactive door of one host. */
export class ClientDoor {
  readonly #limits: AgentLimits;
  readonly #channels: Channels;
  readonly #checks: SchemaChecks;
  readonly #clientTools: ClientTools;
  readonly #tools: ToolExecutor | undefined;

  constructor({ clock, compile, tools, limits }: ClientDoorOptions) {
    this.#limits = { ...AGENT_LIMITS, ...limits };
    this.#channels = new Channels(clock);
    this.#checks = new SchemaChecks(compile);
    this.#tools = tools;
    this.#clientTools = new ClientTools({ channels: this.#channels, checks: this.#checks, clock, limits: this.#limits, hostTools: tools });
  }

  /** The tools that clients run, for the host's controller. */
  get turnTools(): TurnTools {
    return this.#clientTools.turnTools;
  }

  /** Resolves when a turn of the session waits for a client that is not there, and when the signal fires in any case. */
  untilClientIsMissed(session: SessionUid, signal: AbortSignal): Promise<void> {
    return this.#channels.untilUnheard(session, signal);
  }

  /** The handler over the controller that has them. */
  service(options: AgentServiceOptions): Pick<AgentService, "streamSession"> {
    const host = {
      ...options,
      tools: this.#tools,
      channels: this.#channels,
      clientTools: this.#clientTools,
      checks: this.#checks,
      limits: this.#limits,
    };
    return { streamSession: (requests, context) => streamSession(host, requests, context) };
  }
}
