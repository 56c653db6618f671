/**
 * Random operations, checked against the model. Operations of one step are asked in one tick, so they meet in one transaction.
 * A failing case names its seed, and a seed always makes the same operations.
 */

import assert from "node:assert/strict";
import type { HostId } from "../../base/index.ts";
import type { Event } from "../../gen/agentsessions/v1/common_pb.ts";
import type { AppendOutcome, CreateOutcome, ForkOutcome, JournalStore, ListRequest, Writer } from "../../journal/index.ts";
import { SeededRandom } from "../ports.ts";
import type { CaseTable, StoreUnderTest } from "./conformance.ts";
import {
  deletion,
  end,
  executionStart,
  fence,
  forkMarker,
  output,
  pagesOf,
  projectionOf,
  recordsOf,
  requireChain,
  seedOf,
  seq,
  textsOf,
  uid,
} from "./fixtures.ts";
import { reclaimed } from "./reclaim-cases.ts";
import { ModelStore, type ModelAppend, type ModelFork, type ModelSession, type ModelWriter } from "./model.ts";

const SEEDS = [1, 2, 3, 4, 5, 6];
const STEPS = 60;
const LEASE_MS = 40;

export const RANDOM_CASES: CaseTable = Object.fromEntries(
  SEEDS.map((seed) => [`a store does what the model does (seed ${seed})`, (test: StoreUnderTest) => new Run(test, seed).all()]),
);

/** One call of the store and what the model says to it. */
interface Operation {
  readonly what: string;
  readonly expected: string;
  readonly call: () => Promise<string>;
}

class Run {
  readonly #test: StoreUnderTest;
  readonly #random: SeededRandom;
  readonly #model = new ModelStore();
  readonly #trace: string[] = [];
  #uids = 0;
  #texts = 0;

  constructor(test: StoreUnderTest, seed: number) {
    this.#test = test;
    this.#random = new SeededRandom(seed);
  }

