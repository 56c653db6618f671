/**
 * The composition root: from a configuration to a server that answers.
 *
 * Invariants:
 * - A server that cannot be whole is not there at all: what was opened is closed again before the error is thrown.
 * - Shutting down loses nothing that was acknowledged. Running turns end within the grace or stay interrupted, which is a state that
 *   can be resumed; open streams end with a reason; the journal closes last.
 */

import { hostIdOf, newUuid, toHoldfastError, type Log, type Ports } from "../base/index.ts";
import {
  canExpire,
  createController,
  startExpirer,
  startSweeper,
  type Controller,
  type ControllerLimits,
  type Expirer,
  type Sweeper,
} from "../controller/index.ts";
import type { GrpcServer } from "../gateway/grpc/server.ts";
import type { Http1Server } from "../gateway/http1.ts";
import { GATEWAY_LIMITS, type GatewayLimits } from "../gateway/limits.ts";
import { listen, type Listener } from "../gateway/listener.ts";
import type { JournalStore } from "../journal/index.ts";
import type { ModelRoute } from "../models/index.ts";
import { createJsonLog, cryptoRandom, nodeDigest, systemClock } from "../node/index.ts";
import {
  ALLOW_ALL,
  ApprovalFeed,
  type AgentLimits,
  type RegistryLimits,
  type ServiceLimits,
  type TransferLimits,
} from "../service/index.ts";
import type { Authorizer, Harness, HarnessCatalog, ModelCatalog, ToolExecutor } from "../spi/index.ts";
import { refuseOpenDoor } from "./access.ts";
import { agentHarnesses } from "./agent-config.ts";
import { HostCaptures } from "./captures.ts";
import { openClientDoor, withNotes, type HostClientDoor } from "./client-door.ts";
import { DEFAULT_CONFIG, type ServerConfig } from "./config.ts";
import { frontDoors } from "./doors.ts";
import { openHostEnvironments, type HostEnvironments } from "./environments.ts";
import { HarnessServices } from "./harness-services.ts";
import { HostHealth } from "./health.ts";
import { openHostHarnesses, refuseHopelessDefault, refuseUnknownDefault, type HostHarnesses } from "./host-harnesses.ts";
import { OpenedParts } from "./opened-parts.ts";
import { openOperatorPort, type OperatorPort } from "./operator.ts";
import { HostOutputs } from "./outputs.ts";
import { builtInHarnesses, modelsOf, openJournal } from "./parts.ts";
import { startRecovery, type Recovery } from "./recovery.ts";
import { createRuntimes } from "./runtimes.ts";
import { startWebhooks, type Webhooks } from "./webhooks.ts";
import { openHostTools, type HostTools } from "./tools.ts";

/** How long calls that are nearly done may take at the end, before they are cut off. */
const CLOSE_GRACE_MS = 2_000;

/** What a program adds to a server that it starts. */
export interface ServerOptions {
  /** Harnesses beside `echo`, `chat` and `agent`, by name. */
  readonly harnesses?: Readonly<Record<string, Harness>> | undefined;
  /** Models beside the configured ones. */
  readonly models?: readonly ModelRoute[] | undefined;
  /** The tools that this server runs for harnesses, beside those of the configured MCP servers. Default: none. */
  readonly tools?: ToolExecutor | undefined;
  /** Default: everybody who is let in may do everything. */
  readonly authorizer?: Authorizer | undefined;
  /** Default: JSON lines on standard error at the configured level. */
  readonly log?: Log | undefined;
  /** Default: the machine's clock, randomness and hashing. */
  readonly ports?: Ports | undefined;
  readonly limits?: {
    readonly controller?: Partial<ControllerLimits> | undefined;
    readonly service?: Partial<ServiceLimits> | undefined;
    readonly agent?: Partial<AgentLimits> | undefined;
    readonly transfer?: Partial<TransferLimits> | undefined;
    readonly gateway?: Partial<GatewayLimits> | undefined;
    readonly registry?: Partial<RegistryLimits> | undefined;
    /** Environments that are made over the API. Default 1,000. */
    readonly environmentsMax?: number | undefined;
  };
}

/** A server that answers. Disposing it shuts it down with the configured grace. */
export interface RunningServer extends AsyncDisposable {
  /** Where it answers, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** Where the operator's port answers; undefined where it is off. */
  readonly operatorUrl: string | undefined;
  /** Shuts down: no new turns, up to `graceMs` for the running ones. Calling it again waits for the same end. */
  shutdown(options?: { readonly graceMs?: number | undefined }): Promise<void>;
}

/**
 * Starts a server; what `config` leaves out is as `DEFAULT_CONFIG` has it. Rejects with a HoldfastError that says what is wrong:
 * an address that is open without a token, a port that cannot be had, a journal that cannot be opened.
 */
