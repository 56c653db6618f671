/** `holdfast suspend` */

import type { Command } from "commander";
import { withClient } from "../connect.ts";
import { clientOptions, define, run, type ClientFlags } from "../define.ts";
import { sessionJson } from "../json.ts";
import { stateOf } from "../session-text.ts";

export function suspendCommand(): Command {
  const command = define(
    "suspend",
    "free a session's compute",
    "Records SUSPEND and frees what the session holds besides its journal. `resume` or the next turn brings it back. It is refused while a " +
      "turn runs, and repeating it changes nothing.",
    [["put a session away for a while", "holdfast suspend UID"]],
  ).argument("<uid>", "the session");
  return clientOptions(command, "the Session, on one line").action((uid: string, flags: ClientFlags) =>
    run(flags, (context) =>
      withClient(context, flags, async ({ client }) => {
        const { screen, signal } = context;
        const session = await client.sessions.suspend(uid, { signal });
        if (screen.json) screen.value(sessionJson(session));
        else screen.line(`session ${uid}  suspended  ${stateOf(session)}  last seq ${session.lastSeq}`);
        return 0;
      }),
    ),
  );
}
