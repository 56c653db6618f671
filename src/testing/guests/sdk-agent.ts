/** An agent written with `holdfast/harness` as its author would: for tests of what serves it. It serves itself wherever it is started. */

import { defineHarness, Mediation, messageText, serveHarness, textMessage, toolResultMessage } from "../../harness-sdk/index.ts";

const agent = defineHarness({
  id: "sdk-agent",
  version: "3",
  tools: [{ name: "look-up", description: "Looks a word up.", mediation: Mediation.CONTROLLER_MEDIATED }],
  run: async (start, sink, { signal }) => {
    let events = 0;
    for await (const page of start.history.read()) events += page.events.length;
    const asked = start.inputs.map(messageText).join(" ");
    if (asked === "wait") {
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }));
    }
    const result = await sink.toolCall({ tool: "look-up", args: { word: asked, $n: "no number" } }, { signal });
    const messages = [...start.inputs, textMessage("user", `${events} events before`), toolResultMessage([result])];
    const { message, usage } = await sink.model({ messages }, { signal });
    await sink.usage(usage);
    await sink.output(`${messageText(message)} (${new TextEncoder().encode(asked).length} bytes)`);
  },
});

void serveHarness(agent);
