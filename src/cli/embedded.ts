/** A server inside the command: the same server as `holdfast serve`, on a loopback port of its own, ended with the command. */

import { createJsonLog, systemClock } from "../node/index.ts";
import { SETTINGS } from "../server/settings.ts";
import type { Environment } from "../server/index.ts";

export interface EmbeddedServer extends AsyncDisposable {
  readonly address: string;
}

/** The folder that an embedded server would use; undefined when it would keep its journal in memory. */
export function dataFolder(environment: Environment): string | undefined {
  if (environment[SETTINGS.store.env]?.trim() === "memory") return undefined;
  const named = environment[SETTINGS.data.env]?.trim() ?? "";
  return named === "" ? SETTINGS.data.default : named;
}

/**
 * Starts it. It is configured by the environment like any other, except that it listens to nobody else and so needs neither TLS
 * nor a token, and logs errors only. Throws UNAVAILABLE while another process has the data folder.
 * `graceMs` is asked when it ends: how long turns that still run may go on.
 */
export async function startEmbedded(environment: Environment, graceMs: () => number): Promise<EmbeddedServer> {
  const { readConfig, startServer } = await import("../server/index.ts");
  const config = readConfig({ listen: "127.0.0.1:0" }, environment);
  const level = environment["HOLDFAST_LOG_LEVEL"] === undefined ? "error" : config.logLevel;
  const log = createJsonLog({ clock: systemClock, level });
  const server = await startServer({ ...config, tls: undefined, token: undefined }, { log });
  return { address: server.url, [Symbol.asyncDispose]: () => server.shutdown({ graceMs: graceMs() }) };
}
