/**
 * The environments of a host: `default`, those of its configuration and those that were made over the API.
 *
 * Invariant: what the configuration and a call say is found valid against this host: its harnesses and models are there. What is stored was
 * found so once, and is given back as it is; a harness that has gone since is told to whoever starts a session.
 */

import { HoldfastError, invalidArgument, type Ports } from "../base/index.ts";
import { openEnvironmentLibrary, plainEnvironment, type EnvironmentLibrary } from "../service/index.ts";
import {
  DEFAULT_ENVIRONMENT,
  servedNames,
  type Environment,
  type EnvironmentStore,
  type HarnessCatalog,
  type ModelCatalog,
  type StoredEnvironment,
} from "../spi/index.ts";
import { createMemoryEnvironments, openSqliteEnvironments } from "../stores/environments/index.ts";
import { keyPath } from "./config-value.ts";
import type { ServerConfig } from "./config.ts";
import { API_WORDS, CONFIG_WORDS, environmentOf } from "./environment-definition.ts";

/** A host's environments. Disposing of them closes their store. */
export interface HostEnvironments extends AsyncDisposable {
  readonly library: EnvironmentLibrary;
  /** The environment of a definition that came over the API. Throws INVALID_ARGUMENT that names the field below `environment`. */
  readonly read: (id: string, definition: Readonly<Record<string, unknown>>) => Environment;
}

export interface HostEnvironmentsOptions {
  readonly config: Pick<ServerConfig, "store" | "environments">;
  readonly harnesses: HarnessCatalog;
  readonly models: ModelCatalog;
  readonly ports: Ports;
  /** Default ENVIRONMENTS_MAX. */
  readonly environmentsMax?: number | undefined;
}

/** Opens them; the data folder must be there. Rejects with a HoldfastError that names the key which is wrong. */
export async function openHostEnvironments(options: HostEnvironmentsOptions): Promise<HostEnvironments> {
  const { config, ports, environmentsMax } = options;
  const configured = configuredEnvironments(options);
  const store = openStore(config.store);
  try {
    const library = await openEnvironmentLibrary({ configured, store, restore, ports, environmentsMax });
    const read: HostEnvironments["read"] = (id, definition) => {
      const at = "environment";
      return servedHere(environmentOf(id, { at, value: definition }, API_WORDS), at, options);
    };
    return { library, read, [Symbol.asyncDispose]: () => store[Symbol.asyncDispose]() };
  } catch (error) {
    await store[Symbol.asyncDispose]();
    throw error;
  }
}

function configuredEnvironments(options: HostEnvironmentsOptions): readonly Environment[] {
  const configured = Object.entries(options.config.environments).map(([id, definition]) => {
    const at = keyPath("environments", id);
    return servedHere(environmentOf(id, { at, value: definition }, CONFIG_WORDS), at, options);
  });
  return configured.some(({ id }) => id === DEFAULT_ENVIRONMENT) ? configured : [plainEnvironment(), ...configured];
}

function openStore(store: ServerConfig["store"]): EnvironmentStore {
  return store.kind === "memory" ? createMemoryEnvironments() : openSqliteEnvironments({ folder: store.folder });
}

function restore({ id, definition }: StoredEnvironment): Environment {
  try {
    return environmentOf(id, { at: keyPath("environments", id), value: JSON.parse(definition) }, CONFIG_WORDS);
  } catch (error) {
    throw new HoldfastError("data_loss", "environments: one cannot be read; restore the file from a copy", { cause: error });
  }
}

/** Throws INVALID_ARGUMENT for a harness or a model that this host does not have. */
function servedHere(environment: Environment, at: string, { harnesses, models }: HostEnvironmentsOptions): Environment {
  const { harness, model, models: tiers, hosts } = environment;
  const hostHarnesses = Object.entries(hosts).map(([id, host]) => [host.harness, `${keyPath(`${at}.hosts`, id)}.harness`] as const);
  for (const [name, path] of [[harness, `${at}.harness`] as const, ...hostHarnesses]) {
    if (name === undefined || harnesses.find(name) !== undefined) continue;
    throw invalidArgument(path, `must be a harness that this server has: ${servedNames(harnesses)}`);
  }
  const tierModels = Object.entries(tiers).map(([tier, id]) => [id, keyPath(`${at}.models`, tier)] as const);
  const own = model === "" || Object.hasOwn(tiers, model) ? [] : [[model, `${at}.model`] as const];
  for (const [id, path] of [...own, ...tierModels]) {
    if (models.providerOf(id) === undefined) throw invalidArgument(path, "must be a model that this host serves");
  }
  return environment;
}
