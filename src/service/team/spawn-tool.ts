/**
 * The tool `spawn`: a sub-agent as a session of its own. It runs one turn with the prompt, and its last words are the call's result.
 *
 * Invariants:
 * - The worker's uid follows from the spawner's and from the call's idempotency key, so a call that is driven again after a crash finds the
 *   same worker and goes on with it: the tool is idempotent (I3).
 * - Everything that a worker costs and does is in its own journal; the spawner's has the call and its result.
 * - Whoever asks is refused by a result, never by an error: a model can mend that.
 */

import { utf8Length } from "../../base/bytes.ts";
import { HoldfastError } from "../../base/errors.ts";
import type { SessionUid } from "../../base/ids.ts";
import type { Log, Ports } from "../../base/ports.ts";
import type { Controller } from "../../controller/index.ts";
import type { JournalStore, SessionRow, SessionSeed } from "../../journal/index.ts";
import {
  InterruptedCallError,
  type HarnessCatalog,
  type HostTool,
  type ToolCall,
  type ToolExecutor,
  type ToolResult,
  type ToolRun,
} from "../../spi/index.ts";
import { depthOf, spawnerOf, workerAnnotations } from "./annotations.ts";
import { HandDown, type FollowedWorker } from "./hand-down.ts";
import { spawnArguments, spawnDefinition, spawnFault, type SpawnArguments } from "./spawn-arguments.ts";
import { SPAWN_TOOL, workerUid } from "./spawn-call.ts";
import { SPAWN_LIMITS, type SpawnLimits } from "./spawn-limits.ts";
import { refusedSpawn, spawnResult, type WorkerAnswer } from "./spawn-result.ts";
import { RememberedSpawns } from "./spawned.ts";
import { driveWorker } from "./worker.ts";

/** What a host may spawn. */
export interface SpawnOptions {
  /** The harnesses that workers may run, by name; one at least. */
  readonly agents: readonly string[];
  readonly limits?: Partial<SpawnLimits> | undefined;
  readonly journal: JournalStore;
  readonly harnesses: HarnessCatalog;
  readonly ports: Ports;
  readonly log: Log;
}

/** The tool of one host. Disposing of it stops watching the spawners; workers are the controller's. */
export interface SpawnTool extends ToolExecutor, AsyncDisposable {
  /**
   * Gives it the controller that runs the workers, which is made with this tool and so comes after it; before that it spawns nothing.
   * Workers that an earlier process left behind are cancelled. Resolves when they were looked for; never rejects.
   */
  start(controller: Controller): Promise<void>;
}

/** Creates it. */
export function createSpawnTool(options: SpawnOptions): SpawnTool {
  return new HostSpawnTool(options);
}

/** What a call finds or makes: its worker, or why there is none. */
type Placed = { readonly kind: "placed"; readonly row: SessionRow } | { readonly kind: "refused"; readonly why: string };

class HostSpawnTool implements SpawnTool {
  readonly #options: SpawnOptions;
  readonly #limits: SpawnLimits;
  readonly #tool: HostTool;
  readonly #spawns: RememberedSpawns;
  #team: { readonly controller: Controller; readonly handDown: HandDown } | undefined;

  constructor(options: SpawnOptions) {
    this.#options = options;
    this.#limits = { ...SPAWN_LIMITS, ...options.limits };
    this.#tool = { definition: spawnDefinition(options.agents), idempotent: true };
    this.#spawns = new RememberedSpawns(options.journal);
  }

  async start(controller: Controller): Promise<void> {
    const { journal, ports, log } = this.#options;
    const handDown = new HandDown({ journal, controller, clock: ports.clock, digest: ports.digest, log });
    this.#team = { controller, handDown };
    await handDown.start();
  }

