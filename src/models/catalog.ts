/** Which provider serves a model: a table of exact names and prefixes. */

import type { ModelCatalog, ModelProvider } from "../spi/index.ts";
import { createMatchTable } from "./match-table.ts";

/** One line of the table. */
export interface ModelRoute {
  /** A model's id, or a prefix of ids followed by `*`, such as `claude-*` or `anthropic/*`. */
  readonly match: string;
  readonly provider: ModelProvider;
}

/** What a catalogue is made of. */
export interface ModelCatalogOptions {
  readonly routes: readonly ModelRoute[];
  /** Serves every model that no route matches; without it such a model is unknown. */
  readonly fallback?: ModelProvider | undefined;
}

/**
 * A catalogue. An exact name goes before any prefix, a longer prefix before a shorter one; the order of the routes says nothing.
 * Throws INVALID_ARGUMENT for an empty match, a match that is there twice, and a `*` elsewhere than at the end.
 */
export function createModelCatalog(options: ModelCatalogOptions): ModelCatalog {
  const entries = options.routes.map(({ match, provider }) => ({ match, value: provider }));
  const providerOf = createMatchTable(entries, "routes.match");
  return { providerOf: (model) => providerOf(model) ?? (model === "" ? undefined : options.fallback) };
}
