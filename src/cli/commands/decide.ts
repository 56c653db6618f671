/** `holdfast approve` and `holdfast deny`: the same but for the decision. */

import { create } from "@bufbuild/protobuf";
import { Option, type Command } from "commander";
import { ExecState } from "../../client/index.ts";
import { ApproveResponseSchema } from "../../gen/agentsessions/v1/session_pb.ts";
import { approvalRequest, decidedOtherwise, type ApprovalRequest } from "../approval-request.ts";
import { withClient } from "../connect.ts";
import { clientOptions, define, run, type ClientFlags } from "../define.ts";
import { followResume } from "../follow-resume.ts";
import { goesOnLines } from "../goes-on.ts";
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
          const session = await client.sessions.get(uid, { signal });
          const request = await approvalRequest(client, session, { call: flags.call, signal });
          const decided = isDecided(request, approved, flags);
          const answer = decided
            ? create(ApproveResponseSchema, { session, decision: request.decision?.record })
            : await client.sessions.approve(uid, request.ref, { approved, reason: flags.reason }, { signal });
          if (flags.resume === true) return followResume(context, connection, uid);
          const words = `${approved ? "approved" : "denied"} ${plainLine(request.ref.toolCallId)}${decided ? " already" : ""}`;
          if (screen.json) screen.value(messageJson(ApproveResponseSchema, answer));
          else screen.line(`session ${uid}  ${words}  seq ${answer.decision?.seq ?? 0n}`);
          if (answer.session?.execState === ExecState.EXEC_AWAITING)
            for (const line of goesOnLines(answer.session, connection.serverFlag)) screen.hint(line);
          return 0;
        }),
      ),
  );
}

/**
 * Whether there is nothing left to decide, since the same was decided before. A request that `--call` names and that was decided otherwise,
 * or for another reason, is the server's to refuse; one that nobody named is refused here.
 */
function isDecided(request: ApprovalRequest, approved: boolean, { call, reason }: DecideFlags): boolean {
  const { decision } = request;
  if (decision === undefined) return false;
  if (decision.approved === approved) return reason === undefined || reason === decision.reason;
  if (call === undefined) throw decidedOtherwise(request, decision);
  return false;
}
