/**
 * Writes docs/cli.md from the definitions of the commands, so that the page and `--help` say the same.
 * `node scripts/cli-docs.ts` writes it; with `--check` it only compares, and exits with 1 when the page is not current.
 */

import type { Argument, Command, Option } from "commander";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { examplesOf } from "../src/cli/define.ts";
import { EXIT_MEANINGS } from "../src/cli/exit.ts";
import { createProgram, ENVIRONMENT, everyCommand, pathOf } from "../src/cli/program.ts";

export const PAGE = join(import.meta.dirname, "..", "docs", "cli.md");

/** The page as it should be. */
export function cliPage(): string {
  const program = createProgram();
  const commands = everyCommand(program).slice(1);
  return (
    [
      "# The command line",
      "<!-- Written by scripts/cli-docs.ts from the definitions of the commands; change those, then run it. -->",
      program.description(),
      "A command finds its server by `--server`, else by `HOLDFAST_SERVER`, else a Holdfast server that answers on 127.0.0.1:8080, else it " +
        "embeds one over the data folder and speaks to that as it would to any other. The word `embedded` in place of an address asks for that " +
        "at once. Results go to standard output, everything else to " +
        "standard error. Colours, progress and output as it is made appear only on a terminal. With `--json` every line of either stream is one " +
        'JSON value; an error is `{"error":{"code":…,"message":…,"exit_code":…}}`.',
      table(
        ["command", ""],
        commands.map((command) => [`[\`${nameOf(command)}\`](#${nameOf(command).replaceAll(" ", "-")})`, command.summary()]),
      ),
      ...commands.flatMap(commandSection),
      "## Environment",
      table(
        ["variable", ""],
        ENVIRONMENT.map(([name, meaning]) => [`\`${name}\``, meaning]),
      ),
      "A private certificate authority for `https://` servers is named by Node's own `NODE_EXTRA_CA_CERTS`.",
      "## Exit codes",
      table(
        ["code", ""],
        Object.entries(EXIT_MEANINGS).map(([code, meaning]) => [code, meaning]),
      ),
      "",
    ]
      .join("\n\n")
      .trimEnd() + "\n"
  );
}

function commandSection(command: Command): readonly string[] {
  const { options, registeredArguments } = command;
  const rows = [
    ...registeredArguments.map((argument) => [`\`${bracketed(argument)}\``, argument.description]),
    ...options.filter(({ hidden }) => !hidden).map((option) => [`\`${option.flags}\``, optionText(option)]),
  ];
  return [
    `## ${nameOf(command)}`,
    `\`${pathOf(command)} ${command.usage()}\``,
    command.description(),
    ...(rows.length === 0 ? [] : [table(["", ""], rows)]),
    `\`\`\`sh\n${examplesOf(command)
      .map(([what, line]) => `# ${what}\n${line}`)
      .join("\n")}\n\`\`\``,
  ];
}

/** A command as one types it after `holdfast`. */
function nameOf(command: Command): string {
  return pathOf(command).replace("holdfast ", "");
}

function bracketed(argument: Argument): string {
  return argument.required ? `<${argument.name()}>` : `[${argument.name()}]`;
}

function optionText(option: Option): string {
  const choices = option.argChoices === undefined ? "" : ` (${option.argChoices.join(", ")})`;
  const byDefault = option.defaultValue === undefined ? "" : ` (default: ${JSON.stringify(option.defaultValue)})`;
  return `${option.description}${choices}${byDefault}`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

if (import.meta.main) {
  const page = cliPage();
  if (!process.argv.includes("--check")) writeFileSync(PAGE, page);
  else if (readFileSync(PAGE, "utf8") !== page) {
    console.error("docs/cli.md is not current; run: node scripts/cli-docs.ts");
    process.exitCode = 1;
  }
}
