/** `holdfast watch` */

import type { Command } from "commander";
import { TeamEventSchema } from "../../gen/roz/v1/agent_pb.ts";
import { withReader } from "../connect.ts";
import { clientOptions, define, run, type ClientFlags } from "../define.ts";
import { messageJson } from "../json.ts";
import { teamLine } from "../team-line.ts";

const DESCRIPTION =
  "Prints what the workers of a task do, a line each: what has happened first, then live, until the team has ended. A lost connection is made anew " +
  "without losing or repeating a line. Ctrl-C leaves; the team goes on.";

export function watchCommand(): Command {
  const command = define("watch", "watch the workers of a task", DESCRIPTION, [
    ["a task from its beginning to its end", "holdfast watch TASK"],
    ["what failed, for a script", "holdfast watch TASK --json | jq -c 'select(.worker_failed)'"],
  ]).argument("<task>", "the task");
  return clientOptions(command, "one TeamEvent on each line").action((task: string, flags: ClientFlags) =>
    run(flags, (context) =>
      withReader(context, flags, async ({ client }) => {
        const { screen, signal } = context;
        for await (const event of client.agent.watchTeam(task, { signal })) {
          if (screen.json) screen.value(messageJson(TeamEventSchema, event));
          else screen.line(teamLine(event));
        }
        return 0;
      }),
    ),
  );
}
