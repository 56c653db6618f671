/**
 * Budgets: how much turns, sessions, their families and projects may spend.
 *
 * Invariants:
 * - Sums are the journal's: they are read from it once and then kept up, so a restart changes none. Only this host's spending of a family
 *   and a project is known to it while it runs: what goes with reclaimed sessions, or comes with imported ones, it counts from its next start on.
 * - What is remembered of a session holds while its last record is the same: a uid can come back with other records (reclaimed here, then
 *   imported again), and as another's child.
 * - It is looked before something is spent. What is under way is let end, so the call that crosses a limit is the last one.
 * - A limit that is reached names itself, and how much was used.
 */

import { ERROR_CODES, HoldfastError } from "../base/errors.ts";
import type { SessionUid } from "../base/ids.ts";
import type { Clock } from "../base/ports.ts";
import type { Head, JournalStore, ListCursor, SessionRow } from "../journal/index.ts";
import type { EventError } from "../spi/index.ts";
import { addSpending, encodedSpending, nothingSpent, readSpending, type SessionSpending, type Spending } from "./spent.ts";

/** Limits; undefined for none. */
export type BudgetLimits = { readonly [Key in keyof Spending]?: number | undefined };

/** What may be spent, and by whom. */
export interface BudgetConfig {
  /** One turn; how many turns there are is of no concern to it. */
  readonly turn?: BudgetLimits | undefined;
  /** A session's own records. */
  readonly session?: BudgetLimits | undefined;
  /** A session, what it was forked from, and all forks of these. */
  readonly tree?: BudgetLimits | undefined;
  /** All sessions of a project. */
  readonly project?: BudgetLimits | undefined;
}

/** The annotation by which a session that was spawned points at its spawner's uid: it belongs to that one's tree. */
export const SPAWNED_BY_ANNOTATION = "holdfast.dev/spawned-by";

/** How the error begins of a turn that a budget ended. */
const FAULT_PREFIX = "budget ";

const SCOPES = ["turn", "session", "tree", "project"] as const;
type Scope = (typeof SCOPES)[number];

/** Sums that the turns of several sessions add to. */
interface SharedLedger {
  readonly sums: Promise<Spending>;
  /** Turns that use it, or are about to: while there is one, it is not forgotten. */
  users: number;
}

/** Ledgers that are remembered while nobody needs them. */
const LEDGERS_MAX = 10_000;
const PAGE_ROWS = 500;

/** What budgets need of their controller. */
export interface BudgetsOptions {
  readonly journal: JournalStore;
  readonly clock: Clock;
  readonly config: BudgetConfig;
}

/** The budgets of one host. */
export class Budgets {
  readonly #options: BudgetsOptions;
  /** Sums of sessions that nobody runs, good while the last record is the one that it was; the least recently used first. */
  readonly #sessions = new Map<SessionUid, { readonly sums: Spending; readonly head: Head }>();
  /** By what they are of, the least recently used first. */
  readonly #shared = new Map<string, SharedLedger>();
  readonly #families = new Map<string, Promise<Families>>();

  constructor(options: BudgetsOptions) {
    this.#options = options;
  }

