/**
 * The registry of harnesses that a host may dial, as the host has it in memory: its own configuration, and what its operator registered.
 *
 * Invariants:
 * - A registered name means one spec for ever. It is retired and comes back, and never means anything else.
 * - What a call answered is durable. A change is seen by the next look-up, and by none before it is durable.
 * - Changes are made one after the other; of two registrations of one name, the first wins.
 */

import { HoldfastError } from "../base/errors.ts";
import { newUuid } from "../base/ids.ts";
import type { Ports } from "../base/ports.ts";
import { specDigest } from "../canon/index.ts";
import type { HarnessSpec } from "../gen/agentsessions/v1/harness_registry_pb.ts";
import type { RegisteredHarness, RegistrationStore } from "../spi/index.ts";

/** A harness of the host's own. */
export interface StaticHarness {
  readonly name: string;
  /** Where it is, as far as a spec can say that. */
  readonly spec?: HarnessSpec | undefined;
}

/** A harness as the registry knows it. */
export type KnownHarness =
  | { readonly kind: "static"; readonly harness: StaticHarness }
  | { readonly kind: "registered"; readonly row: RegisteredHarness };

/** What a registration did. */
export type Registered = { readonly kind: "created" | "unchanged" | "reactivated"; readonly row: RegisteredHarness };

/** Which page is asked for. */
export interface ListHarnesses {
  /** The name before the page's first; absent for the first page. */
  readonly after?: string | undefined;
  /** At least 1. */
  readonly limit: number;
  readonly includeRetired: boolean;
}

/** A page in the order of names. */
export interface HarnessPage {
  readonly harnesses: readonly KnownHarness[];
  /** The name before the next page's first; absent on the last page. */
  readonly next: string | undefined;
}

/** The registry. Names and specs that it is given must have been found valid. */
export interface HarnessRegistry {
  /** The registration under a name, retired or not. */
  registered(name: string): RegisteredHarness | undefined;
  /** The names of registrations that are active, in order. */
  activeNames(): readonly string[];
  find(name: string): KnownHarness | undefined;
  list(asked: ListHarnesses): HarnessPage;
  /**
   * Registers. ALREADY_EXISTS for another spec under a taken name, FAILED_PRECONDITION for a static name, RESOURCE_EXHAUSTED when there
   * are `registrationsMax`.
   */
  register(name: string, spec: HarnessSpec): Promise<Registered>;
  /** Retires; one that is retired stays as it is. NOT_FOUND, FAILED_PRECONDITION for a static name. */
  retire(name: string, reason: string): Promise<RegisteredHarness>;
}

export interface RegistryOptions {
  readonly store: RegistrationStore;
  readonly statics: readonly StaticHarness[];
  readonly ports: Ports;
  /** Registrations, retired ones included. Default 1,000. */
  readonly registrationsMax?: number | undefined;
}

/** Registrations that a host keeps, retired ones included. */
export const REGISTRATIONS_MAX = 1_000;

/** Reads the registrations. Rejects with DATA_LOSS for one whose spec is not what its digest says. */
export async function openHarnessRegistry(options: RegistryOptions): Promise<HarnessRegistry> {
  const rows = await options.store.load();
  for (const { spec, specDigest: digest } of rows) {
    if (specDigest(spec, options.ports.digest) === digest) continue;
    throw new HoldfastError("data_loss", "registry: a registration's spec is not what its digest says; restore the file from a copy");
  }
  return new Registry(options, rows);
}

class Registry implements HarnessRegistry {
  readonly #store: RegistrationStore;
  readonly #ports: Ports;
  readonly #registrationsMax: number;
  readonly #statics: ReadonlyMap<string, StaticHarness>;
  readonly #rows: Map<string, RegisteredHarness>;
  #changes: Promise<unknown> = Promise.resolve();

  constructor({ store, statics, ports, registrationsMax = REGISTRATIONS_MAX }: RegistryOptions, rows: readonly RegisteredHarness[]) {
    this.#store = store;
    this.#ports = ports;
    this.#registrationsMax = registrationsMax;
    this.#statics = new Map(statics.map((harness) => [harness.name, harness]));
    this.#rows = new Map(rows.map((row) => [row.name, row]));
  }

  registered(name: string): RegisteredHarness | undefined {
    return this.#rows.get(name);
  }

