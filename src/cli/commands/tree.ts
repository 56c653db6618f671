/** `holdfast tree` */

import { Option, type Command } from "commander";
import { LineageResponseSchema } from "../../gen/holdfast/v1/lineage_pb.ts";
import { natural } from "../arguments.ts";
import { withReader } from "../connect.ts";
import { clientOptions, define, run, type ClientFlags } from "../define.ts";
import { messageJson } from "../json.ts";
import { treeLines } from "../tree-text.ts";

interface TreeFlags extends ClientFlags {
  readonly limit: number;
}

export function treeCommand(): Command {
  const command = define(
    "tree",
    "draw the family of a session",
    "Draws what a session was forked from and everything that was forked from that, whichever member is named: where each was forked, its " +
      "state, the seq of its head and its name. Deleted sessions are drawn too, since their children live on.",
    [
      ["where a session comes from and what became of it", "holdfast tree UID"],
      [
        "the uids of all that was forked from a session",
        "holdfast tree UID --json | jq -r '.rows[] | select(.parent_uid == \"UID\") | .uid'",
      ],
    ],
  )
    .argument("<uid>", "any session of the family")
    .addOption(new Option("--limit <n>", "how many sessions at most, up to 10000").argParser(natural).default(1_000));
  return clientOptions(command, "the LineageResponse, on one line").action((uid: string, flags: TreeFlags) =>
    run(flags, (context) =>
      withReader(context, flags, async ({ client }) => {
        const { screen, signal } = context;
        const family = await client.journal.lineage(uid, { rowsMax: flags.limit, signal });
        if (screen.json) {
          screen.value(messageJson(LineageResponseSchema, family));
          return 0;
        }
        for (const { text, isAsked } of treeLines(family.rows, uid)) screen.line(isAsked ? screen.bold(text) : text);
        if (family.truncated) screen.hint(`there are more: --limit ${Math.max(1, flags.limit) * 10} shows up to so many`);
        return 0;
      }),
    ),
  );
}
