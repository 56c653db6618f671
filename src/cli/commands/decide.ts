/** `holdfast approve` and `holdfast deny`: the same but for the decision. */

import { Option, type Command } from "commander";
import { HoldfastError } from "../../base/errors.ts";
import type { ApprovalRef, Client } from "../../client/index.ts";
import { ApproveResponseSchema } from "../../gen/agentsessions/v1/session_pb.ts";
import { withClient } from "../connect.ts";
import { clientOptions, define, run, type ClientFlags } from "../define.ts";
import { followResume } from "../follow-resume.ts";
import { messageJson } from "../json.ts";
import { plainLine } from "../plain.ts";

interface DecideFlags extends ClientFlags {
  readonly call?: string;
  readonly reason?: string;
  readonly resume?: boolean;
}

/** What a decision's command says of itself. */
export interface DecisionWords {
  readonly name: "approve" | "deny";
  readonly approved: boolean;
  readonly summary: string;
  readonly description: string;
}

/** The command of one decision. */
export function decideCommand({ name, approved, summary, description }: DecisionWords): Command {
  const command = define(name, summary, description, [
    [`${name} what a session waits for, and let it go on`, `holdfast ${name} UID --resume`],
    ["one of several calls, and why", `holdfast ${name} UID --call CALL --reason "as agreed"`],
  ])
    .argument("<uid>", "the session")
    .addOption(new Option("--call <id>", "the call; the oldest that waits when it is left out"))
    .addOption(new Option("--reason <text>", "why; the agent is told"))
    .addOption(new Option("--resume", "resume the session afterwards and follow its turn"));
  return clientOptions(command, "the ApproveResponse, on one line; with --resume what resume prints").action(
    (uid: string, flags: DecideFlags) =>
      run(flags, (context) =>
        withClient(context, flags, async (connection) => {
          const { screen, signal } = context;
          const { client } = connection;
          const ref = await refOf(client, uid, { call: flags.call, signal });
          const answer = await client.sessions.approve(uid, ref, { approved, reason: flags.reason }, { signal });
          if (flags.resume === true) return followResume(context, connection, uid);
          if (screen.json) screen.value(messageJson(ApproveResponseSchema, answer));
          else
            screen.line(
              `session ${uid}  ${approved ? "approved" : "denied"} ${plainLine(ref.toolCallId)}  seq ${answer.decision?.seq ?? 0n}`,
            );
          if (!screen.json) screen.hint(`let it go on with: holdfast resume ${uid}`);
          return 0;
        }),
      ),
  );
}

/** The request that is meant. */
async function refOf(
  client: Client,
  uid: string,
  { call, signal }: { readonly call: string | undefined; readonly signal: AbortSignal },
): Promise<ApprovalRef> {
  const session = await client.sessions.get(uid, { signal });
  const { pendingApproval } = session;
  if (pendingApproval !== undefined && (call === undefined || pendingApproval.toolCallId === call)) return pendingApproval;
  if (pendingApproval === undefined || call === undefined) throw nothingWaits("session: nothing in it waits for a decision");
  for await (const { session: of, ref } of client.toolCalls.approvals({ project: session.metadata?.project, signal })) {
    if (of === uid && ref?.toolCallId === call) return ref;
  }
  throw nothingWaits("--call: no call of the session with this id waits for a decision");
}

function nothingWaits(message: string): HoldfastError {
  return new HoldfastError("failed_precondition", message);
}
