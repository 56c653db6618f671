/** The program: its commands, its help, and what wrong usage says. Running it and documenting it both begin here. */

import { Command, CommanderError, Option } from "commander";
import { approvalsCommand } from "./commands/approvals.ts";
import { approveCommand } from "./commands/approve.ts";
import { cancelCommand } from "./commands/cancel.ts";
import { chatCommand } from "./commands/chat.ts";
import { conformanceCommand } from "./commands/conformance.ts";
import { createCommand } from "./commands/create.ts";
import { deleteCommand } from "./commands/delete.ts";
import { denyCommand } from "./commands/deny.ts";
import { execCommand } from "./commands/exec.ts";
import { exportCommand } from "./commands/export.ts";
import { forkCommand } from "./commands/fork.ts";
import { getCommand } from "./commands/get.ts";
import { harnessCommand } from "./commands/harness.ts";
import { headCommand } from "./commands/head.ts";
import { importCommand } from "./commands/import.ts";
import { initCommand } from "./commands/init.ts";
import { keygenCommand } from "./commands/keygen.ts";
import { listCommand } from "./commands/list.ts";
import { replayCommand } from "./commands/replay.ts";
import { resolveCommand } from "./commands/resolve.ts";
import { steerCommand } from "./commands/steer.ts";
import { resumeCommand } from "./commands/resume.ts";
import { serveCommand } from "./commands/serve.ts";
import { suspendCommand } from "./commands/suspend.ts";
import { tailCommand } from "./commands/tail.ts";
import { treeCommand } from "./commands/tree.ts";
import { verifyCommand } from "./commands/verify.ts";
import { versionCommand } from "./commands/version.ts";
import { watchCommand } from "./commands/watch.ts";
import { hanging } from "./columns.ts";
import { exitTable } from "./exit.ts";
import { packageVersion } from "./version.ts";

/** The environment that the commands read, for help and documentation. */
export const ENVIRONMENT: readonly (readonly [name: string, meaning: string])[] = [
  ["HOLDFAST_SERVER", "the server's address, or embedded, when --server is not given"],
  ["HOLDFAST_TOKEN", "the bearer token; it is never an argument"],
  ["HOLDFAST_TOKEN_FILE", "a file that holds the token"],
  ["HOLDFAST_OPERATOR", "the operator's port for the harness commands, when --operator is not given"],
  ["HOLDFAST_OPERATOR_TOKEN", "the operator's token; or HOLDFAST_OPERATOR_TOKEN_FILE, a file that holds it"],
  ["HOLDFAST_CONFIG", "the config file of serve and of an embedded server"],
  ["HOLDFAST_DATA", "the data folder of serve and of an embedded server; ./.holdfast by default"],
  ["XDG_STATE_HOME", "where chat keeps what it must know after it was killed; ~/.local/state by default"],
  ["NO_COLOR", "any value: no colours"],
  ["HOLDFAST_DEBUG", "any value: an internal error comes with its stack, which is no JSON"],
];

const AFTER = `
Where a command finds its server: --server, else HOLDFAST_SERVER, else a
Holdfast server that answers on 127.0.0.1:8080, else a server embedded in the
command over the data folder (the word "embedded" in place of an address asks
for that at once). With --json every line of standard output and of standard
error is one JSON value.

Environment:
${ENVIRONMENT.map(([name, meaning]) => hanging(`  ${name.padEnd(25)}`, meaning)).join("\n")}

${exitTable()}

Examples:
  holdfast serve                              # the server, on 127.0.0.1:8080
  holdfast chat                               # talk to an agent in this folder
  holdfast exec --input "hello"               # a turn in a new session
  holdfast exec --session UID --input "more"  # its next turn
  holdfast verify UID                         # nobody changed what was recorded`;

/** The program with all its commands. */
export function createProgram(): Command {
  const program = new Command("holdfast")
    .description("Durable agent sessions: run turns, follow them, replay and verify what was recorded.")
    .version(packageVersion(), "-v, --version", "print the version")
    .helpCommand("help [command]", "print the help of a command")
    .addHelpText("after", AFTER)
    .showSuggestionAfterError(true);
  for (const command of commands()) program.addCommand(command);
  for (const command of everyCommand(program)) withCommonFlags(command);
  return program;
}

/** A command and all that are under it, each before its own. */
export function everyCommand(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}

/** A command's name with those above it, as one types it. */
export function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/** Help and version by all the names that people try, on every command. */
function withCommonFlags(command: Command): void {
  command.helpOption("-h, --help", "print this help");
  const names = command.parent === null ? ["-V"] : ["-v, --version", "-V"];
  for (const flags of names) {
    const option = new Option(flags, "print the version").hideHelp();
    command.addOption(option).on(`option:${option.name()}`, sayVersion);
  }
}

/** Prints the version and ends the parsing, as commander's own option does. */
function sayVersion(): never {
  process.stdout.write(`${packageVersion()}\n`);
  throw new CommanderError(0, "commander.version", packageVersion());
}

function commands(): readonly Command[] {
  return [
    serveCommand(),
    chatCommand(),
    execCommand(),
    listCommand(),
    getCommand(),
    replayCommand(),
    verifyCommand(),
    exportCommand(),
    importCommand(),
    headCommand(),
    keygenCommand(),
    initCommand(),
    harnessCommand(),
    tailCommand(),
    watchCommand(),
    cancelCommand(),
    steerCommand(),
    suspendCommand(),
    resumeCommand(),
    approvalsCommand(),
    approveCommand(),
    denyCommand(),
    resolveCommand(),
    forkCommand(),
    treeCommand(),
    deleteCommand(),
    createCommand(),
    conformanceCommand(),
    versionCommand(),
  ];
}
