/** `npm run bench`: runs the measurements, prints a table and writes JSON. */

import { benchArguments, HELP, type BenchArguments } from "./arguments.ts";
import { BenchContext, judged, type Group, type Measurement, type Row } from "./context.ts";
import { machineFacts, probeFdatasync } from "./machine.ts";
import { machineText, markdownText, moodText, NOT_MEASURED, tableText, writeReport, type Report } from "./report.ts";

/** Loaded when it is its turn: a group costs nothing when it is not asked for. */
const MEASUREMENTS: Readonly<Record<Group, () => Promise<Measurement>>> = {
  append: async () => (await import("./append.ts")).measureAppend,
  verify: async () => (await import("./verify.ts")).measureVerify,
  replay: async () => (await import("./replay.ts")).measureReplay,
  turns: async () => (await import("./turns.ts")).measureTurns,
  agent: async () => (await import("./agent.ts")).measureAgent,
  wire: async () => (await import("./wire.ts")).measureWire,
  processes: async () => (await import("./processes.ts")).measureProcesses,
  quickjs: async () => (await import("./quickjs.ts")).measureQuickJs,
  gvisor: async () => (await import("./gvisor.ts")).measureGvisor,
  door: async () => (await import("./door.ts")).measureDoor,
  long: async () => (await import("./long.ts")).measureLong,
};

async function run(options: BenchArguments): Promise<Report> {
  const context = new BenchContext(options);
  // A server's process ends with this one; folders would stay.
  const interrupted = (): never => {
    context.cleanUp();
    process.exit(130);
  };
  process.once("SIGINT", interrupted);
  process.once("SIGTERM", interrupted);
  const startedAt = new Date().toISOString();
  try {
    const folder = context.newFolder();
    const machine = machineFacts(folder);
    if (!options.markdown) console.log(`${machineText(machine)}\n`);
    const rows: Row[] = [];
    for (const group of options.groups) {
      const measure = await MEASUREMENTS[group]();
      rows.push(...(await measure(context)).map(judged));
    }
    const fdatasyncUsAtEnd = probeFdatasync(folder);
    return { startedAt, quick: options.quick, machine, fdatasyncUsAtEnd, rows, notMeasured: NOT_MEASURED };
  } finally {
    process.off("SIGINT", interrupted);
    process.off("SIGTERM", interrupted);
    context.cleanUp();
  }
}

function printReport(report: Report, file: string): void {
  console.log(tableText(report.rows));
  const mood = moodText(report);
  if (mood !== undefined) console.log(`\n${mood}`);
  console.log(`\nNot measured:\n${NOT_MEASURED.map((line) => `  - ${line}`).join("\n")}`);
  console.log(`\nWritten to ${file}${report.quick ? " (a quick run: not for the record)" : ""}`);
  const missed = report.rows.filter((row) => row.met === false).length;
  if (missed > 0) console.log(`${missed} target${missed === 1 ? "" : "s"} missed`);
}

async function main(): Promise<void> {
  const options = benchArguments(process.argv.slice(2));
  if (options.help) return console.log(HELP);
  const report = await run(options);
  const file = options.json ?? `reports/bench-${report.startedAt.slice(0, 10)}.json`;
  writeReport(file, report);
  if (options.markdown) console.log(markdownText(report));
  else printReport(report, file);
  const missed = report.rows.filter((row) => row.met === false).length;
  if (options.check && missed > 0) process.exitCode = 1;
}

try {
  await main();
} catch (error) {
  console.error(error);
  process.exitCode = 2;
}
