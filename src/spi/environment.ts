/**
 * Environments: what the interactive sessions and the tasks of one kind have in common. Which harness drives them, which models a client
 * may ask for, what their tools may do, and what they look at.
 *
 * Invariants:
 * - An environment is whole: what its author left out has its default.
 * - A turn is journaled with all that it took from its environment. A change holds for the turns that start after it.
 */

/** What happens when a tool is called: it runs at once, runs when a person has confirmed the call, or never runs. */
export type PermissionPolicy = "allow" | "require_confirmation" | "block";

/** Whether a tool acts on the world, or only reads and computes. */
export type ToolCategory = "physical" | "pure";

/** How much of the agent a client is advised to show. */
export type PresenceLevel = "full" | "mini" | "hidden";

/** One rule on tools; of the rules of an environment the first that fits a tool decides. */
export interface PermissionRule {
  /** The tools that it speaks of; `*` stands for any characters. */
  readonly tool: string;
  readonly policy: PermissionPolicy;
  /** Only tools of this category; absent for both. */
  readonly category?: ToolCategory | undefined;
  /** Why, for whoever is asked or refused; absent where nobody said. */
  readonly reason?: string | undefined;
}

/** What an agent that acts on the world looks at before it acts. */
export interface ObservationSource {
  /** A tool of the client, or one of the host's. */
  readonly tool: string;
  /** An observation that is older is stale, in milliseconds. */
  readonly maxAgeMs: number;
}

/**
 * The tools of the host that an environment offers, by their names; `*` stands for any characters. Of what fits a name the longest
 * decides, and `physical` where both lists have that. A tool in neither is not on offer.
 */
export interface EnvironmentTools {
  /** Those that only read or compute. */
  readonly pure: readonly string[];
  /** Those that act on the world. */
  readonly physical: readonly string[];
}

/** A runtime or an edge host that a client may choose. */
export interface EnvironmentHost {
  /** Drives the turns there; absent for the environment's harness. */
  readonly harness?: string | undefined;
  /** The tools that are there, of those that the environment offers; `*` stands for any characters. Absent for all of these. */
  readonly tools?: readonly string[] | undefined;
  /** Absent for the environment's. */
  readonly observation?: ObservationSource | undefined;
  /** By which it can be chosen instead of by its id. */
  readonly labels: Readonly<Record<string, string>>;
}

/** How much of itself an agent suggests to show. */
export interface PresencePolicy {
  /** While a tool runs that acts on the world. */
  readonly physical: PresenceLevel;
  /** While anything else runs. */
  readonly pure: PresenceLevel;
  /** While no turn runs. */
  readonly idle: PresenceLevel;
}

/** What sessions and tasks of one kind have in common. */
export interface Environment {
  /** 1 to 64 of `a-z`, `0-9`, `_` and `-`. */
  readonly id: string;
  readonly description: string;
  /** The harness of its sessions. */
  readonly harness: string;
  /**
   * What its agent is told and how it asks its model: the keys of an AgentDefinition that the environment does not state in its own
   * words. Empty where the harness is not `agent`.
   */
  readonly agent: Readonly<Record<string, unknown>>;
  /** The model where the client asks for none; "" for the server's default. */
  readonly model: string;
  /** Models by tier. Where there are any, a client may ask for a tier or one of these models, and no other. */
  readonly models: Readonly<Record<string, string>>;
  readonly permissions: readonly PermissionRule[];
  /** Absent where there is nothing to look at. */
  readonly observation?: ObservationSource | undefined;
  readonly tools: EnvironmentTools;
  /** The hosts that a client may choose, by id. */
  readonly hosts: Readonly<Record<string, EnvironmentHost>>;
  readonly presence: PresencePolicy;
  /** The largest request to a model in estimated tokens, which a client may ask to be smaller; absent for the agent's default. */
  readonly maxContextTokens?: number | undefined;
}

/** The id of the environment that every server has. */
export const DEFAULT_ENVIRONMENT = "default";

/** The environments of this host. */
export interface EnvironmentCatalog {
  /** The environment as it is now; "" finds the default one. Undefined for an unknown id. */
  find(id: string): Environment | undefined;
  /** All of them, by id. */
  list(): readonly Environment[];
}

/** An environment that was made over the API. */
export interface StoredEnvironment {
  readonly id: string;
  /** JSON of the environment: an object with its keys but `id`. */
  readonly definition: string;
  /** Tells it from an earlier one of the same id. */
  readonly uid: string;
  /** Counts its changes, from 1. */
  readonly version: number;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
}

/** What became of an insertion; `row` is what the store has now. */
export type EnvironmentInsertion = { readonly kind: "inserted" | "taken"; readonly row: StoredEnvironment };

/** What became of a change; `row` is what the store has now, or what it had until it was removed. */
export type EnvironmentChange =
  | { readonly kind: "changed" | "conflict"; readonly row: StoredEnvironment }
  /** No environment has the id. */
  | { readonly kind: "unknown" };

/** Keeps environments. What it acknowledged is there after a crash. Faults are HoldfastErrors. */
export interface EnvironmentStore extends AsyncDisposable {
  /** All of them, by id. */
  load(): Promise<readonly StoredEnvironment[]>;
  /** Adds one, if its id is free. Of two at once under one id, one is inserted. */
  insert(row: StoredEnvironment): Promise<EnvironmentInsertion>;
  /** Replaces the definition of the id, if the store has the version before `row.version` under the same uid. */
  replace(row: StoredEnvironment): Promise<EnvironmentChange>;
  /** Removes one, if the store has this version under this uid. */
  remove(row: Pick<StoredEnvironment, "id" | "uid" | "version">): Promise<EnvironmentChange>;
}
