/** `npm run simulate`: runs seeds of the simulator, on a journal in memory or in a SQLite file. `--help` has the options. */

import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";
import type { Clock } from "../src/base/index.ts";
import { createMemoryStore } from "../src/stores/memory/index.ts";
import { openSqliteStore } from "../src/stores/sqlite/index.ts";
import { testDigest } from "../src/testing/ports.ts";
import { simulate, SimulationFailure, type SimulationReport } from "../src/testing/simulator/simulate.ts";
import { TemporaryFolder } from "../src/testing/temporary-folder.ts";

const HELP = `npm run simulate -- [options]

Runs worlds of hosts, clients and faults, each a pure function of its seed, and checks the promises I0 to I8 after every step.
Stops at the first seed that breaks one, with the command that runs it again. docs/simulator.md says more.

Options:
  --seeds N    how many seeds to run (default 200)
  --from N     the first of them (default 1)
  --seed N     only this one
  --forever    from a random seed on, until a promise breaks or the run is interrupted
  --steps N    steps before the weather clears (default: drawn from the seed, 20 to 70)
  --sqlite     on a SQLite file, which is closed and opened again when the power fails
  --trace      print what happens
  --help       this text
`;

interface Run {
  readonly from: number;
  readonly count: number;
  readonly steps: number | undefined;
  readonly isSqlite: boolean;
  readonly isTraced: boolean;
}

/** What the command line asks for, the help, or why it cannot be read. */
function readOptions(args: readonly string[]): Run | "help" | { readonly refusal: string } {
  const number = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  const options = {
    seeds: number,
    from: number,
    seed: number,
    steps: number,
    forever: flag,
    sqlite: flag,
    trace: flag,
    help: flag,
  } as const;
  try {
    const { values } = parseArgs({ args: [...args], options });
    if (values.help === true) return "help";
    const whole = (name: "seeds" | "from" | "seed" | "steps"): number | undefined => {
      const value = values[name];
      if (value === undefined) return undefined;
      if (!/^\d{1,10}$/.test(value)) throw new Error(`--${name} must be a whole number`);
      return Number(value);
    };
    const seed = whole("seed");
    const from = seed ?? whole("from") ?? (values.forever === true ? randomInt(2 ** 31) : 1);
    const count = seed !== undefined ? 1 : values.forever === true ? Number.POSITIVE_INFINITY : (whole("seeds") ?? 200);
    return { from, count, steps: whole("steps"), isSqlite: values.sqlite === true, isTraced: values.trace === true };
  } catch (error) {
    return { refusal: error instanceof Error ? error.message : String(error) };
  }
}

async function runSeed(seed: number, { steps, isSqlite, isTraced }: Run): Promise<SimulationReport> {
  const flags = `${isSqlite ? " --sqlite" : ""}${steps === undefined ? "" : ` --steps ${steps}`}`;
  const common = {
    seed,
    steps,
    tell: isTraced ? (line: string) => console.log(line) : undefined,
    replayCommand: (of: number) => `npm run simulate -- --seed ${of}${flags}`,
  };
  if (!isSqlite) return simulate({ ...common, openJournal: async (clock) => createMemoryStore({ clock, digest: testDigest }) });
  using folder = new TemporaryFolder();
  const openJournal = (clock: Clock) => openSqliteStore({ folder: folder.path, clock, digest: testDigest });
  return await simulate({ ...common, openJournal, survives: true });
}

/** What many runs come to. */
class Totals {
  seeds = 0;
  #records = 0;
  #modelCalls = 0;
  readonly #counts = new Map<string, number>();
  readonly #startMs = performance.now();

  add({ records, modelCalls, counts }: SimulationReport): void {
    this.seeds += 1;
    this.#records += records;
    this.#modelCalls += modelCalls;
    for (const [what, count] of counts) this.#counts.set(what, (this.#counts.get(what) ?? 0) + count);
  }

  line(): string {
    const seconds = (performance.now() - this.#startMs) / 1000;
    return `${this.seeds} ${this.seeds === 1 ? "seed" : "seeds"}, ${this.#records} records, ${this.#modelCalls} model calls, no broken promise, ${seconds.toFixed(0)} s`;
  }

  table(): string {
    const names = [...this.#counts.keys()].toSorted();
    return names.map((name) => `  ${String(this.#counts.get(name)).padStart(7)}  ${name}`).join("\n");
  }
}

async function main(args: readonly string[]): Promise<number> {
  const run = readOptions(args);
  if (run === "help") {
    console.log(HELP);
    return 0;
  }
  if ("refusal" in run) {
    console.error(`npm run simulate: ${run.refusal}; npm run simulate -- --help lists the options`);
    return 2;
  }
  const totals = new Totals();
  let isStopped = false;
  process.once("SIGINT", () => (isStopped = true));
  for (let index = 0; index < run.count && !isStopped; index++) {
    try {
      totals.add(await runSeed(run.from + index, run));
    } catch (error) {
      if (!(error instanceof SimulationFailure)) throw error;
      console.error(error.message);
      return 1;
    }
    if (totals.seeds % 500 === 0) console.log(totals.line());
  }
  console.log(`${totals.table()}\n${totals.line()}`);
  return 0;
}

process.exitCode = await main(process.argv.slice(2));
