/**
 * A console of the greenhouse: one conversation with the agent, whose tools run here. It survives a lost line and a killed server; started anew
 * with `--session UID` it goes on with a turn that waits.
 *
 *   node console.ts "It is hot in here."
 *   node console.ts --session UID
 */

import { createInterface } from "node:readline/promises";
import { parseArgs } from "node:util";
import { createClient, type AgentSession } from "holdfast/client";
import { createNodeTransport } from "holdfast/client/node";
import { runTool, TOOLS } from "./greenhouse.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { session: { type: "string" }, server: { type: "string", default: "http://127.0.0.1:8080" } },
});
const message = positionals.join(" ");
if (message === "" && values.session === undefined) {
  console.error('say what the agent should do: node console.ts "It is hot in here."');
  process.exit(2);
}

const keyboard = createInterface({ input: process.stdin, output: process.stdout });
await using client = createClient({ transport: createNodeTransport({ address: values.server }) });
await using session = client.agent.session({ session: values.session, start: { environmentId: "greenhouse", tools: TOOLS } });
if (message !== "") session.say({ content: message, aiMode: "ooda_re_act" });
await follow(session);
keyboard.close();

/** Shows the turn, runs what it asks for and answers its questions, until it is complete. */
async function follow(turn: AgentSession): Promise<void> {
  for await (const event of turn) {
    switch (event.kind) {
      case "started":
        console.log(`session ${event.started.sessionId}`);
        break;
      case "text":
        process.stdout.write(event.delta.content);
        break;
      case "tool-request": {
        const { toolCallId, toolName, parameters } = event.request;
        const result = runTool(toolName, parameters ?? {});
        console.log(`\n▸ ${toolName} ${JSON.stringify(parameters ?? {})} → ${result.result}`);
        turn.answer(toolCallId, result);
        break;
      }
      case "question": {
        // The answer is awaited beside the stream, which goes on: somebody else may answer first.
        void keyboard
          .question("\n? The agent asks to move the windows. May it? [y/n] ")
          .then((word) => turn.decide(event.callId, word === "y"));
        break;
      }
      case "connection":
        console.log(event.state === "lost" ? "\n(the line is down; I try again)" : "(the line is up again)");
        break;
      case "error":
        console.log(`\n${event.error.code}: ${event.error.message}`);
        break;
      case "turn-complete":
        console.log(`\n${event.turn.stopReason}`);
        return;
    }
  }
}
