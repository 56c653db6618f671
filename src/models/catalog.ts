/** Which provider serves a model: a table of exact names and prefixes. */

import { invalidArgument } from "../base/errors.ts";
import type { ModelCatalog, ModelProvider } from "../spi/index.ts";

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
  const exact = new Map<string, ModelProvider>();
  const prefixes = new Map<string, ModelProvider>();
  for (const { match, provider } of options.routes) {
    const isPrefix = match.endsWith("*");
    const name = isPrefix ? match.slice(0, -1) : match;
    if (name === "" || name.includes("*")) throw invalidArgument("routes.match", "must be a model's id, or a prefix followed by *");
    const table = isPrefix ? prefixes : exact;
    if (table.has(name)) throw invalidArgument("routes.match", "must be there once only");
    table.set(name, provider);
  }
  const longestFirst = [...prefixes].sort(([a], [b]) => b.length - a.length);
  return {
    providerOf: (model) => {
      if (model === "") return undefined;
      const byPrefix = () => longestFirst.find(([prefix]) => model.startsWith(prefix))?.[1];
      return exact.get(model) ?? byPrefix() ?? options.fallback;
    },
  };
}
