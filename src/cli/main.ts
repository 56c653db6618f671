/** The `holdfast` command. */

import { CommanderError, type Command } from "commander";
import { flushed, outputFaultOf, tellOutputFault, type OutputFault } from "./output-fault.ts";
import { createProgram, everyCommand, pathOf } from "./program.ts";
import { Screen } from "./screen.ts";
import { usageHint } from "./usage-hint.ts";

/** Parses the arguments and runs the command. Wrong usage is told on standard error, with exit code 2. */
async function main(argv: readonly string[]): Promise<void> {
  const program = createProgram();
  const json = argv.includes("--json");
  for (const command of everyCommand(program)) quiet(command, json);
  let fault: OutputFault | undefined;
  process.stdout.on("error", (error: NodeJS.ErrnoException) => (fault ??= outputFaultOf(error)));
  // Nobody can be told what standard error cannot take, as a log on a full disk: whatever runs goes on.
  process.stderr.on("error", () => undefined);
  try {
    await program.parseAsync([...argv]);
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // Help and the version are output, too; a command looks after its own.
    await flushed(process.stdout);
    const exit = error.exitCode === 0 ? 0 : 2;
    process.exitCode =
      fault === undefined ? exit : tellOutputFault(fault, new Screen({ json, stdout: process.stdout, stderr: process.stderr }));
  }
}

/** Errors of usage as ours: one line of what is wrong, one of how it is used. commander itself never exits. */
function quiet(command: Command, json: boolean): void {
  command.exitOverride();
  command.configureOutput({
    outputError: (text, write) => {
      const told = text.trim().replace(/^error: /, "");
      const hint = usageHint(pathOf(command), told);
      // Two guesses, one of them by the letters alone, would be one too many.
      const message = hint === undefined ? told : told.replace(/\n\(Did you mean .*$/s, "");
      if (json) return write(`${JSON.stringify({ error: { code: "invalid_argument", message, exit_code: 2, hint } })}\n`);
      write(`holdfast: ${message}\n${hint === undefined ? "" : `${hint}\n`}usage: ${usageOf(command)}\nmore:  ${pathOf(command)} --help\n`);
    },
  });
}

function usageOf(command: Command): string {
  return `${pathOf(command)} ${command.usage()}`;
}

await main(process.argv);
