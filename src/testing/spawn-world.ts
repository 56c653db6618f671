/** Hosts over one journal whose harnesses may spawn: for tests of sub-agents. */

import type { JsonObject } from "@bufbuild/protobuf";
import { SILENT_LOG, type SessionUid } from "../base/index.ts";
import { replaySession } from "../controller/index.ts";
import type { JournalStore, SessionRow } from "../journal/index.ts";
import { createSpawnTool, SPAWN_TOOL, spawnerOf, workerUid, type SpawnLimits, type SpawnTool } from "../service/index.ts";
import { joinTools, messageText, type Harness, type ModelCatalog, type ToolExecutor, type ToolResult } from "../spi/index.ts";
import { harnessCatalog, storyIn, testHarness, TestHost, type HarnessRun, type TestHostOptions } from "./host.ts";
import { seededPorts } from "./ports.ts";
import { gatedCall, toolCall } from "./tools.ts";

/** What a spawning world is made of. */
export interface SpawnWorldOptions {
  readonly openJournal: (ports: ReturnType<typeof seededPorts>) => JournalStore;
  /** What the harnesses do, by name; all but `test` may be spawned. */
  readonly harnesses: Readonly<Record<string, HarnessRun>>;
  readonly tools?: ToolExecutor | undefined;
  readonly models?: ModelCatalog | undefined;
  readonly limits?: Partial<SpawnLimits> | undefined;
}

/** A host that can spawn. Its tool ends with it. */
export class SpawningHost extends TestHost {
  readonly spawnTool: SpawnTool;
  /** Settles when it has looked for workers that were left behind. */
  readonly started: Promise<void>;

  constructor(options: TestHostOptions & { readonly spawnTool: SpawnTool }) {
    super(options);
    this.spawnTool = options.spawnTool;
    this.started = options.spawnTool.start(this.controller);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    await this.spawnTool[Symbol.asyncDispose]();
  }
}

/** One journal, and any number of hosts. */
export class SpawnWorld {
  readonly ports = seededPorts();
  readonly journal: JournalStore;
  readonly harnesses: Readonly<Record<string, Harness>>;
  readonly #options: SpawnWorldOptions;

  constructor(options: SpawnWorldOptions) {
    this.#options = options;
    this.journal = options.openJournal(this.ports);
    this.harnesses = Object.fromEntries(Object.entries(options.harnesses).map(([name, run]) => [name, testHarness(run)]));
  }

  /** Who may be spawned. */
  get agents(): readonly string[] {
    return Object.keys(this.harnesses).filter((name) => name !== "test");
  }

  host(more: Partial<TestHostOptions> = {}): SpawningHost {
    const { ports, agents } = this;
    const { tools, models, limits } = this.#options;
    const { journal = this.journal, harnesses = this.harnesses } = more;
    const spawnTool = createSpawnTool({ agents, limits, journal, harnesses: harnessCatalog(harnesses), ports, log: SILENT_LOG });
    const executor = tools === undefined ? spawnTool : joinTools(spawnTool, tools);
    return new SpawningHost({ journal, ports, harnesses, models, tools: executor, spawnTool, ...more });
  }

  /** The worker of the call under `key`. */
  worker(parent: SessionUid, key: string): SessionUid {
    return workerUid(parent, key, this.ports.digest);
  }

  /** What `parent` has spawned, as the sessions say it, the oldest first. */
  async workers(parent: SessionUid): Promise<readonly SessionRow[]> {
    const { rows } = await this.journal.list({ limit: 1_000, includeDeleted: true });
    return rows.filter(({ seed }) => spawnerOf(seed) === parent).toReversed();
  }

  /** How each ended turn replays: `same`, or why not. */
  async checks(session: SessionUid): Promise<string[]> {
    const { journal, ports, harnesses } = this;
    const row = await journal.get(session);
    if (row === undefined) throw new Error("no such session");
    const checks = await Array.fromAsync(replaySession({ journal, ports, harnesses: harnessCatalog(harnesses) }, { row }));
    return checks.map(({ outcome }) => (outcome.kind === "diverged" ? `diverged: ${outcome.divergence.reason}` : outcome.kind));
  }
}

/** A call of `spawn`. */
export function spawnCall(id: string, args: JsonObject): ReturnType<typeof toolCall> {
  return toolCall(SPAWN_TOOL, id, { args });
}

/** What workers and their spawners do, by name. */
export const SPAWN_AGENTS = {
  /** Says its prompt again. */
  echo: async ({ inputs }, sink) => sink.output(`you said ${messageText(inputs[0]!)}`),
  /** Says what a model says. */
  thinker: async ({ inputs, model }, sink) => void (await sink.model({ model, messages: inputs })),
  /** Asks a person twice before it answers. */
  asker: async (_, sink) => {
    await Promise.all([sink.toolCall(gatedCall("send", "s1")), sink.toolCall(gatedCall("send", "s2"))]);
    await sink.output("sent");
  },
  /** Spawns an agent by its first word with the rest, and says what came of it. */
  boss: async ({ inputs }, sink) => {
    const [agent = "", ...rest] = messageText(inputs[0]!).split(" ");
    await sink.output(resultWords(await sink.toolCall(spawnCall("c1", { agent, prompt: rest.join(" ") }))));
  },
} satisfies Readonly<Record<string, HarnessRun>>;

/** The texts of a result. */
export function resultWords({ content, isError }: ToolResult): string {
  const text = content.map(({ part }) => (part.case === "text" ? part.value.text : "?")).join("|");
  return isError ? `failed: ${text}` : text;
}

/** Resolves with the session's story once it `is` so. */
export async function storyUntil(
  world: SpawnWorld,
  session: SessionUid,
  is: (story: readonly string[]) => boolean,
): Promise<readonly string[]> {
  let rung = Promise.withResolvers<void>();
  const unwatch = world.journal.watch(session, () => rung.resolve());
  try {
    for (;;) {
      rung = Promise.withResolvers();
      const story = await storyIn(world.journal, session);
      if (is(story)) return story;
      await rung.promise;
    }
  } finally {
    unwatch();
  }
}
