/**
 * The environments of a host as it has them in memory: those of its configuration, and those that were made over the API.
 *
 * Invariants:
 * - What a call answered is durable. A change is seen by the next look-up, and by none before it is durable.
 * - Changes are made one after the other; of two that were made of one version, the first wins.
 * - An id means one environment. The host's own can be read and not changed.
 */

import { HoldfastError } from "../../base/errors.ts";
import { newUuid } from "../../base/ids.ts";
import type { Ports } from "../../base/ports.ts";
import {
  DEFAULT_ENVIRONMENT,
  type Environment,
  type EnvironmentCatalog,
  type EnvironmentStore,
  type StoredEnvironment,
} from "../../spi/index.ts";

/** An environment as the host knows it; `row` is of one that was made over the API. */
export interface KnownEnvironment {
  readonly environment: Environment;
  readonly row: Pick<StoredEnvironment, "uid" | "version" | "createTimeMs" | "updateTimeMs"> | undefined;
}

/** What was read before a change; what is absent may be anything. */
export interface ReadBefore {
  readonly version?: number | undefined;
  readonly uid?: string | undefined;
}

/** The environments of a host. Those that it is given must have been found valid. */
export interface EnvironmentLibrary extends EnvironmentCatalog {
  /** All of them after an id, in order. */
  after(id: string | undefined): Iterable<KnownEnvironment>;
  /** NOT_FOUND where there is none. */
  known(id: string): KnownEnvironment;
  /** ALREADY_EXISTS for a taken id, FAILED_PRECONDITION for one of the host's own, RESOURCE_EXHAUSTED where there are too many. */
  create(environment: Environment): Promise<KnownEnvironment>;
  /** Replaces a definition. NOT_FOUND, FAILED_PRECONDITION for one of the host's own, ABORTED where it is no longer what was read. */
  update(environment: Environment, before: ReadBefore): Promise<KnownEnvironment>;
  /** Removes one; resolves with what it was. Throws as `update` does. */
  remove(id: string, before: ReadBefore): Promise<KnownEnvironment>;
}

export interface EnvironmentLibraryOptions {
  /** The host's own, `default` among them. */
  readonly configured: readonly Environment[];
  readonly store: EnvironmentStore;
  /** The environment of what a store has. Throws where it is none. */
  readonly restore: (row: StoredEnvironment) => Environment;
  readonly ports: Pick<Ports, "clock" | "random">;
  /** Environments that are made over the API. Default ENVIRONMENTS_MAX. */
  readonly environmentsMax?: number | undefined;
}

/** Environments that a host keeps beside its own. */
export const ENVIRONMENTS_MAX = 1_000;

/** Reads what the store has. Rejects with DATA_LOSS for what cannot be read, FAILED_PRECONDITION where the host has one of its own by an id. */
export async function openEnvironmentLibrary(options: EnvironmentLibraryOptions): Promise<EnvironmentLibrary> {
  const own = new Map(options.configured.map((environment) => [environment.id, { environment, row: undefined }]));
  const made = new Map<string, KnownEnvironment>();
  for (const row of await options.store.load()) {
    if (own.has(row.id)) {
      const field = `environments.${row.id}`;
      const message = `${field}: was made over the API on this host, and keeps its meaning; delete it there, or give this one another id`;
      throw new HoldfastError("failed_precondition", message, { field });
    }
    made.set(row.id, { environment: options.restore(row), row });
  }
  return new Library(options, own, made);
}

class Library implements EnvironmentLibrary {
  readonly #options: EnvironmentLibraryOptions;
  readonly #own: ReadonlyMap<string, KnownEnvironment>;
  readonly #made: Map<string, KnownEnvironment>;
  #changes: Promise<unknown> = Promise.resolve();

  constructor(options: EnvironmentLibraryOptions, own: ReadonlyMap<string, KnownEnvironment>, made: Map<string, KnownEnvironment>) {
    this.#options = options;
    this.#own = own;
    this.#made = made;
  }

  find(id: string): Environment | undefined {
    return this.#find(id === "" ? DEFAULT_ENVIRONMENT : id)?.environment;
  }

  list(): readonly Environment[] {
    return [...this.after(undefined)].map(({ environment }) => environment);
  }

