/** The `holdfast` command. */

import { CommanderError, type Command } from "commander";
import { createProgram } from "./program.ts";

/** Parses the arguments and runs the command. Wrong usage is told on standard error, with exit code 2. */
async function main(argv: readonly string[]): Promise<void> {
  const program = createProgram();
  const json = argv.includes("--json");
  for (const command of [program, ...program.commands]) quiet(command, json);
  try {
    await program.parseAsync([...argv]);
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    process.exitCode = error.exitCode === 0 ? 0 : 2;
  }
}

/** Errors of usage as ours: one line of what is wrong, one of how it is used. commander itself never exits. */
function quiet(command: Command, json: boolean): void {
  command.exitOverride();
  command.configureOutput({
    outputError: (text, write) => {
      const message = text.trim().replace(/^error: /, "");
      if (json) return write(`${JSON.stringify({ error: { code: "invalid_argument", message, exit_code: 2 } })}\n`);
      write(`holdfast: ${message}\nusage: ${usageOf(command)}\nmore:  ${pathOf(command)} --help\n`);
    },
  });
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${command.parent.name()} ${command.name()}`;
}

function usageOf(command: Command): string {
  return `${pathOf(command)} ${command.usage()}`;
}

/** Whoever reads the output may leave before its end, as `head` does: that is no crash. Nothing more is said then. */
function survive(output: NodeJS.WriteStream): void {
  output.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exitCode = 141;
  });
}

survive(process.stdout);
survive(process.stderr);
await main(process.argv);
