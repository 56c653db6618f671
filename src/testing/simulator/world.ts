/**
 * A world: hosts on one journal, their clients, the weather, and observers that write down what really happens. All of it is a pure
 * function of the seed.
 */

import { newSessionUid, type Clock, type Digest, type SessionUid } from "../../base/index.ts";
import { DivergenceError, ownApprovals, type ControllerLimits, type RunningTurn } from "../../controller/index.ts";
import { EventKind } from "../../gen/agentsessions/v1/common_pb.ts";
import type { JournalStore, SessionRow } from "../../journal/index.ts";
import { spawnerOf } from "../../service/index.ts";
import {
  acknowledgedViolations,
  AdmissionRules,
  JournalMonitor,
  Ledger,
  observedJournal,
  streamViolations,
  violation,
  type SessionEvidence,
} from "../invariants.ts";
import { hasItsInputs, startSeqFrom } from "../invariants/session-evidence.ts";
import { toolCallsOf } from "../invariants/tool-evidence.ts";
import { testDigest } from "../ports.ts";
import { wrongAnswer, wrongInterruption, type CallKind, type Given } from "./answers.ts";
import { busyJournal } from "./busy-journal.ts";
import { Dice } from "../dice.ts";
import { DIVERGENT, simulatedHarnesses } from "./harness-shapes.ts";
import { modelScript, toolScript } from "./scripted-model.ts";
import { SimHost } from "./sim-host.ts";
import { SimulatedTime } from "./time.ts";
import { Trace } from "./trace.ts";
import { Weather } from "./weather.ts";

/** What a world is made of. */
export interface WorldOptions {
  readonly seed: number;
  /** Opens the journal. Called again after a power cut, when the journal survives one. */
  readonly openJournal: (clock: Clock) => Promise<JournalStore>;
  /** Whether opening again finds what was there. Default false: a power cut takes the hosts only. */
  readonly survives?: boolean | undefined;
  /** Another weather than the seed's. */
  readonly weather?: Weather | undefined;
  /** The harnesses that sessions may spawn. Default: none. */
  readonly agents?: readonly string[] | undefined;
  /** Puts a fault between hosts and journal, to see that it is found. */
  readonly plant?: ((journal: JournalStore, clock: Clock) => JournalStore) | undefined;
  /** Called with each line of the trace. */
  readonly tell?: ((line: string) => void) | undefined;
}

/** So few turns at once that the limit is met. */
const TURNS_FEW = 3;

/** The limits of simulated hosts: low, so that they are met. */
function limitsFrom(dice: Dice): Partial<ControllerLimits> {
  return {
    turnRecordsMax: 40,
    turnsRunningMax: dice.pick([TURNS_FEW, 100]),
    appendsInFlightMax: dice.pick([1, 4, 64]),
    watchQueueItemsMax: dice.pick([2, 8, 1_024]),
    watchQueueBytesMax: dice.pick([600, 1_048_576]),
    historyCacheBytesMax: dice.pick([0, 3_000, 1_048_576]),
    sketchKeysMax: dice.pick([3, 500_000]),
  };
}

/** One world. */
export class World {
  readonly seed: number;
  readonly dice: Dice;
  readonly digest: Digest = testDigest;
  readonly ledger = new Ledger();
  readonly rules = new AdmissionRules();
  readonly hosts: SimHost[] = [];
  /** Every session that somebody tried to make. */
  readonly sessions: SessionUid[] = [];
  /** Turns that are over, as their hosts say. */
  readonly settled = new WeakSet<RunningTurn>();
  /** Rows that clients were shown and that nobody has judged yet. */
  readonly shown: SessionRow[] = [];
  readonly time: SimulatedTime;
  readonly weather: Weather;
  readonly monitor: JournalMonitor;
  readonly trace: Trace;
  /** How often what was done and answered. */
  readonly counts = new Map<string, number>();
  readonly #options: WorldOptions;
  readonly #limits: Partial<ControllerLimits>;
  readonly #clientCalls = new Map<SessionUid | undefined, { begun: number; underWay: number }>();
  #journal: JournalStore;
  #isBusy: () => boolean;
  #calls = 0;
  #appendsJudged = 0;
  readonly #streamsJudged = new Map<object, number>();