  *after(id: string | undefined): Iterable<KnownEnvironment> {
    const ids = [...this.#own.keys(), ...this.#made.keys()].filter((each) => id === undefined || each > id);
    for (const each of ids.toSorted()) {
      const known = this.#find(each);
      if (known !== undefined) yield known;
    }
  }

  known(id: string): KnownEnvironment {
    const known = this.#find(id);
    if (known === undefined) throw unknownEnvironment();
    return known;
  }

  create(environment: Environment): Promise<KnownEnvironment> {
    return this.#inTurn(async () => {
      const { store, ports, environmentsMax = ENVIRONMENTS_MAX } = this.#options;
      const { id } = environment;
      this.#refuseOwn(id, "choose another");
      if (this.#made.has(id)) throw takenId();
      if (this.#made.size >= environmentsMax) {
        throw new HoldfastError("resource_exhausted", `environment: the host has its ${environmentsMax} environments, and takes no more`, {
          field: "environment",
        });
      }
      const nowMs = ports.clock.nowMs();
      const row = { id, uid: newUuid(ports), version: 1, definition: definitionOf(environment), createTimeMs: nowMs, updateTimeMs: nowMs };
      const outcome = await store.insert(row);
      if (outcome.kind === "taken") throw takenId();
      return this.#keep(environment, outcome.row);
    });
  }

  update(environment: Environment, before: ReadBefore): Promise<KnownEnvironment> {
    return this.#inTurn(async () => {
      const { uid, version, createTimeMs } = this.#rowToChange(environment.id, before);
      const updateTimeMs = this.#options.ports.clock.nowMs();
      const definition = definitionOf(environment);
      const row = { id: environment.id, uid, version: version + 1, definition, createTimeMs, updateTimeMs };
      const outcome = await this.#options.store.replace(row);
      switch (outcome.kind) {
        case "changed":
          return this.#keep(environment, outcome.row);
        case "conflict":
          throw changedSince(outcome.row.version);
        case "unknown":
          throw unknownEnvironment();
      }
    });
  }

  remove(id: string, before: ReadBefore): Promise<KnownEnvironment> {
    return this.#inTurn(async () => {
      const { uid, version } = this.#rowToChange(id, before);
      const known = this.known(id);
      const outcome = await this.#options.store.remove({ id, uid, version });
      if (outcome.kind === "conflict") throw changedSince(outcome.row.version);
      this.#made.delete(id);
      if (outcome.kind === "unknown") throw unknownEnvironment();
      return known;
    });
  }

  #find(id: string): KnownEnvironment | undefined {
    return this.#own.get(id) ?? this.#made.get(id);
  }

  #keep(environment: Environment, row: StoredEnvironment): KnownEnvironment {
    const known = { environment, row };
    this.#made.set(environment.id, known);
    return known;
  }

  #rowToChange(id: string, before: ReadBefore): NonNullable<KnownEnvironment["row"]> {
    this.#refuseOwn(id, "change it there");
    const row = this.#made.get(id)?.row;
    if (row === undefined) throw unknownEnvironment();
    if (before.uid !== undefined && before.uid !== row.uid) {
      throw new HoldfastError("aborted", "environment.uid: is that of an earlier environment of this id; read it again", {
        field: "environment.uid",
      });
    }
    if (before.version !== undefined && before.version !== row.version) throw changedSince(row.version);
    return row;
  }

  #refuseOwn(id: string, what: string): void {
    if (!this.#own.has(id)) return;
    throw new HoldfastError("failed_precondition", `id: is an environment of this host's configuration; ${what}`, { field: "id" });
  }

  #inTurn<T>(change: () => Promise<T>): Promise<T> {
    const done = this.#changes.then(change);
    this.#changes = done.catch(() => undefined);
    return done;
  }
}

/** What a store keeps of an environment; what its author left out is there as it was when it was made. */
function definitionOf(environment: Environment): string {
  return JSON.stringify({ ...environment, id: undefined });
}

function unknownEnvironment(): HoldfastError {
  return new HoldfastError("not_found", "id: no environment has this id", { field: "id" });
}

function takenId(): HoldfastError {
  return new HoldfastError("already_exists", "environment.id: is taken by another environment; choose another", {
    field: "environment.id",
  });
}

function changedSince(version: number): HoldfastError {
  const message = `expected_version: the environment has changed since, and has version ${version}; read it again`;
  return new HoldfastError("aborted", message, { field: "expected_version" });
}
