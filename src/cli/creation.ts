/** Options that describe a session which is to be created. */

import { Option, type Command } from "commander";
import { invalidArgument } from "../base/errors.ts";
import type { SessionInit } from "../client/index.ts";
import { pair } from "./arguments.ts";
import { optionOr } from "./define.ts";

export interface CreationFlags {
  readonly model?: string;
  readonly project?: string;
  readonly name?: string;
  readonly label?: Readonly<Record<string, string>>;
  readonly principal?: string;
  readonly principalIssuer?: string;
  readonly subject?: string;
}

/** The options that describe a new session. */
export function creationOptions(command: Command): Command {
  return command
    .addOption(optionOr("--model <id>", "the default model of a new session", "the server's"))
    .addOption(optionOr("--project <name>", "the project of a new session", "the default project"))
    .addOption(new Option("--name <name>", "a name for a new session, that no other live session of the project has"))
    .addOption(new Option("--label <key=value>", "a label of a new session; may be given again").argParser(pair))
    .addOption(optionOr("--principal <name>", "on whose behalf a new session's effects happen", "whoever the token stands for"))
    .addOption(new Option("--principal-issuer <name>", "who vouches for that principal"))
    .addOption(new Option("--subject <name>", "the subject under which that principal acts in a new session"));
}

const CREATION_FLAGS: readonly (readonly [keyof CreationFlags, string])[] = [
  ["model", "--model"],
  ["project", "--project"],
  ["name", "--name"],
  ["label", "--label"],
  ["principal", "--principal"],
  ["principalIssuer", "--principal-issuer"],
  ["subject", "--subject"],
];

/** The flags of these options that were given, by name. */
export function givenCreationFlags(flags: CreationFlags): readonly string[] {
  return CREATION_FLAGS.filter(([key]) => flags[key] !== undefined).map(([, flag]) => flag);
}

/** The session of these flags. Throws INVALID_ARGUMENT for an identity without a principal. */
export function sessionInit(flags: CreationFlags): SessionInit {
  return { model: flags.model, project: flags.project, name: flags.name, labels: flags.label, identity: identityOf(flags) };
}

function identityOf({ principal, principalIssuer, subject }: CreationFlags): SessionInit["identity"] {
  if (principal !== undefined && principal !== "") return { principal, issuer: principalIssuer ?? "", subject: subject ?? "" };
  if (principal === undefined && principalIssuer === undefined && subject === undefined) return undefined;
  throw invalidArgument("--principal", "must name whom --principal-issuer and --subject are about");
}
