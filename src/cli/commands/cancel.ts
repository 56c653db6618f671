/** `holdfast cancel` */

import { Option, type Command } from "commander";
import { withClient } from "../connect.ts";
import { clientOptions, define, run, type ClientFlags } from "../define.ts";
import { sessionJson } from "../json.ts";
import { stateOf } from "../session-text.ts";

interface CancelFlags extends ClientFlags {
  readonly execution?: string;
}

export function cancelCommand(): Command {
  const command = define(
    "cancel",
    "cancel the running turn of a session",
    "Cancels the session's open turn and waits until its END is recorded. A session without an open turn is left as it is.",
    [["stop whatever the session is doing", "holdfast cancel UID"]],
  )
    .argument("<uid>", "the session")
    .addOption(new Option("--execution <id>", "only this turn; another one is left alone and is an error"));
  return clientOptions(command, "the Session, on one line").action((uid: string, flags: CancelFlags) =>
    run(flags, (context) =>
      withClient(context, flags, async ({ client }) => {
        const { screen, signal } = context;
        const session = await client.sessions.cancel(uid, { executionId: flags.execution, signal });
        if (screen.json) screen.value(sessionJson(session));
        else screen.line(`session ${uid}  ${stateOf(session)}  last seq ${session.lastSeq}`);
        return 0;
      }),
    ),
  );
}
