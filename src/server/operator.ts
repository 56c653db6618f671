/** The operator's port: where harnesses are registered. It is apart from the server's own, with a token of its own. */

import type { Log, Ports } from "../base/index.ts";
import { createOperatorServer } from "../gateway/grpc/operator.ts";
import type { GatewayLimits } from "../gateway/limits.ts";
import { listen } from "../gateway/listener.ts";
import { createHarnessRegistryService, type RegistryLimits } from "../service/index.ts";
import type { Authorizer } from "../spi/index.ts";
import { authenticateBy, isLoopback } from "./access.ts";
import type { ServerConfig } from "./config.ts";
import type { HostHealth } from "./health.ts";
import type { HostHarnesses } from "./host-harnesses.ts";

export interface OperatorPortOptions {
  readonly config: Pick<ServerConfig, "registry" | "tls" | "token">;
  /** The port of session clients. */
  readonly beside: number;
  readonly harnesses: HostHarnesses;
  readonly authorizer: Authorizer;
  readonly health: HostHealth;
  readonly ports: Ports;
  readonly log: Log;
  readonly limits: GatewayLimits;
  readonly registryLimits: Partial<RegistryLimits> | undefined;
}

/** An open operator's port. */
export interface OperatorPort {
  readonly url: string;
  /** Takes no new connections. */
  stop(): void;
  /** Ends open calls within the grace, and frees the port. */
  close(graceMs: number): Promise<void>;
}

/** Opens it; undefined where it is off. Rejects as `listen` does, by the name of its own setting. */
export async function openOperatorPort(options: OperatorPortOptions): Promise<OperatorPort | undefined> {
  const { config, harnesses, authorizer, health, ports, log, limits } = options;
  const address = operatorAddress(config.registry.listen, options.beside);
  if (address === undefined) return undefined;
  const { catalog, registry } = harnesses;
  const service = createHarnessRegistryService({ registry, harnesses: catalog, authorizer, ports, limits: options.registryLimits });
  const authenticate = authenticateBy(config.registry.token, ports.digest, "operator");
  // On this machine nobody needs to know it by a certificate, which would be for another name.
  const tls = isLoopback(address.host) ? undefined : config.tls;
  const grpc = createOperatorServer({ registry: service, health, authenticate, log, limits });
  const listener = await listen({
    ...address,
    setting: "registry.listen",
    tls,
    // A browser speaks HTTP/1.1 to an address that a page names: it gets no answer here.
    http1: (socket) => void socket.destroy(),
    http2: (socket) => grpc.accept(socket),
    clock: ports.clock,
    log,
    limits,
  });
  const { host, port } = listener;
  log.log("info", "serving the operator", { host, port });
  if (config.token !== undefined && config.registry.token === undefined) {
    log.log("warn", "the operator's port asks for no token: every process of this machine may register; set HOLDFAST_OPERATOR_TOKEN");
  }
  return {
    url: `${tls === undefined ? "http" : "https"}://${host.includes(":") ? `[${host}]` : host}:${port}`,
    stop: () => listener.stop(),
    async close(graceMs) {
      await grpc.close(graceMs);
      await listener.close();
    },
  };
}

const PORT_MAX = 65_535;

/** Where the operator's port is: beside the server's own, unless it is said. A port that the system chose has another such beside it. */
export function operatorAddress(
  listenAt: ServerConfig["registry"]["listen"],
  serverPort: number,
): { readonly host: string; readonly port: number } | undefined {
  if (listenAt === "off") return undefined;
  if (listenAt !== "beside") return listenAt;
  return { host: "127.0.0.1", port: serverPort === 0 || serverPort === PORT_MAX ? 0 : serverPort + 1 };
}
