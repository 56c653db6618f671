/** `holdfast create` */

import { Option, type Command } from "commander";
import { withClient } from "../connect.ts";
import { clientOptions, define, optionOr, run, type ClientFlags } from "../define.ts";
import { sessionJson } from "../json.ts";
import { creationOptions, sessionInit, type CreationFlags } from "../creation.ts";
import { pair } from "../arguments.ts";

interface CreateFlags extends ClientFlags, CreationFlags {
  readonly harness?: string;
  readonly annotation?: Readonly<Record<string, string>>;
}

export function createCommand(): Command {
  const command = define(
    "create",
    "create a session without running a turn",
    "Creates a session and prints its uid. `exec` without --session creates one too.",
    [
      ["a session of the chat harness on a model", "holdfast create --harness chat --model gpt-x --name support-42"],
      ["keep its uid", "UID=$(holdfast create --json | jq -r .metadata.uid)"],
    ],
  ).addOption(optionOr("--harness <name>", "the harness that drives its turns", "the server's"));
  creationOptions(command).addOption(new Option("--annotation <key=value>", "an annotation of it; may be given again").argParser(pair));
  return clientOptions(command, "the Session, on one line").action((flags: CreateFlags) =>
    run(flags, (context) =>
      withClient(context, flags, async ({ client }) => {
        const { screen, signal } = context;
        const init = { ...sessionInit(flags), harness: flags.harness, annotations: flags.annotation };
        const session = await client.sessions.create(init, { signal });
        if (screen.json) screen.value(sessionJson(session));
        else screen.line(`session ${session.metadata?.uid ?? ""}`);
        return 0;
      }),
    ),
  );
}
