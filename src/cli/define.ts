/** What the definitions of commands share: options, examples, and how an action becomes a run. */

import { Command, Option } from "commander";
import type { ExitCode } from "./exit.ts";
import { perform, type CommandContext, type PerformOptions } from "./perform.ts";

/** Flags that every client command has. */
export interface ClientFlags {
  readonly server?: string;
  readonly json?: boolean;
}

/** An example for `--help`: what it does, and the line to type. */
export type Example = readonly [what: string, line: string];

const EXAMPLES = new WeakMap<Command, readonly Example[]>();

/** The examples of a command. */
export function examplesOf(command: Command): readonly Example[] {
  return EXAMPLES.get(command) ?? [];
}

/** A command with its summary (for the list of commands), description and examples. */
export function define(name: string, summary: string, description: string, examples: readonly Example[]): Command {
  const lines = examples.map(([what, line]) => `  # ${what}\n  ${line}`);
  const command = new Command(name)
    .summary(summary)
    .description(description)
    .addHelpText("after", `\nExamples:\n${lines.join("\n")}`);
  EXAMPLES.set(command, examples);
  return command;
}

/** An option that says what happens without it. */
export function optionOr(flags: string, description: string, without: string): Option {
  return new Option(flags, `${description} (default: ${without})`);
}

/** `--server`. */
export const SERVER_OPTION = [
  "--server <address>",
  "the server: http://host:port, https://host:port, host:port, unix:///path or embedded; or HOLDFAST_SERVER",
] as const;

/** `--server` and `--json`. */
export function clientOptions(command: Command, json: string): Command {
  return command.option(...SERVER_OPTION).option("--json", json);
}

/** The action of a command. */
export function run<Flags extends { readonly json?: boolean }>(
  flags: Flags,
  body: (context: CommandContext, flags: Flags) => Promise<ExitCode>,
  options: Pick<PerformOptions, "outlivesOutput"> = {},
): Promise<void> {
  return perform({ json: flags.json === true, ...options }, (context) => body(context, flags));
}
