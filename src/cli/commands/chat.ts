/** `holdfast chat` */

import { Option, type Command } from "commander";
import { collected } from "../arguments.ts";
import { withServer } from "../connect.ts";
import { define, optionOr, run, SERVER_OPTION } from "../define.ts";
import type { ChatFlags } from "../chat/run-chat.ts";

const DESCRIPTION =
  "A conversation with an agent that works in the current folder. What it says streams in, formatted on a terminal; what a model thinks is dimmed. It " +
  "reads, lists and searches files at once, and asks before it writes one or runs a command: one key answers. Paths stay in the folder, and files " +
  "that usually hold secrets are not read without asking. /help has the commands: going back, forking, the family, tokens.\n\n" +
  "Ctrl-C cancels the turn, once more leaves. The session stays: --continue goes on with the last one of this folder, also after the chat or its " +
  "server was killed. Nothing that was done is done again.\n\n" +
  "Without a terminal each line of standard input is a message, the answer goes to standard output as it comes, and whatever would be asked is not " +
  "allowed unless --allow names the tool.";

export function chatCommand(): Command {
  return define("chat", "talk to an agent that works in the current folder", DESCRIPTION, [
    ["begin a conversation, with the server's model", "holdfast chat"],
    ["go on with the last one of this folder", "holdfast chat --continue"],
    ["another model, another environment", "holdfast chat --model gpt-x --environment review"],
    ["from a script; files may be written", 'echo "Sort names.txt" | holdfast chat --allow write'],
  ])
    .addOption(
      optionOr("--environment <id>", "the environment of a new session: its model, tools, permissions", "the server's default one"),
    )
    .addOption(optionOr("--model <id>", "the model of a new session", "the environment's"))
    .addOption(new Option("--host <id>", "the edge host for turns in the mode ooda_re_act"))
    .addOption(new Option("--mode <name>", "the mode of turns").choices(["react", "ooda_re_act"]))
    .addOption(new Option("--session <uid>", "go on with this session").conflicts(["continue", "environment", "model", "host"]))
    .addOption(new Option("--continue", "go on with the last session of this folder").conflicts(["environment", "model", "host"]))
    .addOption(new Option("--no-tools", "offer the agent no tools of this folder"))
    .addOption(new Option("--allow <tool>", "do not ask before this tool: write, edit, run; may be given again").argParser(collected))
    .addOption(new Option(...SERVER_OPTION))
    .action((flags: ChatFlags) =>
      run({}, (context) =>
        withServer(context, flags, async (server) => {
          // What it brings along is read when there is a chat.
          const { runChat } = await import("../chat/run-chat.ts");
          return runChat(context, server, flags);
        }),
      ),
    );
}