  /**
   * The meter of a turn that is about to begin, or to go on. Throws RESOURCE_EXHAUSTED for a new one where a budget is used up. Whoever
   * gets it closes it.
   */
  async open(row: SessionRow, turn: { readonly isNew: boolean }): Promise<Meter> {
    const { config, clock } = this.#options;
    const { uid, project } = row.seed;
    const used: SharedLedger[] = [];
    const close = (): void => used.forEach((ledger) => (ledger.users -= 1));
    try {
      const own = await this.#ownSums(row, turn.isNew);
      const sums = new Map<Scope, Spending>([
        ["turn", own.turn],
        ["session", own.session],
      ]);
      if (config.tree !== undefined) {
        const root = await (await this.#familiesOf(project)).rootOf(row);
        sums.set("tree", await this.#sharedSums(`tree ${root}`, used, () => this.#treeSums(project, root)));
      }
      if (config.project !== undefined) {
        sums.set("project", await this.#sharedSums(`project ${project}`, used, () => this.#projectSums(project)));
      }
      const onClosed = (head: Head | undefined): void => {
        close();
        this.#remember(uid, own.session, head);
      };
      const meter = new Meter(sums, { config, clock, onClosed });
      const reached = turn.isNew ? meter.reached({ turns: 1 }) : undefined;
      if (reached !== undefined) throw new HoldfastError("resource_exhausted", `${reached}; nothing was done`);
      return meter;
    } catch (error) {
      close();
      throw error;
    }
  }

  async #ownSums(row: SessionRow, isNew: boolean): Promise<SessionSpending> {
    const known = this.#sessions.get(row.seed.uid);
    const { lastSeq, headHash } = row.projection;
    const isKnown = known?.head.seq === lastSeq && known.head.hash === headHash;
    if (isNew && isKnown) return { session: known.sums, turn: nothingSpent() };
    const read = await readSpending(this.#options.journal, row);
    return isNew ? { ...read, turn: nothingSpent() } : read;
  }

  #remember(uid: SessionUid, sums: Spending, head: Head | undefined): void {
    this.#sessions.delete(uid);
    if (head !== undefined) this.#sessions.set(uid, { sums, head });
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size > LEDGERS_MAX && oldest !== undefined) this.#sessions.delete(oldest);
  }

  async #sharedSums(key: string, used: SharedLedger[], read: () => Promise<Spending>): Promise<Spending> {
    const ledger = this.#shared.get(key) ?? { sums: read(), users: 0 };
    ledger.users += 1;
    used.push(ledger);
    this.#shared.delete(key);
    this.#shared.set(key, ledger);
    if (this.#shared.size > LEDGERS_MAX) this.#forgetShared();
    try {
      return await ledger.sums;
    } catch (error) {
      if (this.#shared.get(key) === ledger) this.#shared.delete(key);
      throw error;
    }
  }

  #forgetShared(): void {
    for (const [key, { users }] of this.#shared) {
      if (users === 0) this.#shared.delete(key);
      if (this.#shared.size <= LEDGERS_MAX / 2) return;
    }
  }

  async #treeSums(project: string, root: SessionUid): Promise<Spending> {
    const { journal } = this.#options;
    const sums = nothingSpent();
    const families = await this.#familiesOf(project);
    for (const uid of families.membersOf(root)) {
      const row = await journal.get(uid);
      if (row !== undefined) addSpending(sums, (await readSpending(journal, row)).session);
    }
    return sums;
  }

  async #projectSums(project: string): Promise<Spending> {
    const { journal } = this.#options;
    const sums = nothingSpent();
    for await (const row of projectRows(journal, project)) addSpending(sums, (await readSpending(journal, row)).session);
    return sums;
  }

  async #familiesOf(project: string): Promise<Families> {
    const known = this.#families.get(project);
    const reading = known ?? Families.read(this.#options.journal, project);
    if (known === undefined) {
      this.#families.set(project, reading);
      reading.catch(() => this.#families.delete(project));
    }
    return reading;
  }
}

async function* projectRows(journal: JournalStore, project: string): AsyncGenerator<SessionRow, void, undefined> {
  let after: ListCursor | undefined;
  do {
    const page = await journal.list({ project, includeDeleted: true, after, limit: PAGE_ROWS });
    yield* page.rows;
    after = page.next;
  } while (after !== undefined);
}

/** Which sessions of a project descend from which. Those of no family are not held. */
class Families {
  readonly #journal: JournalStore;
  readonly #parents = new Map<SessionUid, SessionUid>();
  /** Sessions that others descend from and that descend from none. */
  readonly #roots = new Set<SessionUid>();

  constructor(journal: JournalStore) {
    this.#journal = journal;
  }

  static async read(journal: JournalStore, project: string): Promise<Families> {
    const families = new Families(journal);
    for await (const row of projectRows(journal, project)) families.#note(row);
    return families;
  }

  async rootOf(row: SessionRow): Promise<SessionUid> {
    this.#note(row);
    const seen = new Set<SessionUid>();
    for (let uid = row.seed.uid; ;) {
      seen.add(uid);
      const parent = this.#parents.get(uid) ?? (uid === row.seed.uid ? undefined : await this.#parentOf(uid));
      if (parent === undefined || seen.has(parent)) return uid;
      uid = parent;
    }
  }

  /** A root and everything that descends from it. */
  membersOf(root: SessionUid): readonly SessionUid[] {
    const children = Map.groupBy(this.#parents, ([, parent]) => parent);
    const members = new Set([root]);
    for (const uid of members) for (const [child] of children.get(uid) ?? []) members.add(child);
    return [...members];
  }

  #note({ seed, parent }: SessionRow): void {
    const of = parent?.uid ?? (seed.annotations[SPAWNED_BY_ANNOTATION] as SessionUid | undefined);
    if (of === undefined) this.#parents.delete(seed.uid);
    else this.#parents.set(seed.uid, of);
  }

