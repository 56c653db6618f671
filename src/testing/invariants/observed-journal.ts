/**
 * A store as one host reaches it, with an observer in between: what was asked and answered goes into the ledger, and every answer is
 * held against the rules of admission at once.
 */

import type { Clock, SessionUid } from "../../base/index.ts";
import { Lifecycle_Kind } from "../../gen/agentsessions/v1/common_pb.ts";
import type {
  AppendOutcome,
  AppendRequest,
  CreateOutcome,
  ForkOutcome,
  ForkRequest,
  JournalStore,
  ReclaimOutcome,
  RenewRequest,
  SessionSeed,
  StoreCallOptions,
} from "../../journal/index.ts";
import type { AdmissionRules } from "./admission-rules.ts";
import type { JournalMonitor } from "./journal-monitor.ts";
import type { Ledger, SeenAppend, SeenFork } from "./ledger.ts";
import { violation } from "./violation.ts";

/** What an observer needs. */
export interface JournalObserverOptions {
  readonly journal: JournalStore;
  readonly ledger: Ledger;
  readonly rules: AdmissionRules;
  readonly monitor: JournalMonitor;
  /** The store's clock. */
  readonly clock: Clock;
}

/** `options.journal` as `host` sees it. Disposing the view leaves the store open. */
export function observedJournal(options: JournalObserverOptions, host: string): JournalStore {
  const { journal } = options;
  const observer = new Observer(options, host);
  return {
    name: journal.name,
    append: (request, call) => observer.append(request, call),
    create: (seed, call) => observer.create(seed, call),
    fork: (request, call) => observer.fork(request, call),
    reclaim: (session, call) => observer.reclaim(session, call),
    adopt: (request, call) => journal.adopt(request, call),
    complete: (sessions, call) => journal.complete(sessions, call),
    renew: (request) => observer.renew(request),
    get: (session, call) => journal.get(session, call),
    list: (request) => journal.list(request),
    read: (request) => journal.read(request),
    readAsides: (request) => journal.readAsides(request),
    receipts: (session, query) => journal.receipts(session, query),
    watch: (session, listener) => journal.watch(session, listener),
    ready: (call) => journal.ready(call),
    [Symbol.asyncDispose]: async () => undefined,
  };
}

class Observer {
  readonly #options: JournalObserverOptions;
  readonly #host: string;

  constructor(options: JournalObserverOptions, host: string) {
    this.#options = options;
    this.#host = host;
  }

  async append(request: AppendRequest, call: StoreCallOptions | undefined): Promise<AppendOutcome> {
    const { session, writer, expectedLastSeq, events } = request;
    const seen: SeenAppend = {
      session,
      host: this.#host,
      writer,
      expectedLastSeq,
      events: events.map(({ event }) => event),
      answer: "pending",
      records: [],
      fence: undefined,
    };
    this.#options.ledger.appends.push(seen);
    try {
      const outcome = await this.#options.journal.append(request, call);
      this.#answered(seen, request, outcome);
      return outcome;
    } catch (error) {
      seen.answer = "threw";
      throw error;
    }
  }

  #answered(seen: SeenAppend, request: AppendRequest, outcome: AppendOutcome): void {
    const { rules, clock } = this.#options;
    seen.answer = outcome.kind;
    const due = rules.due(request, clock.nowMs());
    const suspends = seen.events.some(({ body }) => body.case === "lifecycle" && body.value.kind === Lifecycle_Kind.LIFECYCLE_SUSPEND);
    // A turn that parks suspends its session itself; a lease that a host's own failed write has left keeps nobody there from it.
    const holder = rules.holder(seen.session, clock.nowMs());
    const isForeign = request.writer.kind === "claim" && holder !== undefined && holder !== request.writer.holder;
    if (suspends && outcome.kind === "appended" && isForeign) {
      this.#found(seen, "a session was suspended while a turn of it ran");
    }
    if (due.kind !== outcome.kind) this.#found(seen, `an append was answered "${outcome.kind}" where "${due.kind}" is due`);
    if (outcome.kind !== "appended") return;
    seen.records = outcome.records;
    seen.fence = outcome.fence;
    if (due.fence !== undefined && due.fence !== outcome.fence) {
      this.#found(seen, `an append was taken under fence ${outcome.fence} where ${due.fence} is due`);
    }
    rules.taken(request, outcome.fence, clock.nowMs());
  }

  async create(seed: SessionSeed, call: StoreCallOptions | undefined): Promise<CreateOutcome> {
    const { journal, rules, monitor } = this.#options;
    monitor.track(seed.uid);
    const outcome = await journal.create(seed, call);
    if (outcome.kind === "created") rules.add(seed.uid, { fence: outcome.row.fence, lastSeq: outcome.row.projection.lastSeq });
    return outcome;
  }

  async fork(request: ForkRequest, call: StoreCallOptions | undefined): Promise<ForkOutcome> {
    const { journal, rules, monitor, ledger } = this.#options;
    const children = request.children.map(({ seed }) => seed.uid);
    for (const child of children) monitor.track(child);
    const seen: SeenFork = { parent: request.parent, atSeq: request.atSeq, children, answer: "pending" };
    ledger.forks.push(seen);
    try {
      const outcome = await journal.fork(request, call);
      seen.answer = outcome.kind === "forked" ? "forked" : "refused";
      if (outcome.kind !== "forked") return outcome;
      for (const row of outcome.rows) rules.add(row.seed.uid, { fence: row.fence, lastSeq: row.projection.lastSeq });
      return outcome;
    } catch (error) {
      seen.answer = "threw";
      throw error;
    }
  }

  /** What is about to go is read before, so that it can be judged afterwards. */
  async reclaim(session: SessionUid, call: StoreCallOptions | undefined): Promise<ReclaimOutcome> {
    const { journal, rules, monitor, ledger } = this.#options;
    await monitor.refresh(session);
    const outcome = await journal.reclaim(session, call);
    const removes = outcome.kind === "reclaimed" || outcome.kind === "kept" || outcome.kind === "more";
    if (removes && !rules.isDeleted(session))
      ledger.found.push(violation("I8", { session }, "a session that nobody deleted was reclaimed"));
    if (outcome.kind === "reclaimed") rules.reclaimed(session);
    return outcome;
  }

  async renew(request: RenewRequest): ReturnType<JournalStore["renew"]> {
    const { journal, rules, clock, ledger } = this.#options;
    const lost = await journal.renew(request);
    const due = rules.renewed(request, clock.nowMs());
    if (lost.toSorted().join() !== due.toSorted().join()) {
      ledger.found.push(violation("I6", {}, `a renewal lost ${lost.length} leases where ${due.length} are due`));
    }
    return lost;
  }

  #found({ session, host, expectedLastSeq }: SeenAppend, what: string): void {
    this.#options.ledger.found.push(violation("I6", { session, seq: expectedLastSeq }, `${what} (of host ${host})`));
  }
}
