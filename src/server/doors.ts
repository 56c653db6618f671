/** The front doors of a host: every service once, behind gRPC and REST. */

import type { Log, Ports } from "../base/index.ts";
import type { Controller } from "../controller/index.ts";
import { createGrpcServer, type GrpcServer } from "../gateway/grpc/server.ts";
import { createHttp1Server, type Http1Server } from "../gateway/http1.ts";
import type { GatewayLimits } from "../gateway/limits.ts";
import { createRestApp } from "../gateway/rest/index.ts";
import type { JournalStore } from "../journal/index.ts";
import { nodeSignatures } from "../node/index.ts";
import {
  ALLOW_ALL,
  createEnvironmentsService,
  createFeedbackService,
  createHarnessHostService,
  createJournalService,
  createSessionsService,
  createTasksService,
  createToolCallsService,
  createTurnsService,
  type ApprovalFeed,
} from "../service/index.ts";
import type { HarnessCatalog, ModelCatalog } from "../spi/index.ts";
import { authenticateBy } from "./access.ts";
import type { HostClientDoor } from "./client-door.ts";
import type { ServerConfig } from "./config.ts";
import type { HostEnvironments } from "./environments.ts";
import type { HarnessServices } from "./harness-services.ts";
import type { HostHealth } from "./health.ts";
import type { ServerOptions } from "./start.ts";
import type { HostTools } from "./tools.ts";

/** What stands behind the doors of a host. */
export interface DoorHost {
  readonly config: ServerConfig;
  readonly options: Pick<ServerOptions, "authorizer" | "limits">;
  readonly ports: Ports;
  readonly log: Log;
  readonly feed: ApprovalFeed;
  readonly services: HarnessServices;
  readonly harnesses: HarnessCatalog;
  readonly models: ModelCatalog;
  readonly environments: HostEnvironments;
  readonly tools: HostTools;
  readonly clientDoor: HostClientDoor;
  readonly journal: JournalStore;
  readonly controller: Controller;
}

/** The front doors over the same handlers. */
export function frontDoors(
  host: DoorHost,
  { health, limits }: { readonly health: HostHealth; readonly limits: GatewayLimits },
): { readonly grpc: GrpcServer; readonly http1: Http1Server } {
  const { config, ports, log, services } = host;
  const shared = { ...servicesOf(host), health, log, limits, authenticate: authenticateBy(config.token, ports.digest) };
  const grpc = createGrpcServer({ ...shared, harnessHost: createHarnessHostService(), authenticateHarness: services.authenticate });
  const rest = createRestApp({ ...shared, loopbackOnly: config.token === undefined, tokenKeys: services.tokens?.keys });
  return { grpc, http1: createHttp1Server(rest, limits) };
}

/** What both doors serve. */
function servicesOf(host: DoorHost) {
  const { config, options, ports, services, harnesses, models, controller, journal, log } = host;
  const limits = options.limits?.service;
  const shared = { journal, controller, harnesses, ports, authorizer: options.authorizer ?? ALLOW_ALL, limits };
  const tools = host.tools.executor;
  const environments = host.environments.library;
  const tasks = createTasksService({ ...shared, defaults: config.defaults, environments, tools });
  return {
    sessions: createSessionsService({ ...shared, defaults: config.defaults }),
    journal: createJournalService({
      ...shared,
      tools,
      signer: config.signer,
      signatures: nodeSignatures,
      transferLimits: options.limits?.transfer,
      canMintTokens: services.tokens !== undefined,
    }),
    toolCalls: createToolCallsService({ ...shared, feed: host.feed }),
    turns: createTurnsService(shared),
    environments: createEnvironmentsService({ ...shared, ...host.environments, digest: ports.digest }),
    tasks,
    feedback: createFeedbackService({ ...shared, notes: host.clientDoor.notes }),
    agent: { ...host.clientDoor.service({ ...shared, models, environments, log }), watchTeam: tasks.watchTeam },
  };
}
