/**
 * The harnesses of a host: the built-in ones, those of the program that started it, those of its config file, and the registered ones.
 *
 * Invariants:
 * - Each name has one meaning. A name of the config file or the program that is built in, or that was registered, is refused at start;
 *   a registered name that became a built-in one keeps its meaning.
 * - What was started of them ends with the host.
 */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { HoldfastError, invalidArgument, type Ports } from "../base/index.ts";
import { HarnessSpecSchema } from "../gen/agentsessions/v1/harness_registry_pb.ts";
import {
  createHarnessCatalog,
  createLiveCatalog,
  createPlacedHarness,
  openHarnessRegistry,
  unservableEntry,
  type HarnessRegistry,
  type PlacedHarnessOptions,
  type StaticHarness,
} from "../placement/index.ts";
import {
  servedNames,
  type Harness,
  type HarnessCatalog,
  type HarnessEntry,
  type RegisteredHarness,
  type RegistrationStore,
  type Runtime,
} from "../spi/index.ts";
import { createMemoryRegistrations, openSqliteRegistrations, REGISTRY_FILE } from "../stores/registry/index.ts";
import type { ServerConfig } from "./config.ts";
import type { HarnessConfig } from "./harness-config.ts";
import { builtInHarnesses } from "./parts.ts";
import type { RuntimeOf } from "./runtimes.ts";

/** A host's harnesses. Disposing of them ends what runs of them. */
export interface HostHarnesses extends AsyncDisposable {
  readonly catalog: HarnessCatalog;
  readonly registry: HarnessRegistry;
}

export interface HostHarnessesOptions {
  readonly config: Pick<ServerConfig, "store" | "harnesses">;
  /** Those of the program that starts the host. */
  readonly program: Readonly<Record<string, Harness>>;
  readonly ports: Ports;
  readonly runtimeOf: RuntimeOf;
}

/** The names that a host has before it is opened. */
function staticNames({ config, program }: Pick<HostHarnessesOptions, "config" | "program">): readonly string[] {
  return [...Object.keys({ ...builtInHarnesses(), ...program }), ...Object.keys(config.harnesses)];
}

/**
 * Throws INVALID_ARGUMENT for a default that nobody can serve: no harness of the host's own, where nothing was ever registered. A slip of
 * the pen so makes no data folder.
 */
export function refuseHopelessDefault(options: Pick<HostHarnessesOptions, "config" | "program">, name: string): void {
  const { store } = options.config;
  const names = staticNames(options);
  if (names.includes(name) || (store.kind === "sqlite" && existsSync(join(store.folder, REGISTRY_FILE)))) return;
  throw unknownDefault(names.join(", "));
}

/** Throws INVALID_ARGUMENT for a default that is not in the catalog. */
export function refuseUnknownDefault(catalog: HarnessCatalog, name: string): void {
  if (catalog.find(name) === undefined) throw unknownDefault(servedNames(catalog));
}

function unknownDefault(names: string): HoldfastError {
  return invalidArgument("harness", `the default must be one that this server has: ${names}`);
}

/** Opens them; the data folder must be there. Rejects with a HoldfastError that names the harness which cannot be had. */
export async function openHostHarnesses(options: HostHarnessesOptions): Promise<HostHarnesses> {
  const owned = new Owned();
  try {
    return await openWith(options, owned);
  } catch (error) {
    await owned[Symbol.asyncDispose]();
    throw error;
  }
}

async function openWith({ config, program, ports, runtimeOf }: HostHarnessesOptions, owned: Owned): Promise<HostHarnesses> {
  const inProcess = { ...builtInHarnesses(), ...program };
  const place = (harness: PlacedHarnessOptions): HarnessEntry => owned.add(createPlacedHarness(harness));
  const configured: HarnessEntry[] = [];
  for (const [name, harness] of Object.entries(config.harnesses)) {
    if (Object.hasOwn(inProcess, name)) throw invalidArgument(`harnesses.${name}`, "is the name of a harness that this host has by itself");
    const runtime = await configuredRuntime(name, harness, runtimeOf);
    configured.push(place({ name, source: "static", runtime, sandboxed: harness.runtime !== "remote" }));
  }
  const store = owned.add(openRegistrations(config.store));
  const statics = [...Object.keys(inProcess).map((name) => ({ name })), ...Object.entries(config.harnesses).map(staticHarness)];
  const registry = await openHarnessRegistry({ store, statics, ports });
  refuseRegistered(registry, [...Object.keys(config.harnesses), ...Object.keys(program)]);
  const catalog = createLiveCatalog({
    fixed: createHarnessCatalog(inProcess, configured),
    registry,
    entryFor: (row, isOpen) => registeredEntry(row, isOpen, runtimeOf, place),
  });
  return { catalog, registry, [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose]() };
}

/** What was opened, and ends in the opposite order. */
class Owned implements AsyncDisposable {
  readonly #opened: AsyncDisposable[] = [];

  add<T extends AsyncDisposable>(opened: T): T {
    this.#opened.push(opened);
    return opened;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (let last = this.#opened.pop(); last !== undefined; last = this.#opened.pop()) await last[Symbol.asyncDispose]();
  }
}

/** The store of registrations beside the journal. */
function openRegistrations(store: ServerConfig["store"]): RegistrationStore {
  return store.kind === "memory" ? createMemoryRegistrations() : openSqliteRegistrations({ folder: store.folder });
}

async function configuredRuntime(name: string, config: HarnessConfig, runtimeOf: RuntimeOf): Promise<Runtime> {
  try {
    return await runtimeOf(config);
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    const { code, message, details } = error;
    const field = `harnesses.${name}`;
    throw new HoldfastError(code, `${field}: ${message}`, { field, details, cause: error });
  }
}

function staticHarness([name, config]: readonly [string, HarnessConfig]): StaticHarness {
  if (config.runtime !== "remote") return { name };
  return { name, spec: create(HarnessSpecSchema, { placement: { case: "remote", value: { address: config.address } } }) };
}

function refuseRegistered(registry: HarnessRegistry, names: readonly string[]): void {
  const taken = names.find((name) => registry.registered(name) !== undefined);
  if (taken === undefined) return;
  const field = `harnesses.${taken}`;
  const message = `${field}: is registered on this host, and a registered name keeps its meaning; give the harness another name`;
  throw new HoldfastError("failed_precondition", message, { field });
}

/** A registered harness on the runtime of what is served elsewhere. */
function registeredEntry(
  row: RegisteredHarness,
  isOpen: () => boolean,
  runtimeOf: RuntimeOf,
  place: (harness: PlacedHarnessOptions) => HarnessEntry,
): HarnessEntry {
  const { placement, descriptorId } = row.spec;
  const address = placement.case === "remote" ? placement.value.address : "";
  try {
    const runtime = runtimeOf({ runtime: "remote", address });
    return place({ name: row.name, source: "registered", isOpen, runtime, sandboxed: false, descriptorId });
  } catch (error) {
    if (error instanceof HoldfastError) return unservableEntry(row, error.message);
    throw error;
  }
}
