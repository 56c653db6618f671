/** `npm test`: every check and every test, in order, counted. `--help` has the rest. */

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { endAll, ROOT, run, type Outcome } from "./run.ts";
import { closingLine, isGood, NOTHING, sum, tallyOfCheck, tallyOfVitest, type Tally } from "./tally.ts";

type Step =
  | { readonly kind: "checks"; readonly name: string; readonly what: string; readonly commands: readonly (readonly string[])[] }
  | { readonly kind: "tests"; readonly name: string; readonly what: string; readonly runs: "source" | "build" }
  | { readonly kind: "python"; readonly name: string; readonly what: string };

/** From nothing: an incremental build can stay red after what it complains of is gone. */
const BUILD = ["tsc", "-b", "--force", "tsconfig.build.json"] as const;

const STEPS: readonly Step[] = [
  {
    kind: "checks",
    name: "typecheck",
    what: "the TypeScript projects, layer by layer, then tests and scripts",
    commands: [["tsc", "-b", "--force"]],
  },
  { kind: "checks", name: "lint", what: "oxlint, with the layer rules of lint/", commands: [["oxlint"]] },
  { kind: "checks", name: "format", what: "oxfmt, without writing", commands: [["oxfmt", "--check"]] },
  {
    kind: "checks",
    name: "proto",
    what: "buf lint, compatibility with proto/baseline.binpb, generated code current",
    commands: [
      ["buf", "lint"],
      ["buf", "breaking", "--against", "proto/baseline.binpb"],
      ["node", "scripts/check-gen.ts"],
    ],
  },
  {
    kind: "checks",
    name: "docs",
    what: "links in Markdown files, paths and hosts in all files",
    commands: [["node", "scripts/check-docs.ts"]],
  },
  { kind: "python", name: "python", what: "the Python SDK: generated code current, lint, types, its tests; in sdks/python/.venv" },
  { kind: "tests", name: "unit", what: "unit and integration tests beside the code", runs: "source" },
  { kind: "tests", name: "process", what: "tests that start, stop and kill whole processes", runs: "build" },
  { kind: "tests", name: "package", what: "the tarball, packed, installed elsewhere and run", runs: "build" },
];

const REPORTS = join(ROOT, "reports");
const STEP_LIMIT_MS = 24 * 60_000;
/** Commands that tests start have what Node made of their modules from the one before: half of such a start is compiling. */
const COMPILE_CACHE = join(ROOT, "node_modules", ".cache", "compile");

const HELP = `npm test [-- options]

Runs the steps in this order, goes on after a failure, and ends with the line "N passed, N failed[, N skipped]".
The exit code is 0 only when something was counted and nothing failed.

Steps:
${STEPS.map(({ name, what }) => `  ${name.padEnd(10)} ${what}`).join("\n")}

Options:
  --only a,b   only these steps
  --skip a,b   all but these steps
  --verbose    each step's output, also when it is good
  --help       this text

Output of the steps, vitest's JSON reports and summary.json go to reports/. One test file: npx vitest run <path>.
`;

interface Options {
  readonly steps: readonly Step[];
  readonly verbose: boolean;
}

interface Result {
  readonly name: string;
  readonly tally: Tally;
  readonly seconds: number;
  readonly output: string;
}

/** The options of the command line, or the text to print instead of running. */
function readOptions(args: readonly string[]): Options | { readonly refusal: string } | "help" {
  const config = {
    only: { type: "string" },
    skip: { type: "string" },
    verbose: { type: "boolean" },
    help: { type: "boolean", short: "h" },
  } as const;
  try {
    const { values } = parseArgs({ args: [...args], options: config });
    if (values.help === true) return "help";
    const named = (list: string | undefined): string[] => (list ?? "").split(",").filter((name) => name !== "");
    const unknown = [...named(values.only), ...named(values.skip)].find((name) => STEPS.every((step) => step.name !== name));
    if (unknown !== undefined) return { refusal: `there is no step "${unknown}"` };
    const only = values.only === undefined ? STEPS : STEPS.filter((step) => named(values.only).includes(step.name));
    return { steps: only.filter((step) => !named(values.skip).includes(step.name)), verbose: values.verbose ?? false };
  } catch (error) {
    return { refusal: error instanceof Error ? error.message : String(error) };
  }
}

