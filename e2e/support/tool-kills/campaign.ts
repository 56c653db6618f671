/**
 * Tool turns while their server is killed with SIGKILL again and again, at moments that a seed draws: while it starts, in the middle of model calls and
 * tool calls, between intent and effect, between effect and result, while turns are resumed. Afterwards everything that the tools did is compared with
 * everything that was recorded (`check.ts`).
 */

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { SeededRandom } from "../../../src/testing/ports.ts";
import { violationsIn, type Evidence } from "./check.ts";
import { gather, settleAll, type Gathered } from "./evidence.ts";
import { Doorway, HostProcess } from "./host-process.ts";
import { startLedgerModel } from "./model.ts";
import { planTurn } from "./plan.ts";
import { createSession, runTurn, type TurnCounts } from "./worker.ts";

export interface CampaignOptions {
  /** An empty folder. */
  readonly folder: string;
  /** How many tool turns are to end. */
  readonly turns: number;
  readonly seed: number;
  /** Sessions that run at once. */
  readonly sessions: number;
  /** How long a server lives at most, from when it listens. */
  readonly lifeMsMax: number;
  /** In how many turns it takes part at most: where they are fast, it is killed as often as where they are slow. */
  readonly lifeTurnsMax: number;
  /** Told now and then how far it is. */
  readonly tell?: (line: string) => void;
}

/** What a run came to. */
export interface CampaignReport {
  readonly evidence: Evidence;
  /** What is not as it must be; empty where all is. */
  readonly violations: readonly string[];
  /** Tool turns that ended COMPLETED. */
  readonly turns: number;
  readonly sessions: number;
  readonly records: number;
  readonly calls: number;
  readonly kills: number;
  /** Of these, at a moment that was drawn from the start on, before the server listened or right after. */
  readonly killsAtStart: number;
  readonly resumes: number;
  readonly approvals: number;
  /** Runs of idempotent tools beyond the first of a call: what was driven again after a kill. */
  readonly repeats: number;
  /** Calls whose outcome is recorded as unknown, by whether they took effect. */
  readonly unknownDone: number;
  readonly unknownNotDone: number;
  readonly seconds: number;
}

/** A session is left after so many turns: its conversation would grow, and with it what each turn sends. */
const TURNS_PER_SESSION = 20;
/** One life in this many is ended before the server listens. */
const EARLY_ONE_IN = 10;
const START_MS_MAX = 600;
/** A kill that comes after a turn's end comes so much later at most, in the middle of something else. */
const AFTER_TURN_MS_MAX = 30;
const TOLD_EVERY = 500;

/** Runs it to its end. Rejects where a turn cannot be brought to its end. */
export async function runCampaign(options: CampaignOptions): Promise<CampaignReport> {
  const startedMs = performance.now();
  return await new Campaign(options).run(startedMs);
}

class Campaign {
  readonly #options: CampaignOptions;
  readonly #door = new Doorway();
  readonly #killing: SeededRandom;
  readonly #sessions: string[] = [];
  readonly #counts: TurnCounts = { resumes: 0, approvals: 0 };
  readonly #data: string;
  readonly #ledgers: string;
  #begun = 0;
  #ended = 0;
  #kills = 0;
  #killsAtStart = 0;
  /** Told when a turn has ended. */
  #onEnded: () => void = () => undefined;

