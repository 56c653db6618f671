/** `holdfast approvals` */

import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import type { ApprovalUpdate, Client, DecidedApproval, PendingApproval } from "../../client/index.ts";
import { ApprovalUpdateSchema, PendingApprovalSchema } from "../../gen/holdfast/v1/calls_pb.ts";
import { withReader } from "../connect.ts";
import { clientOptions, define, optionOr, run, type ClientFlags } from "../define.ts";
import { messageJson } from "../json.ts";
import type { CommandContext } from "../perform.ts";
import type { Screen } from "../screen.ts";
import { plainLine } from "../plain.ts";

interface ApprovalsFlags extends ClientFlags {
  readonly project?: string;
  readonly follow?: boolean;
}

export function approvalsCommand(): Command {
  const command = define(
    "approvals",
    "list what waits for a decision",
    "Lists the tool calls of a project that wait for a decision, of all sessions and their children, with their arguments in full.",
    [
      ["what waits for me", "holdfast approvals"],
      ["an inbox that stays open", "holdfast approvals --follow"],
      ["the sessions that wait, of another project", "holdfast approvals --project demo --json | jq -r .session"],
    ],
  )
    .addOption(optionOr("--project <name>", "the project", "the default project"))
    .option("--follow", "go on with what is asked and decided, until Ctrl-C");
  return clientOptions(command, "one PendingApproval on each line; with --follow one ApprovalUpdate").action((flags: ApprovalsFlags) =>
    run(flags, list),
  );
}

const list: Parameters<typeof run<ApprovalsFlags>>[1] = (context, flags) =>
  withReader(context, flags, async ({ client }) => {
    const { screen, signal } = context;
    if (flags.follow === true) return follow(client, flags, context);
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

/** Tells what happens until it is stopped. */
async function follow(client: Client, { project }: ApprovalsFlags, { screen, signal }: CommandContext): Promise<0> {
  for await (const update of client.toolCalls.watchApprovals({ project, signal })) tell(update, screen);
  return 0;
}

function tell(update: ApprovalUpdate, screen: Screen): void {
  if (screen.json) return screen.value(messageJson(ApprovalUpdateSchema, update));
  const { case: what, value } = update.update;
  if (what === "requested") for (const line of [...approvalLines(value), ""]) screen.line(line);
  if (what === "decided") for (const line of [...decisionLines(value), ""]) screen.line(line);
  if (what === "listed") screen.hint("that is all for now; Ctrl-C ends it");
}

function decisionLines({ session, ref, approved, reason, actor }: DecidedApproval): readonly string[] {
  const by = [actor?.principal, actor?.subject].filter((text) => text !== undefined && text !== "").join(" ");
  return factLines([
    ["session", session],
    ["call", ref?.toolCallId ?? ""],
    ["decided", approved ? "approved" : "denied"],
    ["by", by],
    ["why", reason],
  ]);
}

/** One request as a person reads it. */
function approvalLines({ session, sessionName, parentUid, ref, call, reason, requestTime }: PendingApproval): readonly string[] {
  return factLines([
    ["session", session],
    ["name", sessionName],
    ["forked from", parentUid],
    ["call", ref?.toolCallId ?? ""],
    ["tool", call?.tool ?? ""],
    ["arguments", JSON.stringify(call?.args ?? {})],
    ["asked", requestTime === undefined ? "" : new Date(timestampMs(requestTime)).toISOString()],
    ["why", reason],
    ["decide", `holdfast approve ${session} --call ${ref?.toolCallId ?? ""}`],
  ]);
}

function factLines(facts: readonly (readonly [string, string])[]): readonly string[] {
  return facts.filter(([, value]) => value !== "").map(([name, value]) => `${name.padEnd(12)}${plainLine(value)}`);
}
