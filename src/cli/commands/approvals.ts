/** `holdfast approvals` */

import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import type { PendingApproval } from "../../client/index.ts";
import { PendingApprovalSchema } from "../../gen/holdfast/v1/calls_pb.ts";
import { withReader } from "../connect.ts";
import { clientOptions, define, optionOr, run, type ClientFlags } from "../define.ts";
import { messageJson } from "../json.ts";
import { plainLine } from "../plain.ts";

interface ApprovalsFlags extends ClientFlags {
  readonly project?: string;
}

export function approvalsCommand(): Command {
  const command = define(
    "approvals",
    "list what waits for a decision",
    "Lists the tool calls of a project that wait for a decision, of all sessions and their children, with their arguments in full.",
    [
      ["what waits for me", "holdfast approvals"],
      ["the sessions that wait, of another project", "holdfast approvals --project demo --json | jq -r .session"],
    ],
  ).addOption(optionOr("--project <name>", "the project", "the default project"));
  return clientOptions(command, "one PendingApproval on each line").action((flags: ApprovalsFlags) => run(flags, list));
}

const list: Parameters<typeof run<ApprovalsFlags>>[1] = (context, flags) =>
  withReader(context, flags, async ({ client }) => {
    const { screen, signal } = context;
    let isFirst = true;
    for await (const approval of client.toolCalls.approvals({ project: flags.project, signal })) {
      if (screen.json) {
        screen.value(messageJson(PendingApprovalSchema, approval));
        continue;
      }
      if (!isFirst) screen.line("");
      isFirst = false;
      for (const line of approvalLines(approval)) screen.line(line);
    }
    if (isFirst && !screen.json) screen.hint("nothing waits for a decision");
    return 0;
  });

/** One request as a person reads it. */
function approvalLines({ session, sessionName, parentUid, ref, call, reason, requestTime }: PendingApproval): readonly string[] {
  const facts: readonly (readonly [string, string])[] = [
    ["session", session],
    ["name", sessionName],
    ["forked from", parentUid],
    ["call", ref?.toolCallId ?? ""],
    ["tool", call?.tool ?? ""],
    ["arguments", JSON.stringify(call?.args ?? {})],
    ["asked", requestTime === undefined ? "" : new Date(timestampMs(requestTime)).toISOString()],
    ["why", reason],
    ["decide", `holdfast approve ${session} --call ${ref?.toolCallId ?? ""}`],
  ];
  return facts.filter(([, value]) => value !== "").map(([name, value]) => `${name.padEnd(12)}${plainLine(value)}`);
}
