/** `npm run tool-kills`: tool turns under random `kill -9`, and what the tools' own ledgers say about them. `--help` has the options. */

import { parseArgs } from "node:util";
import { runCampaign, type CampaignReport } from "../e2e/support/tool-kills/campaign.ts";
import { TemporaryFolder } from "../src/testing/temporary-folder.ts";

/** How many turns may end in one life of a server. */
const LIFE_TURNS_MAX = 100;

const HELP = `npm run tool-kills -- [options]

Runs turns that call tools with real effects, in several sessions at once, on a real server (SQLite, synchronous=FULL) that is killed with SIGKILL at
random moments and started again, until enough turns have ended. Then compares the tools' ledgers with the journals: idempotent effects exactly once,
others at most once, unknown outcomes said to be unknown, every chain intact. Exit code 1 where something is not so.

Options:
  --turns N     how many tool turns (default 10000)
  --seed N      draws the turns and the moments of the kills (default 1)
  --sessions N  how many sessions run at once (default 8)
  --life MS     how long a server lives at most, in milliseconds (default 4000); never for more than ${LIFE_TURNS_MAX} turns
  --help        this text
`;

interface Run {
  readonly turns: number;
  readonly seed: number;
  readonly sessions: number;
  readonly lifeMsMax: number;
}

/** What the command line asks for, the help, or why it cannot be read. */
function readOptions(args: readonly string[]): Run | "help" | { readonly refusal: string } {
  const number = { type: "string" } as const;
  const options = { turns: number, seed: number, sessions: number, life: number, help: { type: "boolean" } } as const;
  try {
    const { values } = parseArgs({ args: [...args], options });
    if (values.help === true) return "help";
    const whole = (name: "turns" | "seed" | "sessions" | "life", fallback: number): number => {
      const value = values[name] ?? String(fallback);
      if (!/^[1-9]\d{0,8}$/.test(value)) throw new Error(`--${name} must be a whole number from 1`);
      return Number(value);
    };
    return { turns: whole("turns", 10_000), seed: whole("seed", 1), sessions: whole("sessions", 8), lifeMsMax: whole("life", 4_000) };
  } catch (error) {
    return { refusal: error instanceof Error ? error.message : String(error) };
  }
}

function told(report: CampaignReport): string {
  const { turns, sessions, calls, records, kills, killsAtStart, resumes, approvals, repeats, unknownDone, unknownNotDone } = report;
  return [
    `${turns} tool turns in ${sessions} sessions, ${calls} calls, ${approvals} approved by a person, ${records} records`,
    `${kills} kills, ${killsAtStart} of them around the server's start; ${resumes} resumes`,
    `${repeats} idempotent calls driven again under their key, each effect there once`,
    `${unknownDone + unknownNotDone} unknown outcomes, all listed: ${unknownDone} had taken effect, ${unknownNotDone} had not`,
    `${report.violations.length} violations, ${report.seconds.toFixed(0)} s`,
  ].join("\n");
}

async function main(args: readonly string[]): Promise<number> {
  const run = readOptions(args);
  if (run === "help") {
    console.log(HELP);
    return 0;
  }
  if ("refusal" in run) {
    console.error(`npm run tool-kills: ${run.refusal}; npm run tool-kills -- --help lists the options`);
    return 2;
  }
  using folder = new TemporaryFolder("disk");
  const report = await runCampaign({ ...run, lifeTurnsMax: LIFE_TURNS_MAX, folder: folder.path, tell: (line) => console.log(line) });
  console.log(told(report));
  for (const violation of report.violations) console.error(violation);
  return report.violations.length === 0 ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2));
