/**
 * The harnesses of a host, registered ones included, as they are now.
 *
 * Invariants:
 * - A registration is found by the first look-up after it was made, and a retired one is closed at once. No start is needed.
 * - One entry serves a registration for as long as the host runs, retired or not: sessions that have it go on.
 */

import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "../base/errors.ts";
import { RuntimeCapabilitiesSchema } from "../gen/agentsessions/v1/session_pb.ts";
import type { HarnessCatalog, HarnessEntry, RegisteredHarness } from "../spi/index.ts";
import type { HarnessRegistry } from "./registry.ts";
import { unservableReason } from "./registry-spec.ts";

export interface LiveCatalogOptions {
  /** The host's own harnesses. */
  readonly fixed: HarnessCatalog;
  readonly registry: Pick<HarnessRegistry, "registered" | "activeNames">;
  /**
   * The entry of a registration that this host can serve, whose `source` is `registered` and whose `open` is what `isOpen` says; asked
   * for once each. It refuses a harness that has another descriptor id than the registered one (FAILED_PRECONDITION).
   */
  readonly entryFor: (registration: RegisteredHarness, isOpen: () => boolean) => HarnessEntry;
}

/** A catalog of the host's own harnesses and the registered ones. A name that is both is the registered one, which sessions may have. */
export function createLiveCatalog({ fixed, registry, entryFor }: LiveCatalogOptions): HarnessCatalog {
  const entries = new Map<string, HarnessEntry>();
  const entryOf = (row: RegisteredHarness): HarnessEntry => {
    const known = entries.get(row.uid);
    if (known !== undefined) return known;
    const reason = unservableReason(row.spec);
    const isOpen = (): boolean => registry.registered(row.name)?.retired === undefined;
    const entry = reason === "" ? entryFor(row, isOpen) : unservableEntry(row, reason);
    entries.set(row.uid, entry);
    return entry;
  };
  const find = (name: string): HarnessEntry | undefined => {
    const row = registry.registered(name);
    return row === undefined ? fixed.find(name) : entryOf(row);
  };
  return {
    find,
    names: () => [
      ...fixed.names().filter((name) => registry.registered(name) === undefined),
      ...registry.activeNames().filter((name) => find(name)?.open === true),
    ],
  };
}

/** A registered harness that this host cannot serve: known by its name, closed, and FAILED_PRECONDITION for whoever would use it. */
export function unservableEntry({ name, spec }: RegisteredHarness, reason: string): HarnessEntry {
  const refuse = async (): Promise<never> => {
    throw new HoldfastError("failed_precondition", `harness: ${reason}`, { field: "harness" });
  };
  return {
    name,
    source: "registered",
    open: false,
    runtime: { name: spec.placement.case ?? "", capabilities: create(RuntimeCapabilitiesSchema) },
    sandboxed: false,
    fenceOf: () => undefined,
    describe: refuse,
    wake: refuse,
    ready: refuse,
    attach: refuse,
    rehearse: refuse,
    suspend: refuse,
    settle: async () => undefined,
    shared: refuse,
    discard: async () => undefined,
    release: async () => undefined,
  };
}
