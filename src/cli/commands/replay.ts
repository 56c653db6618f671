/** `holdfast replay` */

import { Option, type Command } from "commander";
import { invalidArgument } from "../../base/errors.ts";
import { natural, timeSince } from "../arguments.ts";
import { withReader } from "../connect.ts";
import { clientOptions, define, optionOr, run, type ClientFlags } from "../define.ts";
import { recordJson } from "../json.ts";
import { recordLine } from "../record-line.ts";
import { checkReplays } from "../replay-check.ts";

interface ReplayFlags extends ClientFlags {
  readonly from?: number;
  readonly to?: number;
  readonly check?: boolean;
  readonly harness?: string;
  readonly project?: string;
  readonly since?: Date;
}

const DESCRIPTION =
  "Prints the committed records of a session, in order, without calling a model. With --json this is the export format: one LogRecord on " +
  "each line, which `holdfast verify FILE` checks without a server.\n\n" +
  "With --check every ended turn is run again by its harness, served from its records: no model and no tool is called, nothing is written. " +
  "The first place where the harness asks for something else is printed as a difference of what is recorded and what it asked for. " +
  "--harness tries another harness, or a new version of one, on what an old one did. Without a uid the sessions of a project are checked, " +
  "newest first.";

export function replayCommand(): Command {
  const command = define("replay", "print a session's records, or check that its turns replay", DESCRIPTION, [
    ["the whole journal", "holdfast replay UID"],
    ["records 3 to 10", "holdfast replay UID --from 3 --to 10"],
    ["export, then verify what was exported", "holdfast replay UID --json > journal.jsonl && holdfast verify journal.jsonl"],
    ["does the harness still do what it did?", "holdfast replay UID --check"],
    [
      "before a deployment: a new harness on the sessions of a week",
      "holdfast replay --check --project support --since 7d --harness chat-next",
    ],
  ])
    .argument("[uid]", "the session; with --check it may be left out")
    .addOption(optionOr("--from <seq>", "the first record", "the first there is").argParser(natural))
    .addOption(optionOr("--to <seq>", "the last record", "the head").argParser(natural))
    .addOption(new Option("--check", "run the turns again instead of printing them").conflicts(["from", "to"]))
    .addOption(optionOr("--harness <name>", "with --check: the harness that runs the turns", "the recorded one"))
    .addOption(optionOr("--project <name>", "with --check and without a uid: the project", "the default project"))
    .addOption(
      new Option("--since <when>", "with --check and without a uid: only sessions created since 7d, 12h or a date").argParser(timeSince),
    );
  return clientOptions(command, "one LogRecord on each line; with --check a session and its TurnCheck on each, then a summary").action(
    (uid: string | undefined, flags: ReplayFlags) =>
      run(flags, (context) => {
        refuseWrong(uid, flags);
        return withReader(context, flags, async (connection) => {
          const { harness, project, since } = flags;
          if (flags.check === true) return checkReplays(context, connection, { uid, harness, project, since });
          const { screen, signal } = context;
          for await (const { record } of connection.client.sessions.replay(uid ?? "", { fromSeq: flags.from, toSeq: flags.to, signal })) {
            if (screen.json) screen.value(recordJson(record));
            else screen.line(recordLine(record));
          }
          return 0;
        });
      }),
  );
}

function refuseWrong(uid: string | undefined, flags: ReplayFlags): void {
  const given = (["harness", "project", "since"] as const).find((name) => flags[name] !== undefined);
  if (flags.check !== true && given !== undefined) throw invalidArgument(`--${given}`, "is for --check");
  if (flags.check !== true && uid === undefined) throw invalidArgument("uid", "must name the session");
  if (uid !== undefined && flags.project !== undefined)
    throw invalidArgument("--project", "is for a check of many sessions; leave out the uid");
  if (uid !== undefined && flags.since !== undefined)
    throw invalidArgument("--since", "is for a check of many sessions; leave out the uid");
}
