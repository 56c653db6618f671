/** A server inside the command: the same server as `holdfast serve`, on a loopback port of its own, ended with the command. */

import { HoldfastError } from "../base/errors.ts";
import { createJsonLog, systemClock } from "../node/index.ts";
import { SETTINGS } from "../server/settings.ts";
import type { Environment } from "../server/index.ts";
import { HintedError } from "./perform.ts";

export interface EmbeddedServer extends AsyncDisposable {
  readonly address: string;
}

/** The folder that an embedded server would use. */
export function dataFolder(environment: Environment): string {
  if (environment[SETTINGS.store.env] === "memory") return "memory";
  return environment[SETTINGS.data.env] ?? SETTINGS.data.default;
}

/**
 * Starts it. It is configured by the environment like any other, except that it listens to nobody else and so needs neither TLS
 * nor a token, and logs errors only. `graceMs` is asked when it ends: how long turns that still run may go on.
 */
export async function startEmbedded(environment: Environment, graceMs: () => number): Promise<EmbeddedServer> {
  const { readConfig, startServer } = await import("../server/index.ts");
  const config = readConfig({ listen: "127.0.0.1:0" }, environment);
  const level = environment["HOLDFAST_LOG_LEVEL"] === undefined ? "error" : config.logLevel;
  const log = createJsonLog({ clock: systemClock, level });
  try {
    const server = await startServer({ ...config, tls: undefined, token: undefined }, { log });
    return { address: server.url, [Symbol.asyncDispose]: () => server.shutdown({ graceMs: graceMs() }) };
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.code !== "unavailable") throw error;
    const hint = "speak to the server that has it with --server ADDRESS (or HOLDFAST_SERVER); HOLDFAST_DATA names another folder";
    throw new HintedError(error, hint);
  }
}
