/** `holdfast resume` */

import { Option, type Command } from "commander";
import { withClient } from "../connect.ts";
import { clientOptions, define, run, type ClientFlags } from "../define.ts";
import { detachResume, followResume } from "../follow-resume.ts";

interface ResumeFlags extends ClientFlags {
  readonly detach?: boolean;
}

const DESCRIPTION =
  "Brings a suspended session back and lets its interrupted turn go on: what is recorded is served to the harness and not done again, what " +
  "follows is live. Records are printed as they commit, until the turn has ended. Where there is nothing to resume nothing changes.\n\n" +
  "Ctrl-C detaches: the turn goes on without its client, and a line says how to pick it up.";

export function resumeCommand(): Command {
  const command = define("resume", "let an interrupted turn go on", DESCRIPTION, [
    ["after a crash", "holdfast resume UID"],
    ["without waiting for the turn", "holdfast resume UID --detach"],
  ])
    .argument("<uid>", "the session")
    .addOption(new Option("--detach", "leave as soon as the turn runs again"));
  return clientOptions(command, "one ExecUpdate on each line: the session, then records").action((uid: string, flags: ResumeFlags) =>
    run(flags, (context) =>
      withClient(context, flags, (connection) => (flags.detach === true ? detachResume : followResume)(context, connection, uid)),
    ),
  );
}