  private constructor(options: WorldOptions, time: SimulatedTime, opened: ReturnType<typeof busyJournal>, isBusy: { of: () => boolean }) {
    this.#options = options;
    this.seed = options.seed;
    this.dice = new Dice(options.seed);
    this.#limits = limitsFrom(this.dice.branch());
    const weather = new Weather(this.dice.branch());
    this.weather = options.weather ?? weather;
    this.time = time;
    this.#journal = opened.journal;
    this.#isBusy = opened.isBusy;
    isBusy.of = () => this.#isBusy();
    this.monitor = new JournalMonitor(opened.journal, this.ledger, this.digest);
    this.trace = new Trace(() => time.clock.nowMs(), options.tell);
  }

  static async open(options: WorldOptions): Promise<World> {
    const isBusy = { of: () => false };
    const time = new SimulatedTime(() => isBusy.of());
    const opened = busyJournal(await options.openJournal(time.clock));
    return new World(options, time, opened, isBusy);
  }

  /** The journal itself, without weather or faults. */
  get journal(): JournalStore {
    return this.#journal;
  }

  /** Hosts that take calls. */
  get up(): readonly SimHost[] {
    return this.hosts.filter((host) => host.isUp);
  }

  of(session: SessionUid): SessionEvidence {
    return this.monitor.of(session);
  }

  /** `s3`: the session's short name in traces. */
  nameOf(session: SessionUid | undefined): string {
    return session === undefined ? "" : `s${this.sessions.indexOf(session) + 1}`;
  }

  newSession(): SessionUid {
    const uid = newSessionUid({ clock: this.time.clock, random: this.dice });
    this.sessions.push(uid);
    return uid;
  }