  list(): readonly HostTool[] {
    return [this.#tool];
  }

  find(name: string): HostTool | undefined {
    return name === SPAWN_TOOL ? this.#tool : undefined;
  }

  check(call: ToolCall): string | undefined {
    return spawnFault(call.args ?? {}, this.#options.agents);
  }

  async execute(call: ToolCall, run: ToolRun): Promise<ToolResult> {
    const parent = await this.#options.journal.get(run.session);
    const turnSeq = parent?.projection.openTurn?.startSeq;
    if (this.#team === undefined || parent === undefined || turnSeq === undefined) {
      throw new InterruptedCallError(new HoldfastError("unavailable", "spawn: the host does not run sessions now; resume the turn later"));
    }
    const args = spawnArguments(call.args ?? {}, this.#options.agents);
    const placed = await this.#place(parent, call, args);
    if (placed.kind === "refused") return refusedSpawn(call.id, placed.why);
    const worker = placed.row.seed.uid;
    const answer = await this.#drive({ parent: run.session, worker, callId: call.id, turnSeq }, args.prompt, run.signal);
    return spawnResult(call.id, worker, answer, this.#limits.answerBytesMax);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#team?.handDown[Symbol.asyncDispose]();
  }

  async #drive(followed: FollowedWorker, prompt: string, signal: AbortSignal): Promise<WorkerAnswer> {
    const { journal, ports } = this.#options;
    const { controller, handDown } = this.#team!;
    const { timeoutMs } = this.#limits;
    handDown.follow(followed);
    try {
      const context = { journal, controller, clock: ports.clock };
      const answer = await driveWorker(context, { worker: followed.worker, spawner: followed.parent, prompt, timeoutMs, signal });
      handDown.unfollow(followed);
      return answer;
    } catch (error) {
      // The spawner's turn may have ended before its worker's had begun: nothing would tell of that again.
      if (signal.aborted) await handDown.look(followed);
      throw error;
    }
  }

  /** The worker of a call: as it is there already, or made now. */
  async #place(parent: SessionRow, call: ToolCall, args: SpawnArguments): Promise<Placed> {
    const uid = workerUid(parent.seed.uid, call.idempotencyKey, this.#options.ports.digest);
    const there = await this.#options.journal.get(uid);
    if (there !== undefined) return placedIn(there, parent.seed.uid);
    const why = await this.#refusal(parent, call, args);
    return why === undefined ? this.#create(parent.seed, uid, args) : { kind: "refused", why };
  }

  async #refusal(parent: SessionRow, call: ToolCall, { agent, prompt }: SpawnArguments): Promise<string | undefined> {
    const { depthMax, childrenMax, promptBytesMax } = this.#limits;
    const bytes = utf8Length(prompt);
    if (bytes > promptBytesMax) return `the prompt takes ${bytes} bytes; at most ${promptBytesMax} are allowed`;
    if (depthOf(parent.seed) >= depthMax)
      return `this session is ${depthOf(parent.seed)} spawns deep already, and no deeper one is allowed`;
    if (this.#options.harnesses.find(agent)?.open !== true) return `this host cannot serve the agent ${agent} now`;
    if ((await this.#spawns.countBefore(parent, call.idempotencyKey)) >= childrenMax)
      return `this session has spawned ${childrenMax} times already, which is all that is allowed`;
    return undefined;
  }

  async #create(parent: SessionSeed, uid: SessionUid, { agent, name }: SpawnArguments): Promise<Placed> {
    const { journal, ports } = this.#options;
    const { project, model, identity } = parent;
    const annotations = workerAnnotations(parent);
    const createTimeMs = ports.clock.nowMs();
    const seed = { uid, project, name, harness: agent, model, identity, origin: undefined, labels: {}, annotations, createTimeMs };
    const outcome = await journal.create(seed);
    switch (outcome.kind) {
      case "created":
        return { kind: "placed", row: outcome.row };
      case "name-taken":
        return { kind: "refused", why: "another session has this name; give another one, or none" };
      case "uid-taken": {
        const row = await journal.get(uid);
        if (row === undefined) throw new HoldfastError("internal", "session: what has a worker's uid is not there");
        return placedIn(row, parent.uid);
      }
    }
  }
}

/** What has the worker's uid is the worker, unless somebody has brought it from elsewhere. */
function placedIn(row: SessionRow, parent: SessionUid): Placed {
  return spawnerOf(row.seed) === parent
    ? { kind: "placed", row }
    : { kind: "refused", why: "another session has the uid that it would have" };
}