  /** The parent of a session that is none of the family's youngest; it may have come after the rows were read. */
  async #parentOf(uid: SessionUid): Promise<SessionUid | undefined> {
    if (this.#roots.has(uid)) return undefined;
    const row = await this.#journal.get(uid);
    if (row !== undefined) this.#note(row);
    const parent = this.#parents.get(uid);
    if (parent === undefined) this.#roots.add(uid);
    return parent;
  }
}

interface MeterOptions {
  readonly config: BudgetConfig;
  readonly clock: Clock;
  readonly onClosed: (head: Head | undefined) => void;
}

/** What one turn spends, and whether it may spend more. */
export class Meter {
  readonly #sums: ReadonlyMap<Scope, Spending>;
  readonly #options: MeterOptions;
  #countedMs: number;
  #isClosed = false;
  #isUnpriced = false;

  constructor(sums: ReadonlyMap<Scope, Spending>, options: MeterOptions) {
    this.#sums = sums;
    this.#options = options;
    this.#countedMs = options.clock.monotonicMs();
  }

  /** Which budget is used up, or would be by `next`, in words; undefined where none is. */
  reached(next: Partial<Spending> = {}): string | undefined {
    this.#countTime();
    for (const scope of SCOPES) {
      const limits = this.#options.config[scope];
      const sums = this.#sums.get(scope);
      if (limits === undefined || sums === undefined) continue;
      for (const key of KEYS) {
        const limit = limits[key];
        if (limit !== undefined && isOver(key, sums[key], next[key] ?? 0, limit)) return wordsOf(scope, key, { used: sums[key], limit });
      }
      if (limits.costNanoDollars !== undefined && this.#isUnpriced)
        return `${FAULT_PREFIX}${scope}.cost: a model without a price was asked`;
    }
    return undefined;
  }

  /** Counts what was spent. */
  spend(more: Partial<Spending>): void {
    if (this.#isClosed) return;
    for (const sums of this.#sums.values()) addSpending(sums, more);
  }

  /** Counts a completion. One of which nobody knows what it cost is the turn's last, where cost is limited. */
  spendCompletion(tokens: number, costNanoDollars: number | undefined): void {
    this.spend({ tokens, costNanoDollars: costNanoDollars ?? 0 });
    this.#isUnpriced ||= costNanoDollars === undefined;
  }

  /** How long the turn may go on, in milliseconds; undefined for as long as it likes. */
  get wallLeftMs(): number | undefined {
    this.#countTime();
    let leftMs: number | undefined;
    for (const [scope, sums] of this.#sums) {
      const limitMs = this.#options.config[scope]?.wallMs;
      if (limitMs !== undefined) leftMs = Math.min(leftMs ?? limitMs, Math.max(0, limitMs - sums.wallMs));
    }
    return leftMs;
  }

  /** The session's sums, to be kept beside the END. */
  get aside(): Uint8Array {
    this.#countTime();
    return encodedSpending(this.#sums.get("session") ?? nothingSpent());
  }

  /** The turn is over here; `head` is its last record, undefined where that is not known for certain. */
  close(head: Head | undefined): void {
    if (this.#isClosed) return;
    this.#countTime();
    this.#isClosed = true;
    this.#options.onClosed(head);
  }

  #countTime(): void {
    const nowMs = this.#options.clock.monotonicMs();
    this.spend({ wallMs: nowMs - this.#countedMs });
    this.#countedMs = nowMs;
  }
}

const KEYS = ["tokens", "costNanoDollars", "turns", "toolCalls", "wallMs"] as const satisfies readonly (keyof Spending)[];

/** Turns and tool calls are known before they are spent; of the others it is known afterwards that a limit was reached. */
function isOver(key: keyof Spending, used: number, next: number, limit: number): boolean {
  return key === "turns" || key === "toolCalls" ? next > 0 && used + next > limit : used >= limit;
}

/** Whether an END says that a budget was used up. */
export function isBudgetFault({ code, description }: Pick<EventError, "code" | "description">): boolean {
  return code === ERROR_CODES.resource_exhausted.grpc && description.startsWith(FAULT_PREFIX);
}

function wordsOf(scope: Scope, key: keyof Spending, { used, limit }: { readonly used: number; readonly limit: number }): string {
  switch (key) {
    case "tokens":
      return `${FAULT_PREFIX}${scope}.tokens: ${used} of ${limit} are used`;
    case "costNanoDollars":
      return `${FAULT_PREFIX}${scope}.cost: ${used / 1e9} of ${limit / 1e9} US dollars are used`;
    case "turns":
      return `${FAULT_PREFIX}${scope}.turns: ${used} of ${limit} are used`;
    case "toolCalls":
      return `${FAULT_PREFIX}${scope}.toolCalls: ${used} of ${limit} are used`;
    case "wallMs":
      return `${FAULT_PREFIX}${scope}.wallTime: ${Math.round(used / 1_000)} of ${Math.round(limit / 1_000)} seconds are used`;
  }
}
