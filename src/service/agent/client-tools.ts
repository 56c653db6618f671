/**
 * The tools that clients run, as the turns that have them see them.
 *
 * Invariants:
 * - Which tools a turn's client has follows from the turn's config; what they look like, from what the turn was offered when it started.
 * - They are idempotent: a request goes out again under its id after a cut or a restart, and the client answers an id that it knows with the
 *   result that it had.
 * - In mode `ooda_re_act` tools that act on the world run one at a time, and none of them on an observation that is stale: one of another turn,
 *   one that was not made lately, or that this process did not see being made. That goes for the host's tools as well.
 */

import type { SessionUid } from "../../base/ids.ts";
import type { Clock } from "../../base/ports.ts";
import {
  joinTools,
  type HostTool,
  type ToolCall,
  type ToolExecutor,
  type ToolResult,
  type ToolRun,
  type TurnTools,
} from "../../spi/index.ts";
import type { Channels } from "./channels.ts";
import { answeredResult, staleObservationResult, timedOutResult } from "./client-result.ts";
import type { AgentLimits } from "./limits.ts";
import type { SchemaChecks } from "./schema-checks.ts";
import type { ClientToolSpec } from "./tool-schemas.ts";
import { categoryIn, turnFactsOf, type TurnFacts } from "./turn-facts.ts";

/** What clients' tools need. */
export interface ClientToolsOptions {
  readonly channels: Channels;
  readonly checks: SchemaChecks;
  readonly clock: Clock;
  readonly limits: AgentLimits;
  /** The host's own tools. */
  readonly hostTools?: ToolExecutor | undefined;
}

/** The tools of clients on a host. */
export class ClientTools {
  readonly #options: ClientToolsOptions;
  readonly #observations: Observations;
  /** What the tools of a turn look like that is about to start, by its config. */
  readonly #starting = new WeakMap<Uint8Array, readonly ClientToolSpec[]>();

  constructor(options: ClientToolsOptions) {
    this.#options = options;
    this.#observations = new Observations(options.clock);
  }

  /** The turn that starts with this config has these tools. */
  offer(config: Uint8Array, tools: readonly ClientToolSpec[]): void {
    this.#starting.set(config, tools);
  }

  /** See `TurnTools`. */
  readonly turnTools: TurnTools = ({ session, config, offered }) => {
    const facts = turnFactsOf(config);
    if (offered === undefined) this.#observations.forget(session);
    const definitions = offered ?? this.#starting.get(config)?.map(({ definition }) => definition) ?? [];
    const tools = new Map(
      definitions.flatMap((definition) =>
        facts.clientTools.has(definition.name) ? [[definition.name, { definition, idempotent: true }]] : [],
      ),
    );
    const { hostTools } = this.#options;
    const own = tools.size === 0 ? undefined : new ClientExecutor(this.#options, facts, tools);
    if (!facts.isOoda) return own;
    const all = [own, hostTools].filter((executor) => executor !== undefined);
    return all.length === 0 ? undefined : new CarefulExecutor(joinTools(...all), facts, this.#observations);
  };
}

class ClientExecutor implements ToolExecutor {
  readonly #options: ClientToolsOptions;
  readonly #facts: TurnFacts;
  readonly #tools: ReadonlyMap<string, HostTool>;

  constructor(options: ClientToolsOptions, facts: TurnFacts, tools: ReadonlyMap<string, HostTool>) {
    this.#options = options;
    this.#facts = facts;
    this.#tools = tools;
  }

  list(): readonly HostTool[] {
    return [...this.#tools.values()];
  }

  find(name: string): HostTool | undefined {
    return this.#tools.get(name);
  }

  check({ tool, args }: ToolCall): string | undefined {
    const schema = this.#tools.get(tool)?.definition.inputSchema;
    return schema === undefined ? undefined : this.#options.checks.of(schema, "parameters_schema")(args ?? {});
  }

  async execute(call: ToolCall, { session, signal }: ToolRun): Promise<ToolResult> {
    const { channels, limits } = this.#options;
    const timeoutMs = this.#facts.clientTools.get(call.tool)?.timeoutMs ?? limits.toolTimeoutDefaultMs;
    const outcome = await channels.request(session, { call, timeoutMs }, signal);
    switch (outcome.kind) {
      case "answered":
        return answeredResult(call.id, outcome.result, limits.resultBytesMax);
      case "timed-out":
        return timedOutResult(call.id, timeoutMs);
    }
  }
}

/** Sessions whose last observation is remembered; of one that is forgotten it is stale. */
const OBSERVED_MAX = 10_000;

/** When the turns of sessions last looked at the world. */
class Observations {
  readonly #clock: Clock;
  readonly #timesMs = new Map<SessionUid, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  made(session: SessionUid): void {
    this.#timesMs.delete(session);
    this.#timesMs.set(session, this.#clock.monotonicMs());
    if (this.#timesMs.size <= OBSERVED_MAX) return;
    const [oldest] = this.#timesMs.keys();
    if (oldest !== undefined) this.#timesMs.delete(oldest);
  }

  /** A new turn has not looked yet. */
  forget(session: SessionUid): void {
    this.#timesMs.delete(session);
  }

  isFresh(session: SessionUid, maxAgeMs: number): boolean {
    const timeMs = this.#timesMs.get(session);
    return timeMs !== undefined && this.#clock.monotonicMs() - timeMs <= maxAgeMs;
  }
}

/** Lets tools that act on the world run one at a time, and only on a fresh look at it. */
class CarefulExecutor implements ToolExecutor {
  readonly #tools: ToolExecutor;
  readonly #facts: TurnFacts;
  readonly #observations: Observations;
  /** Settles when no tool acts on the world. */
  #acting: Promise<void> = Promise.resolve();

  constructor(tools: ToolExecutor, facts: TurnFacts, observations: Observations) {
    this.#tools = tools;
    this.#facts = facts;
    this.#observations = observations;
  }

  list(): readonly HostTool[] {
    return this.#tools.list();
  }

  find(name: string): HostTool | undefined {
    return this.#tools.find(name);
  }

  check(call: ToolCall): string | undefined {
    return this.#tools.check(call);
  }

  async execute(call: ToolCall, run: ToolRun): Promise<ToolResult> {
    if (categoryIn(this.#facts, call.tool) === "physical") return this.#act(call, run);
    const result = await this.#tools.execute(call, run);
    if (call.tool === this.#facts.observation?.tool && !result.isError) this.#observations.made(run.session);
    return result;
  }

  async #act(call: ToolCall, run: ToolRun): Promise<ToolResult> {
    const before = this.#acting;
    const done = Promise.withResolvers<void>();
    this.#acting = done.promise;
    try {
      await before;
      run.signal.throwIfAborted();
      const maxAgeMs = this.#facts.observation?.maxAgeMs;
      const isFresh = maxAgeMs !== undefined && this.#observations.isFresh(run.session, maxAgeMs);
      return isFresh ? await this.#tools.execute(call, run) : staleObservationResult(call.id, maxAgeMs);
    } finally {
      done.resolve();
    }
  }
}