  constructor(options: CampaignOptions) {
    this.#options = options;
    this.#killing = new SeededRandom(options.seed);
    this.#data = join(options.folder, "data");
    this.#ledgers = join(options.folder, "ledgers");
    mkdirSync(this.#data, { recursive: true });
    mkdirSync(this.#ledgers, { recursive: true });
  }

  async run(startedMs: number): Promise<CampaignReport> {
    const { sessions } = this.#options;
    const over = new AbortController();
    const working = Promise.all(Array.from({ length: sessions }, (_, index) => this.#work(index))).finally(() => over.abort());
    await Promise.all([working, this.#killUntil(over.signal)]);
    await this.#door[Symbol.asyncDispose]();
    await using model = await startLedgerModel();
    const host = this.#start(model.openAiBaseUrl, "leave");
    await using client = await host.ready;
    const gathered = await gather(client, this.#sessions, this.#ledgers);
    const left = await settleAll(client, this.#sessions, gathered.evidence);
    await host.end();
    return this.#report(gathered, left, (performance.now() - startedMs) / 1000);
  }

  /** Runs turns, session after session, until enough have begun. */
  async #work(index: number): Promise<void> {
    const { turns, seed } = this.#options;
    const random = new SeededRandom(seed ^ ((index + 1) * 0x9e37));
    let session = "";
    for (let count = 0; this.#begun < turns; count++) {
      this.#begun += 1;
      if (count % TURNS_PER_SESSION === 0) this.#sessions.push((session = await createSession(this.#door)));
      await runTurn(this.#door, session, planTurn(`w${index}-t${count}`, random), this.#counts);
      this.#ended += 1;
      this.#onEnded();
      if (this.#ended % TOLD_EVERY === 0) this.#options.tell?.(`${this.#ended} turns ended, ${this.#kills} kills`);
    }
  }

  /** Starts servers and kills them. The last one is killed as well: what is looked at afterwards is what a kill left. */
  async #killUntil(over: AbortSignal): Promise<void> {
    const random = this.#killing;
    while (!over.aborted) {
      await using model = await startLedgerModel();
      const host = this.#start(model.openAiBaseUrl, random.below(2) === 0 ? "leave" : "resume");
      const withTools = random.below(2) === 0;
      const isEarly = random.below(EARLY_ONE_IN) === 0;
      if (isEarly) await this.#dieEarly(host, random.below(START_MS_MAX), withTools);
      else await this.#live(host, { withTools, over });
      this.#kills += 1;
      const refused = model.requests.find(({ refusal }) => refusal !== undefined);
      if (refused !== undefined) throw new Error(`a provider would refuse a request: ${refused.refusal}`);
    }
  }

  /** A life that may end before anybody was served. */
  async #dieEarly(host: HostProcess, afterMs: number, withTools: boolean): Promise<void> {
    await pause(afterMs);
    await host.kill({ withTools });
    this.#killsAtStart += 1;
  }

  /** A life in which clients are served until they are cut off. */
  async #live(host: HostProcess, end: { readonly withTools: boolean; readonly over: AbortSignal }): Promise<void> {
    const { lifeMsMax, lifeTurnsMax } = this.#options;
    const random = this.#killing;
    const [ms, turns, afterMs] = [random.below(lifeMsMax), random.below(lifeTurnsMax) + 1, random.below(AFTER_TURN_MS_MAX)];
    await this.#door.open(await host.ready);
    await this.#lived(ms, turns, end.over);
    await pause(afterMs);
    await host.kill(end);
    this.#door.close();
  }

  /** Resolves when so much time has gone by, when so many turns have ended, or when all is over. */
  async #lived(ms: number, turns: number, over: AbortSignal): Promise<void> {
    const enough = new AbortController();
    const due = this.#ended + turns;
    this.#onEnded = () => {
      if (this.#ended >= due) enough.abort();
    };
    await pause(ms, undefined, { signal: AbortSignal.any([over, enough.signal]) }).catch(() => undefined);
    this.#onEnded = () => undefined;
  }

  #start(modelUrl: string, recover: "leave" | "resume"): HostProcess {
    return new HostProcess({ data: this.#data, ledgers: this.#ledgers, modelUrl, recover, life: this.#kills });
  }

  #report({ evidence, toolTurns, records }: Gathered, left: readonly string[], seconds: number): CampaignReport {
    const unknown = evidence.calls.filter(({ results }) => results.includes("unknown"));
    const happened = new Set(evidence.always.map(({ mark }) => mark));
    const unknownDone = unknown.filter(({ mark }) => happened.has(mark)).length;
    return {
      evidence,
      violations: [
        ...violationsIn(evidence),
        ...left.map((mark) => `${mark}: it is unsettled after it was settled`),
        ...(toolTurns === this.#options.turns ? [] : [`${toolTurns} tool turns are on record as completed`]),
      ],
      turns: toolTurns,
      sessions: this.#sessions.length,
      records,
      calls: evidence.calls.length,
      kills: this.#kills,
      killsAtStart: this.#killsAtStart,
      ...this.#counts,
      repeats: evidence.attempts.length - new Set(evidence.attempts.map(({ mark }) => mark)).size,
      unknownDone,
      unknownNotDone: unknown.length - unknownDone,
      seconds,
    };
  }
}
