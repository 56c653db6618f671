/** `holdfast steer` */

import { Option, type Command } from "commander";
import { invalidArgument } from "../../base/errors.ts";
import { SteerResponseSchema } from "../../gen/holdfast/v1/turns_pb.ts";
import { withClient } from "../connect.ts";
import { clientOptions, define, run, type ClientFlags } from "../define.ts";
import { messageJson } from "../json.ts";
import { readInputs } from "../turn-input.ts";

interface SteerFlags extends ClientFlags {
  readonly input?: string;
}

export function steerCommand(): Command {
  const command = define(
    "steer",
    "give a message to a running turn",
    "The message goes before the model at its next call; this waits until it is on record. An agent takes messages where its definition has " +
      "`steering`. Where no turn runs, and where it ends without asking, nobody gets the message: give it to the next turn.",
    [["tell an agent something while it works", 'holdfast steer UID --input "only the north side"']],
  )
    .argument("<uid>", "the session")
    .addOption(new Option("--input <text>", "the message; - reads standard input"));
  return clientOptions(command, "the SteerResponse, on one line").action((uid: string, flags: SteerFlags) =>
    run(flags, (context) =>
      withClient(context, flags, async ({ client }) => {
        const { screen, signal } = context;
        const [input] = await readInputs(flags.input === undefined ? [] : [flags.input]);
        if (input === undefined) throw invalidArgument("--input", "must be given: the message");
        const answer = await client.turns.steer(uid, input, { signal });
        if (screen.json) screen.value(messageJson(SteerResponseSchema, answer));
        else screen.line(`session ${uid}  taken into ${answer.executionId}  seq ${answer.seq}`);
        return 0;
      }),
    ),
  );
}
