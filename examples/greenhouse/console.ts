/**
 * A console of the greenhouse: one conversation with the agent, whose tools run here. It survives a lost line and a killed server; started anew
 * with `--session UID` it goes on with a turn that waits.
 *
 *   node console.ts "It is hot in here."
 *   node console.ts --session UID
 */

import { createInterface } from "node:readline/promises";
import { parseArgs } from "node:util";
import { createClient, HoldfastError, type AgentSession } from "holdfast/client";
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
const start = { environmentId: "greenhouse", tools: TOOLS };
// A person who waits decides how long: they leave with Ctrl-C.
const reconnect = { attemptsMax: Number.MAX_SAFE_INTEGER };
await using session = client.agent.session({ session: values.session, start, reconnect });
if (message !== "") session.say({ content: message, aiMode: "ooda_re_act" });
try {
  await follow(session);
} catch (error) {
  if (!(error instanceof HoldfastError)) throw error;
  console.error(`${error.code}: ${error.message}`);
  process.exitCode = 1;
} finally {
  keyboard.close();
}

/** Shows the turn, runs what it asks for and answers its questions, until it is complete. */
async function follow(turn: AgentSession): Promise<void> {
  /** Takes the question back that stands on the screen. */
  let asked: AbortController | undefined;
  let isDown = false;
  for await (const event of turn) {
    switch (event.kind) {
      case "started":
        console.log(`session ${event.started.sessionId}`);
        break;
      case "text":
        process.stdout.write(event.delta.content);
        break;
      case "tool-request": {
        // What was asked is answered, if not here then elsewhere.
        asked?.abort();
        asked = undefined;
        const { toolCallId, toolName, parameters } = event.request;
        const result = runTool(toolName, parameters ?? {});
        console.log(`\n▸ ${toolName} ${JSON.stringify(parameters ?? {})} → ${result.result}`);
        turn.answer(toolCallId, result);
        break;
      }
      case "question": {
        // One that somebody else has answered with no stands there still.
        asked?.abort();
        const question = new AbortController();
        asked = question;
        console.log("");
        // The answer is awaited beside the stream, which goes on: somebody else may answer first.
        keyboard.question("? The agent asks to move the windows. May it? [y/n] ", { signal: question.signal }).then(
          (word) => {
            if (asked === question) asked = undefined;
            turn.decide(event.callId, word === "y");
          },
          () => {}, // It was taken back.
        );
        break;
      }
      case "connection":
        // Each attempt that fails is told; a person is told once.
        if (event.state === "restored") console.log("(the line is up again)");
        else if (!isDown) console.log("\n(the line is down; I try again)");
        isDown = event.state === "lost";
        // The question still stands, and is out of sight.
        if (asked !== undefined && !isDown) keyboard.prompt();
        break;
      case "activity":
        // How things stand comes first for a session that there was. Where nothing is under way there is nothing to wait for.
        if (message !== "" || event.activity.state !== "idle") break;
        console.log('nothing is under way in this session; say something: node console.ts --session UID "Close the windows."');
        return;
      case "error":
        console.log(`\n${event.error.code}: ${event.error.message}`);
        break;
      case "turn-complete":
        console.log(`\n${event.turn.stopReason}`);
        return;
    }
  }
}