  activeNames(): readonly string[] {
    return [...this.#rows.values()].flatMap(({ name, retired }) => (retired === undefined ? [name] : [])).toSorted(byCodeUnits);
  }

  find(name: string): KnownHarness | undefined {
    const row = this.#rows.get(name);
    if (row !== undefined) return { kind: "registered", row };
    const harness = this.#statics.get(name);
    return harness === undefined ? undefined : { kind: "static", harness };
  }

  list({ after, limit, includeRetired }: ListHarnesses): HarnessPage {
    const names = [...new Set([...this.#statics.keys(), ...this.#rows.keys()])].toSorted(byCodeUnits);
    const harnesses: KnownHarness[] = [];
    let last: string | undefined;
    for (const name of names) {
      if (after !== undefined && byCodeUnits(name, after) <= 0) continue;
      const known = this.find(name);
      if (known === undefined || (!includeRetired && isRetired(known))) continue;
      if (harnesses.length === limit) return { harnesses, next: last };
      harnesses.push(known);
      last = name;
    }
    return { harnesses, next: undefined };
  }

  register(name: string, spec: HarnessSpec): Promise<Registered> {
    return this.#inTurn(async () => {
      this.#refuseStatic(name, "can be registered under this name; choose another");
      const digest = specDigest(spec, this.#ports.digest);
      const row = this.#rows.get(name);
      if (row !== undefined) return this.#registerAgain(row, digest);
      if (this.#rows.size >= this.#registrationsMax) {
        throw new HoldfastError("resource_exhausted", `name: the registry has its ${this.#registrationsMax} harnesses, and takes no more`, {
          field: "name",
        });
      }
      const outcome = await this.#store.insert(this.#newRow(name, spec, digest));
      this.#rows.set(name, outcome.row);
      return outcome.kind === "inserted" ? { kind: "created", row: outcome.row } : this.#registerAgain(outcome.row, digest);
    });
  }

  retire(name: string, reason: string): Promise<RegisteredHarness> {
    return this.#inTurn(async () => {
      this.#refuseStatic(name, "can be retired; take it out of the configuration");
      const row = this.#rows.get(name);
      if (row === undefined) throw unknownHarness();
      const timeMs = this.#ports.clock.nowMs();
      return this.#change(row, (current) => (current.retired === undefined ? { retired: { timeMs, reason } } : undefined));
    });
  }

  async #registerAgain(row: RegisteredHarness, digest: string): Promise<Registered> {
    if (row.specDigest !== digest) {
      throw new HoldfastError(
        "already_exists",
        "name: another spec is registered under it, and a spec never changes; choose another name",
        {
          field: "name",
        },
      );
    }
    let kind: Registered["kind"] = "unchanged";
    const changed = await this.#change(row, ({ retired }) => {
      kind = retired === undefined ? "unchanged" : "reactivated";
      return retired === undefined ? undefined : { retired: undefined };
    });
    return { kind, row: changed };
  }

  /** Applies a change to what the store has, until it is the one that was changed; undefined leaves it as it is. */
  async #change(
    row: RegisteredHarness,
    change: (current: RegisteredHarness) => Pick<RegisteredHarness, "retired"> | undefined,
  ): Promise<RegisteredHarness> {
    for (let current = row; ;) {
      const changes = change(current);
      if (changes === undefined) return current;
      const updateTimeMs = this.#ports.clock.nowMs();
      const outcome = await this.#store.replace({ ...current, ...changes, version: current.version + 1, updateTimeMs });
      if (outcome.kind === "unknown") throw unknownHarness();
      this.#rows.set(row.name, outcome.row);
      if (outcome.kind === "replaced") return outcome.row;
      current = outcome.row;
    }
  }

  #newRow(name: string, spec: HarnessSpec, digest: string): RegisteredHarness {
    const nowMs = this.#ports.clock.nowMs();
    const uid = newUuid(this.#ports);
    return { name, uid, version: 1, spec, specDigest: digest, createTimeMs: nowMs, updateTimeMs: nowMs, retired: undefined };
  }

  /** A name that was registered before the host had one of its own keeps its meaning. */
  #refuseStatic(name: string, what: string): void {
    if (!this.#statics.has(name) || this.#rows.has(name)) return;
    throw new HoldfastError("failed_precondition", `name: is a harness of this host's configuration, and no such harness ${what}`, {
      field: "name",
    });
  }

  #inTurn<T>(change: () => Promise<T>): Promise<T> {
    const done = this.#changes.then(change);
    this.#changes = done.catch(() => undefined);
    return done;
  }
}

/** NOT_FOUND for a name that nobody has. */
export function unknownHarness(): HoldfastError {
  return new HoldfastError("not_found", "name: no harness has this name", { field: "name" });
}

function isRetired(known: KnownHarness): boolean {
  return known.kind === "registered" && known.row.retired !== undefined;
}

function byCodeUnits(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}