export async function startServer(config: Partial<ServerConfig> = {}, given: ServerOptions = {}): Promise<RunningServer> {
  const whole = { ...DEFAULT_CONFIG, ...config };
  refuseOpenDoor(whole);
  const ports = given.ports ?? { clock: systemClock, random: cryptoRandom, digest: nodeDigest };
  const options = withAgents(whole, given, ports);
  const log = options.log ?? createJsonLog({ clock: ports.clock, level: whole.logLevel });
  refuseHopelessDefault({ config: whole, program: options.harnesses ?? {} }, whole.defaults.harness);
  const models = modelsOf(whole, ports, options.models ?? []);
  const feed = new ApprovalFeed();
  const journal = feed.over(await openJournal(whole, ports, log));
  try {
    await journal.ready();
    return await openOver(journal, { config: whole, options, ports, log, feed, models });
  } catch (error) {
    await journal[Symbol.asyncDispose]();
    throw error;
  }
}

/** The options, with the configured agents among the program's harnesses. */
function withAgents(config: ServerConfig, options: ServerOptions, { digest }: Ports): ServerOptions {
  const taken = [...Object.keys({ ...builtInHarnesses(), ...options.harnesses }), ...Object.keys(config.harnesses)];
  return { ...options, harnesses: { ...options.harnesses, ...agentHarnesses(config.agents, { digest, taken }) } };
}

/** The server over its journal. */
async function openOver(journal: JournalStore, parts: HostParts): Promise<RunningServer> {
  const opened = new OpenedParts();
  try {
    const host = await hostOver(journal, parts, opened);
    refuseUnknownDefault(host.harnesses, parts.config.defaults.harness);
    return await open(host);
  } catch (error) {
    const { log } = parts;
    await opened[Symbol.asyncDispose]().catch((fault: unknown) => {
      log.log("warn", "what was opened for a start that failed could not all be closed", { code: toHoldfastError(fault).code });
    });
    throw error;
  }
}

type HostParts = Pick<Host, "config" | "options" | "ports" | "log" | "feed" | "models">;

/** All that answers behind the doors. What it opens it gives to `opened`. */
async function hostOver(journal: JournalStore, parts: HostParts, opened: OpenedParts): Promise<Host> {
  const { config, options, ports, log, models } = parts;
  const services = new HarnessServices(config, ports, log);
  const captures = new HostCaptures({ config, ports });
  const outputs = new HostOutputs({ config, ports });
  const runtimeOf = createRuntimes({ config, captures, ports, log, grant: services.grant });
  const hostHarnesses = opened.add(await openHostHarnesses({ config, program: options.harnesses ?? {}, ports, runtimeOf }));
  const { catalog: harnesses } = hostHarnesses;
  const environmentsMax = options.limits?.environmentsMax;
  const environments = opened.add(await openHostEnvironments({ config, harnesses, models, ports, environmentsMax }));
  const tools = opened.add(await openHostTools({ config, program: options.tools, journal, harnesses, ports, log }));
  const clientDoor = opened.add(await openClientDoor({ config, options, tools: tools.executor, ports }));
  const controller = opened.add(
    createController({
      journal,
      harnesses,
      models,
      tools: tools.executor,
      turnTools: clientDoor.turnTools,
      outputs: outputs.store,
      policies: config.policies,
      budgets: config.budgets,
      ports,
      log,
      hostId: hostIdOf(newUuid(ports)),
      limits: options.limits?.controller,
      tokens: services.tokens,
      idle: { pauseAfterMs: config.pauseAfterIdleMs, suspendAfterMs: config.suspendAfterIdleMs },
    }),
  );
  void tools.spawn?.start(controller);
  return { ...parts, services, harnesses, captures, outputs, hostHarnesses, environments, tools, clientDoor, journal, controller };
}

interface Host {
  readonly config: ServerConfig;
  readonly options: ServerOptions;
  readonly ports: Ports;
  readonly log: Log;
  readonly feed: ApprovalFeed;
  readonly services: HarnessServices;
  readonly harnesses: HarnessCatalog;
  readonly captures: HostCaptures;
  readonly outputs: HostOutputs;
  readonly hostHarnesses: HostHarnesses;
  readonly environments: HostEnvironments;
  readonly models: ModelCatalog;
  readonly tools: HostTools;
  readonly clientDoor: HostClientDoor;
  readonly journal: JournalStore;
  readonly controller: Controller;
}