  /** Takes the sessions that were spawned since into the account; those that wait for a person. */
  async findSpawned(): Promise<readonly SessionUid[]> {
    if (this.#options.agents === undefined) return [];
    const { rows } = await this.#journal.list({ limit: 1_000 });
    const spawned = rows.filter(({ seed }) => spawnerOf(seed) !== undefined);
    for (const { seed } of spawned.toReversed()) if (!this.sessions.includes(seed.uid)) this.sessions.push(seed.uid);
    return spawned.filter((row) => ownApprovals(row).some(({ decision }) => decision === undefined)).map(({ seed }) => seed.uid);
  }

  startHost(version = "1"): SimHost {
    const { clock } = this.time;
    const journal = this.#options.plant?.(this.#journal, clock) ?? this.#journal;
    const name = `h${this.hosts.length + 1}`;
    const dice = this.dice.branch();
    const observed = { journal, ledger: this.ledger, rules: this.rules, monitor: this.monitor, clock };
    const host = new SimHost({
      name,
      journal: observedJournal(observed, name),
      ledger: this.ledger,
      monitor: this.monitor,
      fates: this.weather,
      dice,
      clock,
      digest: this.digest,
      limits: this.#limits,
      version,
      agents: this.#options.agents ?? [],
      script: (own) => modelScript({ weather: this.weather, dice, clock: own }),
      toolScript: (own) => toolScript({ weather: this.weather, dice, clock: own }),
      harnesses: (own) =>
        simulatedHarnesses({ clock: own, throws: () => this.weather.throws(), nonce: () => dice.next(), isReplay: false }, version),
    });
    this.hosts.push(host);
    this.note(`${name} starts with version ${version}`);
    return host;
  }

  kill(host: SimHost): void {
    host.life.kill();
    this.note(`${host.name} dies`);
    this.count("death");
  }

  /** Kills every host that lives, those that are shutting down included. */
  killAll(): void {
    for (const host of this.hosts) if (!host.life.isDead) this.kill(host);
  }

  /** Every host dies at once. A journal that survives that is opened again. */
  async cutPower(): Promise<void> {
    this.killAll();
    await this.time.settle();
    if (this.#options.survives !== true) return;
    await this.#journal[Symbol.asyncDispose]();
    const opened = busyJournal(await this.#options.openJournal(this.time.clock));
    this.#journal = opened.journal;
    this.#isBusy = opened.isBusy;
    await this.monitor.reopened(opened.journal);
    this.rules.forgetLeases();
    for (const session of this.sessions) this.rules.found(session, await opened.journal.get(session));
    this.note("the journal was opened again");
  }

  note(line: string): void {
    this.trace.add(line);
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  /**
   * A client's call. Its answer is traced and judged; a call of a host that dies is answered UNAVAILABLE. `work` returns what the trace
   * says of it. Resolves with whether it was answered well; never rejects.
   */
  async call(kind: CallKind, host: SimHost, session: SessionUid | undefined, given: Given, work: () => Promise<string>): Promise<boolean> {
    const number = ++this.#calls;
    const { ledger, rules } = this;
    const before = {
      existed: session === undefined || rules.has(session),
      lastSeq: session === undefined ? 0 : this.monitor.durableSeq(session),
      contested: session !== undefined && this.#isContested(session, host),
      sinceSeq: session === undefined ? 0 : this.of(session).lastSeq,
      appends: ledger.appends.length,
      calls: this.#callsOn(session).begun,
      inherited: session !== undefined && this.hasInheritedCall(session),
    };
    this.note(`#${number} ${kind} ${this.nameOf(session)} @${host.name} ${JSON.stringify(given)}`);
    this.#callsOn(session).begun += 1;
    this.#callsOn(session).underWay += 1;
    try {
      const text = await host.life.answered(work());
      this.note(`#${number} → ${text}`);
      this.count(`${kind} ok`);
      return true;
    } catch (error) {
      const later = ledger.appends.slice(before.appends);
      const changes = later.filter((append) => append.session === session && append.answer === "appended").length;
      if (session !== undefined) await this.monitor.refresh(session);
      const wrong = wrongAnswer(error, {
        kind,
        session,
        host,
        given,
        existed: before.existed && (session === undefined || rules.has(session)),
        lastSeqs: [before.lastSeq, session === undefined ? 0 : this.monitor.durableSeq(session)],
        contested: before.contested || this.#callsOn(session).begun > before.calls + 1 || changes > 0 || this.#isHeld(session),
        changes,
        deleted: session !== undefined && rules.isDeleted(session),
        stuck:
          session !== undefined &&
          (this.isStuck(session, host.version, before.sinceSeq) || before.inherited || this.hasInheritedCall(session)),
        waits: session !== undefined && this.waits(session, before.sinceSeq),
        full: this.#limits.turnsRunningMax === TURNS_FEW,
      });
      const code = error instanceof Error && "code" in error ? String(error.code) : "?";
      this.note(`#${number} → ${code}`);
      this.count(`${kind} ${code}`);
      if (wrong !== undefined) ledger.found.push(violation("answers", { session }, `${kind}: ${wrong}`));
      return false;
    } finally {
      this.#callsOn(session).underWay -= 1;
    }
  }

  /** Follows a turn that a client was told of; one that `continues` was begun before. */
  follow(turn: RunningTurn, host: SimHost, { continues = false }: { readonly continues?: boolean } = {}): void {
    const { session, executionId, startSeq } = turn;
    if (!continues) this.ledger.told.push({ kind: "begun", session, executionId, seq: startSeq });
    void turn.outcome.then((outcome) => {
      this.settled.add(turn);
      if (host.life.isDead) return;
      this.count(outcome.kind === "ended" ? `turn ${outcome.state}` : `turn ${outcome.kind}`);
      if (outcome.kind === "ended") {
        this.note(`${host.name}: the turn of ${this.nameOf(session)} ended ${outcome.state} at ${outcome.lastSeq}`);
        this.ledger.told.push({ kind: "ended", session, executionId, seq: outcome.lastSeq, state: outcome.state });
      } else if (outcome.kind === "interrupted") {
        this.note(`${host.name}: the turn of ${this.nameOf(session)} was interrupted, ${outcome.error.code}`);
        if (outcome.error instanceof DivergenceError && DIVERGENT[this.harnessOf(session, startSeq)] === undefined) {
          this.ledger.found.push(violation("I0", { session, seq: outcome.error.divergence.seq }, outcome.error.message));
          return;
        }
        if (outcome.error instanceof DivergenceError) return this.count("divergence");
        const wrong = wrongInterruption(outcome.error, this.rules.isDeleted(session));
        if (wrong !== undefined) this.ledger.found.push(violation("answers", { session }, wrong));
      }
    });
  }

  /** The harness of the turn whose first record is at `startSeq`, and its version. */
  startOf(session: SessionUid, startSeq: number): { readonly harness: string; readonly harnessVersion: string } | undefined {
    const evidence = this.of(session);
    const body = evidence.at(startSeqFrom(evidence, startSeq))?.event.body;
    return body?.case === "executionStart" ? body.value : undefined;
  }

  harnessOf(session: SessionUid, startSeq: number): string {
    return this.startOf(session, startSeq)?.harness ?? "";
  }

  /**
   * Whether a turn that was open at some time since the journal ended at `sinceSeq` may not go on at a host with `version` of its
   * harnesses, as far as is known.
   */
  isStuck(session: SessionUid, version: string, sinceSeq: number = this.of(session).lastSeq): boolean {
    const evidence = this.of(session);
    const openThen = evidence.projections[sinceSeq]?.openTurn?.startSeq ?? sinceSeq + 1;
    return evidence.records.slice(openThen - 1).some(({ seq, kind }) => {
      if (kind !== EventKind.EVENT_EXECUTION_START) return false;
      return this.startOf(session, seq)?.harnessVersion !== version || !hasItsInputs(evidence, seq);
    });
  }

  /** Whether a fork's open turn has a call of its parent's without a result, as far as is known: nobody may take the turn up. */
  hasInheritedCall(session: SessionUid): boolean {
    const evidence = this.of(session);
    const forkSeq = this.ledger.forks.find(({ children }) => children.includes(session))?.atSeq ?? 0;
    const open = evidence.projections[evidence.lastSeq]?.openTurn;
    if (open === undefined || forkSeq === 0) return false;
    return toolCallsOf(evidence).some(({ callSeq, result }) => callSeq >= open.startSeq && callSeq <= forkSeq && result === undefined);
  }

  /** Whether an approval call of the session's own has no receipt, or had none at some moment since `sinceSeq`, as far as is known. */
  waits(session: SessionUid, sinceSeq: number = this.of(session).lastSeq): boolean {
    const forkSeq = this.ledger.forks.find(({ children }) => children.includes(session))?.atSeq ?? 0;
    const { projections, lastSeq } = this.of(session);
    const seen = projections.slice(sinceSeq, lastSeq + 1);
    return seen.some((projection) => projection?.openTurn?.approvals.some(({ requestSeq }) => requestSeq > forkSeq) === true);
  }

  /** Judges everything that is new since the last time. */
  async judge(): Promise<void> {
    const { ledger, monitor } = this;
    await monitor.refreshTouched();
    for (const append of ledger.appends.slice(this.#appendsJudged)) ledger.found.push(...acknowledgedViolations(append, monitor.sessions));
    this.#appendsJudged = ledger.appends.findIndex(({ answer }, index) => index >= this.#appendsJudged && answer === "pending");
    if (this.#appendsJudged < 0) this.#appendsJudged = ledger.appends.length;
    for (const stream of ledger.streams) {
      ledger.found.push(...streamViolations(stream, monitor.sessions, this.#streamsJudged.get(stream) ?? 0));
      this.#streamsJudged.set(stream, stream.records.length);
    }
    for (const row of this.shown.splice(0)) ledger.found.push(...this.of(row.seed.uid).rowViolations(row));
  }

  async close(): Promise<void> {
    await this.#journal[Symbol.asyncDispose]();
  }

  #isContested(session: SessionUid, host: SimHost): boolean {
    const pending = this.ledger.appends.some((append) => append.session === session && append.answer === "pending");
    const busy = this.#callsOn(session).underWay > 0 || host.controller.running(session) !== undefined;
    return this.#isHeld(session) || pending || busy;
  }

  #isHeld(session: SessionUid | undefined): boolean {
    return session !== undefined && this.rules.holder(session, this.time.clock.nowMs()) !== undefined;
  }

  #callsOn(session: SessionUid | undefined): { begun: number; underWay: number } {
    const calls = this.#clientCalls.get(session) ?? { begun: 0, underWay: 0 };
    this.#clientCalls.set(session, calls);
    return calls;
  }
}
