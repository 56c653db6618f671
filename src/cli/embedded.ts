/** A server inside the command: the same server as `holdfast serve`, on a loopback port of its own, ended with the command. */

import { createJsonLog, systemClock } from "../node/index.ts";
import { readConfigFile } from "../server/config-file.ts";
import { SETTINGS, type SettingName } from "../server/settings.ts";
import type { Environment } from "../server/index.ts";

export interface EmbeddedServer extends AsyncDisposable {
  readonly address: string;
}

/** The folder that an embedded server would use; undefined when it would keep its journal in memory. */
export function dataFolder(environment: Environment): string | undefined {
  const path = given(environment, "config");
  const inFile = path === undefined ? undefined : readConfigFile(path, SETTINGS.config.env).settings;
  const store = given(environment, "store") ?? inFile?.get("store");
  return store === "memory" ? undefined : (given(environment, "data") ?? inFile?.get("data") ?? SETTINGS.data.default);
}

function given(environment: Environment, name: SettingName): string | undefined {
  const value = environment[SETTINGS[name].env]?.trim();
  return value === "" ? undefined : value;
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
  const registry = { listen: "off", token: undefined } as const;
  const server = await startServer({ ...config, tls: undefined, token: undefined, registry }, { log });
  return { address: server.url, [Symbol.asyncDispose]: () => server.shutdown({ graceMs: graceMs() }) };
}