async function open(host: Host): Promise<RunningServer> {
  const { config, options, ports, log } = host;
  const limits = { ...GATEWAY_LIMITS, ...options.limits?.gateway };
  const health = new HostHealth(host.journal);
  const { grpc, http1 } = frontDoors(host, { health, limits });
  health.become("serving");
  const listener = await listen({
    ...config.listen,
    tls: config.tls,
    http1: (socket) => http1.accept(socket),
    http2: (socket) => grpc.accept(socket),
    clock: ports.clock,
    log,
    limits,
  });
  host.services.servedAt(listener.host, listener.port);
  const operator = await operatorOf(host, health, limits, listener);
  const url = `${config.tls === undefined ? "http" : "https"}://${urlHost(listener.host)}:${listener.port}`;
  log.log("info", "serving", { host: listener.host, port: listener.port, journal: host.journal.name });
  const recovery = startRecovery(config.recover, host);
  const sweepers = [sweeperOf(host), host.captures.startSweeper(host.journal, log), host.outputs.startSweeper(host.journal, log)];
  const expirer = expirerOf(host);
  const webhooks = webhooksOf(host);
  let ending: Promise<void> | undefined;
  const shutdown = (graceMs = config.shutdownGraceMs): Promise<void> => {
    ending ??= close({ ...host, health, grpc, http1, listener, operator, recovery, sweepers, expirer, webhooks }, graceMs);
    return ending;
  };
  return {
    url,
    host: listener.host,
    port: listener.port,
    operatorUrl: operator?.url,
    shutdown: ({ graceMs } = {}) => shutdown(graceMs),
    [Symbol.asyncDispose]: () => shutdown(),
  };
}

/** The operator's port. Where it cannot be had, the server's own is given back too. */
async function operatorOf(host: Host, health: HostHealth, limits: GatewayLimits, listener: Listener): Promise<OperatorPort | undefined> {
  const { config, options, ports, log, hostHarnesses } = host;
  try {
    return await openOperatorPort({
      config,
      beside: config.listen.port,
      harnesses: hostHarnesses,
      authorizer: options.authorizer ?? ALLOW_ALL,
      health,
      ports,
      log,
      limits,
      registryLimits: options.limits?.registry,
    });
  } catch (error) {
    await listener.close();
    throw error;
  }
}

interface OpenHost extends Host {
  readonly health: HostHealth;
  readonly grpc: GrpcServer;
  readonly http1: Http1Server;
  readonly listener: Listener;
  readonly operator: OperatorPort | undefined;
  readonly recovery: Recovery;
  readonly sweepers: readonly (Sweeper | undefined)[];
  readonly expirer: Expirer | undefined;
  readonly webhooks: Webhooks | undefined;
}

function sweeperOf({ config, ports, journal, clientDoor, log }: Host): Sweeper | undefined {
  const { retentionMs } = config;
  if (retentionMs === undefined) return undefined;
  return startSweeper({ journal: withNotes(journal, clientDoor.notes), clock: ports.clock, log, retentionMs });
}

/** Requests expire where the configuration says when. */
function expirerOf({ config, ports, journal, log, controller }: Host): Expirer | undefined {
  const policy = { rules: config.policies, ...config.approvals };
  return canExpire(policy) ? startExpirer({ journal, controller, clock: ports.clock, log, policy }) : undefined;
}

function webhooksOf({ config, ports, journal, feed, log }: Host): Webhooks | undefined {
  const { webhooks } = config.approvals;
  const folder = config.store.kind === "sqlite" ? config.store.folder : undefined;
  return webhooks.length === 0 ? undefined : startWebhooks({ webhooks, journal, feed, folder, ports, log });
}

async function close(host: OpenHost, graceMs: number): Promise<void> {
  const { controller, health, grpc, http1, listener, operator, hostHarnesses, environments, tools, clientDoor, journal, log } = host;
  const { recovery, sweepers, expirer, webhooks } = host;
  log.log("info", "shutting down", { graceMs });
  health.become("draining");
  const { untilClientIsMissed } = clientDoor;
  const turns = controller.shutdown({ graceMs, untilClientIsMissed });
  await Promise.all([recovery.stop(), ...sweepers.map((sweeper) => sweeper?.stop()), expirer?.stop(), turns]);
  // What the last turns asked is told as well.
  await webhooks?.stop();
  health.close();
  listener.stop();
  operator?.stop();
  await Promise.all([grpc.close(CLOSE_GRACE_MS), http1.close(CLOSE_GRACE_MS), operator?.close(CLOSE_GRACE_MS)]);
  await listener.close();
  await hostHarnesses[Symbol.asyncDispose]();
  await tools[Symbol.asyncDispose]();
  await environments[Symbol.asyncDispose]();
  await clientDoor[Symbol.asyncDispose]();
  await journal[Symbol.asyncDispose]();
  log.log("info", "shut down");
}

function urlHost(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
