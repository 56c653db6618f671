/** `holdfast resolve` */

import { Option, type Command } from "commander";
import { invalidArgument } from "../../base/errors.ts";
import type { CallOutcome, Client } from "../../client/index.ts";
import { UnsettledCallSchema } from "../../gen/holdfast/v1/calls_pb.ts";
import { withClient } from "../connect.ts";
import { clientOptions, define, run, type ClientFlags } from "../define.ts";
import type { ExitCode } from "../exit.ts";
import { messageJson, sessionJson } from "../json.ts";
import type { CommandContext } from "../perform.ts";
import { plainLine } from "../plain.ts";
import { stateOf } from "../session-text.ts";

interface ResolveFlags extends ClientFlags {
  readonly as?: CallOutcome;
}

export function resolveCommand(): Command {
  const command = define(
    "resolve",
    "say what became of a tool call",
    "A tool that was running when its host stopped may have taken effect or not. If it is not idempotent it is not run again: its outcome is " +
      "unknown until a person says what it is. Without a call this lists those calls. Nothing is run until the session is resumed.",
    [
      ["the calls of a session whose outcome is not known", "holdfast resolve UID"],
      ["it took effect", "holdfast resolve UID CALL --as done"],
      ["it did not, and may be run again", "holdfast resolve UID CALL --as retry"],
    ],
  )
    .argument("<uid>", "the session")
    .argument("[call]", "the id of the call")
    .addOption(new Option("--as <outcome>", "what became of it").choices(["done", "failed", "retry"]));
  return clientOptions(command, "the Session, on one line; without a call one UnsettledCall on each line").action(
    (uid: string, call: string | undefined, flags: ResolveFlags) =>
      run(flags, (context) =>
        withClient(context, flags, ({ client, serverFlag }) => {
          if (call === undefined && flags.as === undefined) return list(context, client, { uid, serverFlag });
          if (call === undefined) throw invalidArgument("call", "must be given with --as: the id of the call");
          if (flags.as === undefined) throw invalidArgument("--as", "must be given: done, failed or retry");
          return settle(context, client, { uid, call, as: flags.as });
        }),
      ),
  );
}

async function list(
  { screen, signal }: CommandContext,
  client: Client,
  { uid, serverFlag }: { readonly uid: string; readonly serverFlag: string },
): Promise<ExitCode> {
  const calls = await client.toolCalls.unsettled(uid, { signal });
  for (const unsettled of calls) {
    const { call, callSeq } = unsettled;
    if (screen.json) screen.value(messageJson(UnsettledCallSchema, unsettled));
    else screen.line(`seq ${callSeq}  ${plainLine(`${call?.id ?? ""}  ${call?.tool ?? ""} ${JSON.stringify(call?.args ?? {})}`)}`);
  }
  if (screen.json) return 0;
  if (calls.length === 0) screen.hint("the outcome of every call is known");
  else screen.hint(`say what became of one with: holdfast resolve ${uid} CALL --as done${serverFlag} (or failed, retry)`);
  return 0;
}

async function settle(
  { screen, signal }: CommandContext,
  client: Client,
  { uid, call, as }: { readonly uid: string; readonly call: string; readonly as: CallOutcome },
): Promise<ExitCode> {
  const session = await client.toolCalls.settle(uid, call, as, { signal });
  if (screen.json) screen.value(sessionJson(session));
  else screen.line(`session ${uid}  ${plainLine(call)} settled: ${as}  ${stateOf(session)}  last seq ${session.lastSeq}`);
  return 0;
}
