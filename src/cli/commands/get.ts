/** `holdfast get` */

import type { Command } from "commander";
import { withReader } from "../connect.ts";
import { clientOptions, define, run, type ClientFlags } from "../define.ts";
import { sessionJson } from "../json.ts";
import { sessionLines } from "../session-text.ts";

export function getCommand(): Command {
  const command = define(
    "get",
    "show a session",
    "Shows what a session is and where it stands. Deleted sessions too, until they are reclaimed.",
    [
      ["what a session is doing", "holdfast get UID"],
      ["its last seq, for a script", "holdfast get UID --json | jq -r .last_seq"],
    ],
  ).argument("<uid>", "the session");
  return clientOptions(command, "the Session, on one line").action((uid: string, flags: ClientFlags) =>
    run(flags, (context) =>
      withReader(context, flags, async ({ client }) => {
        const { screen, signal } = context;
        const session = await client.sessions.get(uid, { signal });
        if (screen.json) screen.value(sessionJson(session));
        else for (const line of sessionLines(session)) screen.line(line);
        return 0;
      }),
    ),
  );
}
