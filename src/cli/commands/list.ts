/** `holdfast list` */

import { Option, type Command } from "commander";
import type { Session } from "../../client/index.ts";
import { natural } from "../arguments.ts";
import { withReader } from "../connect.ts";
import { clientOptions, define, optionOr, run, type ClientFlags } from "../define.ts";
import { sessionJson } from "../json.ts";
import { sessionTable } from "../session-text.ts";

interface ListFlags extends ClientFlags {
  readonly project?: string;
  readonly limit: number;
}

/** How many sessions one call asks for at most. */
const PAGE_SIZE_MAX = 500;

export function listCommand(): Command {
  const command = define("list", "list sessions, newest first", "Lists the sessions of a project, newest first, without deleted ones.", [
    ["the newest sessions of the default project", "holdfast list"],
    ["the uids of all sessions of a project", "holdfast list --project demo --limit 0 --json | jq -r .metadata.uid"],
  ])
    .addOption(optionOr("--project <name>", "the project", "the default project"))
    .addOption(new Option("--limit <n>", "how many sessions at most; 0 for all").argParser(natural).default(50));
  return clientOptions(command, "one Session on each line").action((flags: ListFlags) => run(flags, list));
}

const list: Parameters<typeof run<ListFlags>>[1] = (context, flags) =>
  withReader(context, flags, async ({ client }) => {
    const { screen, signal } = context;
    const limit = flags.limit === 0 ? Infinity : flags.limit;
    const sessions: Session[] = [];
    let hasMore = false;
    const pageSize = Math.min(limit + 1, PAGE_SIZE_MAX);
    for await (const session of client.sessions.list({ project: flags.project, pageSize, signal })) {
      hasMore = sessions.length === limit;
      if (hasMore) break;
      if (screen.json) screen.value(sessionJson(session));
      sessions.push(session);
    }
    if (screen.json) return 0;
    for (const line of sessionTable(sessions, (text) => screen.bold(text))) screen.line(line);
    if (hasMore) screen.note(`there are more: --limit 0 lists all`);
    return 0;
  });
