/** `holdfast delete` */

import type { Command } from "commander";
import { withClient } from "../connect.ts";
import { clientOptions, define, run, type ClientFlags } from "../define.ts";
import { sessionJson } from "../json.ts";
import { stateOf } from "../session-text.ts";

export function deleteCommand(): Command {
  const command = define(
    "delete",
    "delete a session",
    "Records the intent to delete, after cancelling a running turn. The session is gone from listings and takes no further turns; " +
      "get and replay still read it until its storage is reclaimed. Repeating it changes nothing.",
    [["delete a session", "holdfast delete UID"]],
  ).argument("<uid>", "the session");
  return clientOptions(command, "the Session, on one line").action((uid: string, flags: ClientFlags) =>
    run(flags, (context) =>
      withClient(context, flags, async ({ client }) => {
        const { screen, signal } = context;
        const session = await client.sessions.delete(uid, { signal });
        if (screen.json) screen.value(sessionJson(session));
        else screen.line(`session ${uid}  ${stateOf(session)}  last seq ${session.lastSeq}`);
        return 0;
      }),
    ),
  );
}
