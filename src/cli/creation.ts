/** Options that describe a session which is to be created. */

import { Option, type Command } from "commander";
import type { SessionInit } from "../client/index.ts";
import { pair } from "./arguments.ts";
import { optionOr } from "./define.ts";

export interface CreationFlags {
  readonly model?: string;
  readonly project?: string;
  readonly name?: string;
  readonly label?: Readonly<Record<string, string>>;
}

/** `--model`, `--project`, `--name` and `--label`. */
export function creationOptions(command: Command): Command {
  return command
    .addOption(optionOr("--model <id>", "the default model of a new session", "the server's"))
    .addOption(optionOr("--project <name>", "the project of a new session", "the default project"))
    .addOption(new Option("--name <name>", "a name for a new session, that no other live session of the project has"))
    .addOption(new Option("--label <key=value>", "a label of a new session; may be given again").argParser(pair));
}

/** The flags of these options that were given, by name. */
export function givenCreationFlags(flags: CreationFlags): readonly string[] {
  return (["model", "project", "name", "label"] as const).filter((name) => flags[name] !== undefined).map((name) => `--${name}`);
}

export function sessionInit(flags: CreationFlags): SessionInit {
  return { model: flags.model, project: flags.project, name: flags.name, labels: flags.label };
}
