/** Registrations that are forgotten at the end, for a host whose journal is in memory too. */

import type { RegisteredHarness, RegistrationStore } from "../../spi/index.ts";

/** An empty store. */
export function createMemoryRegistrations(): RegistrationStore {
  const rows = new Map<string, RegisteredHarness>();
  return {
    load: async () => [...rows.values()].toSorted((one, other) => (one.name < other.name ? -1 : 1)),

    async insert(row) {
      const known = rows.get(row.name);
      if (known !== undefined) return { kind: "taken", row: known };
      rows.set(row.name, row);
      return { kind: "inserted", row };
    },

    async replace(row) {
      const known = rows.get(row.name);
      if (known === undefined) return { kind: "unknown" };
      if (known.version !== row.version - 1) return { kind: "conflict", row: known };
      const { updateTimeMs, version, retired } = row;
      const replaced = { ...known, updateTimeMs, version, retired };
      rows.set(row.name, replaced);
      return { kind: "replaced", row: replaced };
    },

    [Symbol.asyncDispose]: async () => undefined,
  };
}
