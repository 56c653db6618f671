import { expect, it } from "vitest";
import { turnFactsOf } from "./turn-facts.ts";

it.each([
  ["", ""],
  ["not json", ""],
  ["[]", ""],
  ['{"client":7}', ""],
  ['{"client":{"message_id":7,"tools":[{"name":"a"},7],"observation":{"tool":"x"}}}', ""],
  ['{"client":{"message_id":"m1"}}', "m1"],
])("a config %j says of its client no more than it says", (config, messageId) => {
  const facts = turnFactsOf(new TextEncoder().encode(config));
  expect({ messageId: facts.messageId, tools: facts.clientTools.size, observation: facts.observation }).toEqual({
    messageId,
    tools: 0,
    observation: undefined,
  });
});
