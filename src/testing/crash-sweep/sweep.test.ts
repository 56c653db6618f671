import { cpSync, existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Clock } from "../../base/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import type { JournalStore } from "../../journal/index.ts";
import { openSqliteStore } from "../../stores/sqlite/index.ts";
import { DyingStore } from "../dying-store.ts";
import { testDigest } from "../ports.ts";
import { TemporaryFolder } from "../temporary-folder.ts";
import { sweep, type SweptJournal } from "./sweep.ts";
import { logEnd, tearLog, TEARS, type LogEnd, type Tear } from "./torn-log.ts";
import { SPAWN_SHAPES } from "./spawn-shapes.ts";
import { TURN_SHAPES } from "./turn-shapes.ts";

const inMemory = (): SweptJournal => ({
  open: async (clock) => createMemoryStore({ clock, digest: testDigest }),
  survives: false,
  mark: () => undefined,
  die: () => undefined,
  [Symbol.dispose]: () => undefined,
});

/** What a death leaves of a SQLite journal: the file and its log, and no lock. */
const LEFT = ["journal.sqlite", "journal.sqlite-wal"];

/** A SQLite file. A death leaves what is on the disk at that moment. */
class InFile implements SweptJournal {
  readonly survives = true;
  /** How many logs were torn. */
  static tears = 0;
  readonly #left: readonly string[];
  readonly #wrap: (journal: JournalStore) => JournalStore;
  readonly #folder = new TemporaryFolder();
  #life = 1;
  #logBefore: LogEnd = { salt: "", bytes: 0 };

  /** `left`: the files that are found after a death. `wrap`: what is opened then, with a fault in it. */
  constructor(left: readonly string[] = LEFT, wrap: (journal: JournalStore) => JournalStore = (journal) => journal) {
    this.#left = left;
    this.#wrap = wrap;
  }

  readonly open = async (clock: Clock): Promise<JournalStore> => {
    const journal = await openSqliteStore({ folder: this.#path(this.#life), clock, digest: testDigest });
    return this.#life === 1 ? journal : this.#wrap(journal);
  };

  readonly mark = (): void => {
    this.#logBefore = logEnd(this.#log(1));
  };

  readonly die = (tear: Tear | undefined): void => {
    this.#life = 2;
    for (const file of this.#left) {
      if (existsSync(join(this.#path(1), file))) cpSync(join(this.#path(1), file), join(this.#path(2), file));
    }
    if (tear !== undefined && tearLog(tear, this.#log(2), this.#logBefore)) InFile.tears += 1;
  };

  [Symbol.dispose](): void {
    this.#folder[Symbol.dispose]();
  }

  #path(life: number): string {
    return join(this.#folder.path, `life-${life}`);
  }

  #log(life: number): string {
    return join(this.#path(life), "journal.sqlite-wal");
  }
}

const shapes = [...TURN_SHAPES, ...SPAWN_SHAPES].map((shape) => [shape.name, shape] as const);

describe("a host that dies at any write, the journal in memory", () => {
  it.each(shapes)("%s", async (_, shape) => {
    for (const when of ["before", "after"] as const) {
      const { points, extraCallsMost } = await sweep(shape, when, inMemory);
      expect(points).toBeGreaterThanOrEqual(3);
      expect(extraCallsMost).toBeLessThanOrEqual(shape.extraCallsMax ?? 1);
    }
  });
});

describe("a host that dies at any write, the journal in a file", () => {
  it.each(shapes)("%s", async (_, shape) => {
    for (const when of ["before", "after"] as const) await sweep(shape, when, () => new InFile());
  });
});

describe("a power cut that tears any write", () => {
  it.each(TEARS.map((tear) => [tear.name, tear] as const))("%s", { timeout: 120_000 }, async (_, tear) => {
    InFile.tears = 0;
    let points = 0;
    for (const shape of TURN_SHAPES) points += (await sweep(shape, tear, () => new InFile())).points;
    expect(InFile.tears).toBe(points);
  });
});

describe("the sweep can fail", () => {
  const [shape] = TURN_SHAPES;

  it("where what was acknowledged is not found again", async () => {
    const withoutItsLog = () => new InFile(["journal.sqlite"]);
    await expect(sweep(shape!, "after", withoutItsLog)).rejects.toThrow(
      /I8 .*the journal ends here|I8 .*was acknowledged and is not in the journal/,
    );
  });

  it("where a tool that has begun is taken for one that has not", async () => {
    const tools = TURN_SHAPES.find(({ name }) => name === "tools");
    const forgetful = (journal: JournalStore): JournalStore => ({
      ...new DyingStore(journal, { atAppend: Number.POSITIVE_INFINITY, when: "before" }).view(),
      receipts: async (session, query) =>
        (await journal.receipts(session, query)).map((receipt) => ({
          ...receipt,
          state: receipt.state === "started" ? "intended" : receipt.state,
        })),
      [Symbol.asyncDispose]: () => journal[Symbol.asyncDispose](),
    });
    await expect(sweep(tools!, "before", () => new InFile(LEFT, forgetful))).rejects.toThrow(/I3 .*not idempotent was run 2 times/);
  });

  it("where a recorded completion is not found by who goes on with its turn", async () => {
    const forgetful = (journal: JournalStore): JournalStore => ({
      ...new DyingStore(journal, { atAppend: Number.POSITIVE_INFINITY, when: "before" }).view(),
      async *read(request) {
        // The monitor reads from behind what it has; a recovery reads its turn from the start marker on.
        for await (const page of journal.read(request))
          yield request.fromSeq === 1 && request.toSeq !== undefined ? page.slice(0, 3) : page;
      },
      [Symbol.asyncDispose]: () => journal[Symbol.asyncDispose](),
    });
    await expect(sweep(shape!, "after", () => new InFile(LEFT, forgetful))).rejects.toThrow(/I3 .*again for a completion/);
  });

  const spawning = (name: string) => SPAWN_SHAPES.find((each) => each.name === name)!;
  const changed = (journal: JournalStore, more: Partial<JournalStore>): JournalStore => ({
    ...new DyingStore(journal, { atAppend: Number.POSITIVE_INFINITY, when: "before" }).view(),
    ...more,
    [Symbol.asyncDispose]: () => journal[Symbol.asyncDispose](),
  });

  it("where a worker whose turn has begun is taken for one whose turn has not", async () => {
    const forgetful = (journal: JournalStore): JournalStore => {
      const forgotten = new Set<string>();
      return changed(journal, {
        async *read(request) {
          // Who drives a worker looks for its start from the first record on; the first look finds nothing.
          const isLook = request.fromSeq === undefined && request.toSeq === undefined && isWorker(request.session);
          if (!isLook || forgotten.has(request.session)) yield* journal.read(request);
          else forgotten.add(request.session);
        },
      });
    };
    const sweeping = sweep(spawning("two workers at once"), "after", () => new InFile(LEFT, forgetful));
    await expect(sweeping).rejects.toThrow(/its prompt was run 2 times/);
  });

  it("where nobody looks for workers that were left behind", async () => {
    const forgetful = (journal: JournalStore): JournalStore =>
      changed(journal, {
        list: async (request) => (request.openTurn === true ? { rows: [], next: undefined } : journal.list(request)),
      });
    const sweeping = sweep(spawning("cancelled while its worker runs"), "before", () => new InFile(LEFT, forgetful));
    await expect(sweeping).rejects.toThrow(/its turn is (COMPLETED|open)/);
  });
});

/** Whether a uid is that of a spawned session. */
function isWorker(session: string): boolean {
  return session[14] === "8";
}