  async all(): Promise<void> {
    for (let step = 0; step < STEPS; step++) {
      await this.#step();
      if (this.#chance(3)) await this.#reclaim();
      if (this.#chance(4)) await this.#elapse(this.#random.below(LEASE_MS * 2));
      if (this.#chance(12)) await this.#reopen();
      await this.#compareSome();
    }
    for (const session of this.#model.sessions.values()) await this.#compareSession(session);
  }

  get #store(): JournalStore {
    return this.#test.store;
  }

  async #step(): Promise<void> {
    const count = 1 + this.#random.below(6);
    const operations: Operation[] = [];
    // A fork is given what is durable before the step; all else is made up as the step goes.
    if (this.#chance(4)) operations.push(await this.#fork());
    while (operations.length < count) operations.push(this.#operation());
    this.#trace.push(operations.map(({ what }) => what).join(" + "));
    const answers = await Promise.all(operations.map(({ call }) => call()));
    operations.forEach(({ what, expected }, index) => {
      assert.equal(answers[index], expected, `${what}, after:\n${this.#trace.slice(-6).join("\n")}`);
    });
  }

  #operation(): Operation {
    const dice = this.#random.below(10);
    if (dice < 2) return this.#create();
    return dice < 9 ? this.#append() : this.#renew();
  }

  #create(): Operation {
    const seed = { ...this.#newSeed(), ...(this.#chance(6) ? { uid: this.#someUid() } : {}) };
    const expected = this.#model.create(seed);
    const call = async () => kindOf(await this.#store.create(seedOf(seed.uid, { ...seed, uid: uid(seed.uid) })));
    return { what: `create ${seed.uid} ${seed.project}/${seed.name}`, expected, call };
  }

  #append(): Operation {
    const session = this.#someUid();
    const writer = this.#writer(session);
    const head = this.#model.sessions.get(session)?.records.length ?? 0;
    const expected = [undefined, head, head, Math.max(0, head - 1), head + 1][this.#random.below(5)];
    const request: ModelAppend = { session, writer, expected, texts: this.#someTexts() };
    return { what: `append ${JSON.stringify(request)}`, expected: this.#model.append(request), call: () => this.#callAppend(request) };
  }

  async #callAppend({ session, writer, expected, texts }: ModelAppend): Promise<string> {
    const outcome = await this.#store.append({
      session: uid(session),
      writer: writerOf(writer),
      expectedLastSeq: expected === undefined ? undefined : seq(expected),
      events: texts.map((text) => ({ event: eventOf(text) })),
    });
    return appendText(outcome);
  }

  async #fork(): Promise<Operation> {
    const parent = this.#someUid();
    const head = this.#model.sessions.get(parent)?.records.length ?? 0;
    const atSeq = head === 0 || this.#chance(8) ? head + 1_000 : 1 + this.#random.below(head);
    const prefix = (await recordsOf(this.#store, parent)).slice(0, atSeq);
    const children = Array.from({ length: 1 + this.#random.below(3) }, () => this.#newSeed());
    const request: ModelFork = { parent, atSeq, children };
    const call = async () =>
      kindOf(
        await this.#store.fork({
          parent: uid(parent),
          atSeq: seq(atSeq),
          projection: projectionOf(prefix),
          children: children.map((child) => ({
            seed: seedOf(child.uid, { ...child, uid: uid(child.uid) }),
            marker: { event: forkMarker() },
          })),
        }),
      );
    return { what: `fork ${JSON.stringify(request)}`, expected: this.#model.fork(request), call };
  }

  /** A step of its own: what a store keeps for children that go in the same transaction is its own affair. */
  async #reclaim(): Promise<void> {
    const session = this.#someUid();
    this.#trace.push(`reclaim ${session}`);
    const expected = this.#model.reclaim(session);
    const outcome = await reclaimed(this.#store, session);
    assert.equal(outcome.kind === "kept" ? `kept ${outcome.keptSeq}` : outcome.kind, expected, this.#trace.slice(-6).join("\n"));
  }

  #renew(): Operation {
    const holder = this.#host();
    const wanted = Array.from({ length: 3 }, () => {
      const session = this.#someUid();
      return { session, fence: this.#model.sessions.get(session)?.fence ?? 0 };
    });
    const sessions = wanted.filter(({ session }, index) => wanted.findIndex((other) => other.session === session) === index);
    const call = async () => {
      const asked = sessions.map((of) => ({ session: uid(of.session), fence: fence(of.fence) }));
      return `lost ${(await this.#store.renew({ holder, leaseMs: LEASE_MS, sessions: asked })).join()}`;
    };
    return { what: `renew ${holder} ${JSON.stringify(sessions)}`, expected: this.#model.renew(holder, LEASE_MS, sessions), call };
  }

  #writer(session: string): ModelWriter {
    const newest = this.#model.sessions.get(session)?.fence ?? 0;
    const under = this.#chance(5) ? newest + this.#random.below(3) - 1 : newest;
    switch (this.#random.below(4)) {
      case 0: {
        const keep = this.#chance(3) ? { keep: Math.max(0, under) } : {};
        return { kind: "claim", holder: this.#host(), leaseMs: LEASE_MS, takeOver: this.#chance(4), ...keep };
      }
      case 1:
        return { kind: "release", fence: Math.max(0, under) };
      default:
        return { kind: "hold", fence: Math.max(0, under) };
    }
  }

  #someTexts(): string[] {
    if (this.#chance(25)) return ["delete"];
    return Array.from(
      { length: this.#random.below(4) },
      () => ["start", "end", `text ${this.#texts++}`, `text ${this.#texts++}`][this.#random.below(4)]!,
    );
  }

  #newSeed() {
    const name = this.#chance(3) ? `name-${this.#random.below(4)}` : "";
    return { uid: `s${this.#uids++}`, project: this.#chance(2) ? "p" : "", name, createTimeMs: this.#random.below(5) };
  }

  /** A uid that exists, as a rule. */
  #someUid(): string {
    return this.#uids === 0 || this.#chance(30) ? "nobody" : `s${this.#random.below(this.#uids)}`;
  }

  #host(): HostId {
    return (this.#chance(2) ? "host-a" : "host-b") as HostId;
  }

  #chance(one: number): boolean {
    return this.#random.below(one) === 0;
  }

  async #elapse(ms: number): Promise<void> {
    this.#trace.push(`elapse ${ms}`);
    this.#model.nowMs += ms;
    await this.#test.elapse(ms);
  }

  /** Whether leases outlive a store is its own affair, so they run out first. */
  async #reopen(): Promise<void> {
    if (this.#test.reopen === undefined) return;
    await this.#elapse(LEASE_MS + 1);
    for (const session of this.#model.sessions.values()) session.holder = undefined;
    this.#trace.push("reopen");
    await this.#test.reopen();
  }

  async #compareSome(): Promise<void> {
    const sessions = [...this.#model.sessions.values()];
    const session = sessions[this.#random.below(Math.max(1, sessions.length))];
    if (session !== undefined) await this.#compareSession(session);
    await this.#compareList();
  }

  async #compareSession(session: ModelSession): Promise<void> {
    const context = `${session.uid}, after:\n${this.#trace.slice(-6).join("\n")}`;
    const row = await this.#store.get(uid(session.uid));
    assert.ok(row, context);
    const holder = this.#model.holderOf(session);
    assert.deepEqual(
      [row.fence, row.version, row.holder, row.projection.lastSeq, row.projection.openTurn !== undefined, row.parent?.uid, row.keptSeq],
      [session.fence, session.version, holder, session.records.length, session.openTurn, session.parent, session.kept],
      context,
    );
    const records = await recordsOf(this.#store, session.uid);
    requireChain(records);
    assert.deepEqual(
      textsOf(records).map((text, index) => ({ text, fence: records[index]?.fence })),
      session.records.slice(0, session.kept),
      context,
    );
    if (session.kept === undefined) assert.deepEqual(row.projection.headHash, records.at(-1)?.contentHash ?? "", context);
    const from = 1 + this.#random.below(session.records.length + 1);
    const range = await pagesOf(this.#store, { session: uid(session.uid), fromSeq: seq(from), pageRecordsMax: 1 + this.#random.below(4) });
    assert.deepEqual(range.flat(), records.slice(from - 1), context);
  }

  async #compareList(): Promise<void> {
    const parent = this.#chance(3) ? uid(this.#someUid()) : undefined;
    const request: Omit<ListRequest, "limit"> = {
      project: [undefined, "", "p"][this.#random.below(3)],
      parent,
      openTurn: [undefined, true, false][this.#random.below(3)],
      includeDeleted: this.#chance(2),
      sinceMs: this.#chance(3) ? this.#random.below(5) : undefined,
    };
    const limit = 1 + this.#random.below(5);
    const uids: string[] = [];
    for (let after: ListRequest["after"], more = true; more; more = after !== undefined) {
      const page = await this.#store.list({ ...request, limit, after });
      uids.push(...page.rows.map((row) => row.seed.uid));
      assert.ok(uids.length <= this.#model.sessions.size, "the listing ends");
      after = page.next;
    }
    assert.deepEqual(uids, this.#model.list(request), JSON.stringify(request));
  }
}

function writerOf(writer: ModelWriter): Writer {
  if (writer.kind !== "claim") return { kind: writer.kind, fence: fence(writer.fence) };
  const { holder, leaseMs, takeOver, keep } = writer;
  return { kind: "claim", holder: holder as HostId, leaseMs, takeOver, keep: keep === undefined ? undefined : fence(keep) };
}

function eventOf(text: string): Event {
  switch (text) {
    case "start":
      return executionStart();
    case "end":
      return end();
    case "delete":
      return deletion();
    default:
      return output(text);
  }
}

function appendText(outcome: AppendOutcome): string {
  switch (outcome.kind) {
    case "appended":
      return `appended ${outcome.projection.lastSeq} under ${outcome.fence}`;
    case "conflict":
      return `conflict ${outcome.lastSeq}`;
    case "fenced":
      return `fenced ${outcome.fence}`;
    case "held":
      return `held ${outcome.holder}`;
    case "not-found":
    case "deleted":
      return outcome.kind;
  }
}

function kindOf(outcome: CreateOutcome | ForkOutcome): string {
  if (outcome.kind === "past-head" || outcome.kind === "conflict") return `${outcome.kind} ${outcome.lastSeq}`;
  return outcome.kind === "name-taken" && "name" in outcome ? `name-taken ${outcome.name}` : outcome.kind;
}