async function runStep(step: Step): Promise<Result> {
  const start = performance.now();
  const { tally, output } = await outcomeOf(step);
  writeFileSync(join(REPORTS, `${step.name}.log`), output);
  return { name: step.name, tally, seconds: (performance.now() - start) / 1000, output };
}

function outcomeOf(step: Step): Promise<{ tally: Tally; output: string }> {
  switch (step.kind) {
    case "checks":
      return runChecks(step.commands);
    case "tests":
      return runTests(step.name, step.runs);
    case "python":
      return runPython(step.name);
  }
}

async function runChecks(commands: readonly (readonly string[])[]): Promise<{ tally: Tally; output: string }> {
  const outcomes: Outcome[] = [];
  for (const command of commands) outcomes.push(await run(command, { timeoutMs: STEP_LIMIT_MS }));
  return {
    tally: sum(outcomes.map(({ exitCode }) => tallyOfCheck(exitCode))),
    output: outcomes.map(({ output }) => output).join(""),
  };
}

/** Runs one of vitest's projects; one that starts the built program gets a current build first. */
async function runTests(project: string, runs: "source" | "build"): Promise<{ tally: Tally; output: string }> {
  const reportPath = join(REPORTS, `${project}.json`);
  rmSync(reportPath, { force: true });
  if (runs === "build") {
    const build = await run(BUILD);
    if (build.exitCode !== 0) return { tally: tallyOfVitest(build.exitCode, undefined), output: build.output };
  }
  const command = ["vitest", "run", "--project", project, "--reporter=default", "--reporter=json", `--outputFile.json=${reportPath}`];
  const { exitCode, output } = await run(command, {
    timeoutMs: STEP_LIMIT_MS,
    env: { NO_COLOR: "1", FORCE_COLOR: undefined, NODE_COMPILE_CACHE: COMPILE_CACHE },
  });
  return { tally: tallyOfVitest(exitCode, readIfThere(reportPath)), output };
}

/** Runs the checks and tests of the Python SDK. Where there is no Python for it they are skipped, and the tally says so. */
async function runPython(name: string): Promise<{ tally: Tally; output: string }> {
  const probe = await run(["python3", "-c", "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))"]);
  if (probe.exitCode !== 0) {
    return {
      tally: { ...NOTHING, skipped: 1 },
      output: "python3: 3.10 or later with venv is needed for the Python SDK; it was not checked\n",
    };
  }
  const reportPath = join(REPORTS, `${name}.json`);
  rmSync(reportPath, { force: true });
  const { exitCode, output } = await run(["python3", "sdks/python/tools/check.py", "--report", reportPath], { timeoutMs: STEP_LIMIT_MS });
  const report = JSON.parse(readIfThere(reportPath) ?? "{}") as Partial<Tally>;
  const { passed = 0, failed = 0, skipped = 0 } = report;
  return { tally: { passed, failed: exitCode === 0 && passed > 0 ? failed : Math.max(failed, 1), skipped }, output };
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/** Runs the steps; the exit code. */
async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args);
  if (options === "help") {
    console.log(HELP);
    return 0;
  }
  if ("refusal" in options) {
    console.error(`npm test: ${options.refusal}; npm test -- --help lists the steps and options`);
    return 2;
  }
  mkdirSync(REPORTS, { recursive: true });
  const results: Result[] = [];
  for (const step of options.steps) {
    const result = await runStep(step);
    results.push(result);
    // A step that was skipped as a whole is neither good nor bad; that the whole run counted something is asked at the end.
    const isSkipped = result.tally.passed + result.tally.failed === 0 && result.tally.skipped > 0;
    const isOk = isGood(result.tally);
    console.log(
      `${isOk ? "ok  " : isSkipped ? "skip" : "FAIL"} ${step.name.padEnd(10)} ${closingLine(result.tally)} (${result.seconds.toFixed(1)} s)`,
    );
    if (!isOk || options.verbose) console.log(result.output.trimEnd());
  }
  const total = sum(results.map(({ tally }) => tally));
  const steps = results.map(({ name, tally, seconds }) => ({ name, ...tally, seconds }));
  writeFileSync(join(REPORTS, "summary.json"), `${JSON.stringify({ ...total, node: process.version, steps }, null, 2)}\n`);
  console.log(closingLine(total));
  return isGood(total) ? 0 : 1;
}

process.on("SIGINT", () => endAll(130));
process.on("SIGTERM", () => endAll(143));
process.exitCode = await main(process.argv.slice(2));
