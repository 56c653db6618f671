/** What the conversations of a host have in common. */

import { HoldfastError } from "../../base/errors.ts";
import type { Log, Ports } from "../../base/ports.ts";
import type { Controller } from "../../controller/index.ts";
import type { JournalStore, SessionSeed } from "../../journal/index.ts";
import type {
  Authorizer,
  Environment,
  EnvironmentCatalog,
  HarnessCatalog,
  ModelCatalog,
  NoteStore,
  ToolExecutor,
} from "../../spi/index.ts";
import type { SessionDefaults } from "../creation.ts";
import { ENVIRONMENT_ANNOTATION, HOST_ANNOTATION, resolveHost, type ResolvedHost } from "../environment/index.ts";
import type { Channels } from "./channels.ts";
import type { ClientTools } from "./client-tools.ts";
import type { AgentLimits } from "./limits.ts";
import type { SchemaChecks } from "./schema-checks.ts";

export interface AgentHost {
  readonly journal: JournalStore;
  readonly controller: Controller;
  readonly harnesses: HarnessCatalog;
  readonly models: ModelCatalog;
  readonly environments: EnvironmentCatalog;
  readonly notes: NoteStore;
  readonly authorizer: Authorizer;
  readonly defaults: SessionDefaults;
  readonly channels: Channels;
  readonly clientTools: ClientTools;
  readonly checks: SchemaChecks;
  /** The host's own tools. */
  readonly tools: ToolExecutor | undefined;
  readonly ports: Ports;
  readonly log: Log;
  readonly limits: AgentLimits;
}

/** Names of the tools that this host can run now. */
export function hostToolNames({ tools }: Pick<AgentHost, "tools">): readonly string[] {
  return (tools?.list() ?? []).map(({ definition }) => definition.name);
}

/** Where a session's turns run: its environment as it is now, and the host that was chosen. */
export interface SessionPlace {
  readonly environment: Environment;
  readonly host: ResolvedHost;
}

/** Throws FAILED_PRECONDITION where the environment of a session, or its host there, is gone. */
export function placeOf(agentHost: Pick<AgentHost, "environments" | "tools">, { annotations, harness }: SessionSeed): SessionPlace {
  const environment = agentHost.environments.find(annotations[ENVIRONMENT_ANNOTATION] ?? "");
  if (environment === undefined) {
    throw new HoldfastError(
      "failed_precondition",
      "environment: the session's environment is gone; have it made again, or start another session",
    );
  }
  const asked = annotations[HOST_ANNOTATION] ?? "";
  if (asked !== "" && !Object.hasOwn(environment.hosts, asked)) {
    throw new HoldfastError("failed_precondition", "host: the session's host is gone from its environment; start another session");
  }
  // A session keeps the harness that it was created with.
  return { environment, host: { ...resolveHost(environment, asked, hostToolNames(agentHost)), harness } };
}
