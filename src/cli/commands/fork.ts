/** `holdfast fork` */

import { Option, type Command } from "commander";
import { collected, natural, pair } from "../arguments.ts";
import { withClient } from "../connect.ts";
import { clientOptions, define, optionOr, run, type ClientFlags } from "../define.ts";
import { sessionJson } from "../json.ts";
import { plainLine } from "../plain.ts";

interface ForkFlags extends ClientFlags {
  readonly at?: number;
  readonly count?: number;
  readonly name?: readonly string[];
  readonly label?: Readonly<Record<string, string>>;
}

export function forkCommand(): Command {
  const command = define(
    "fork",
    "fork a session at a record",
    "Creates children that share the session's records up to a seq, by reference: nothing is copied, and all of them are created or none. " +
      "Inside a turn that is allowed where the session's harness is safe to fork; such a child can resume the turn or begin another. " +
      "A session whose harness keeps state in memory forks at its head only, and is suspended by it.",
    [
      ["at the head", "holdfast fork UID"],
      ["three ways on from record 12", "holdfast fork UID --at 12 --count 3"],
      ["by name", "holdfast fork UID --at 12 --name bold --name careful --label experiment=7"],
    ],
  )
    .argument("<uid>", "the session")
    .addOption(optionOr("--at <seq>", "the last record that the children share", "the head").argParser(natural))
    .addOption(optionOr("--count <n>", "how many children, up to 128", "one for each --name, or 1").argParser(natural))
    .addOption(new Option("--name <name>", "the name of a child; may be given again").argParser(collected))
    .addOption(new Option("--label <key=value>", "a label of every child; may be given again").argParser(pair));
  return clientOptions(command, "one Session on each line").action((uid: string, flags: ForkFlags) =>
    run(flags, (context) =>
      withClient(context, flags, async ({ client }) => {
        const { screen, signal } = context;
        const { at: atSeq, count, name: names, label: labels } = flags;
        for (const child of await client.sessions.fork(uid, { atSeq, count, names, labels, signal })) {
          const { uid: childUid = "", name = "" } = child.metadata ?? {};
          if (screen.json) screen.value(sessionJson(child));
          else screen.line(`session ${childUid}  forked at ${child.forkSeq}${name === "" ? "" : `  ${plainLine(name)}`}`);
        }
        return 0;
      }),
    ),
  );
}
