/** Environments that are forgotten at the end, for a host whose journal is in memory too. */

import type { EnvironmentStore, StoredEnvironment } from "../../spi/index.ts";

/** An empty store. */
export function createMemoryEnvironments(): EnvironmentStore {
  const rows = new Map<string, StoredEnvironment>();
  return {
    load: async () => [...rows.values()].toSorted((one, other) => (one.id < other.id ? -1 : 1)),

    async insert(row) {
      const known = rows.get(row.id);
      if (known !== undefined) return { kind: "taken", row: known };
      rows.set(row.id, row);
      return { kind: "inserted", row };
    },

    async replace({ id, uid, version, definition, updateTimeMs }) {
      const known = rows.get(id);
      if (known === undefined) return { kind: "unknown" };
      if (known.uid !== uid || known.version !== version - 1) return { kind: "conflict", row: known };
      const replaced = { ...known, version, definition, updateTimeMs };
      rows.set(id, replaced);
      return { kind: "changed", row: replaced };
    },

    async remove({ id, uid, version }) {
      const known = rows.get(id);
      if (known === undefined) return { kind: "unknown" };
      if (known.uid !== uid || known.version !== version) return { kind: "conflict", row: known };
      rows.delete(id);
      return { kind: "changed", row: known };
    },

    [Symbol.asyncDispose]: async () => undefined,
  };
}
