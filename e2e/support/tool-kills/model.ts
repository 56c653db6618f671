/**
 * The model of a run: it asks for the calls that the user's last message plans, round after round. What it answers follows from the request alone,
 * so a request that is made again after a kill is answered the same.
 */

import { lastUserText, startModelServer, type ModelReply, type ModelServer } from "../../../src/testing/model-server.ts";
import { openAiChunk, openAiEnd, openAiText } from "../../../src/testing/model-streams.ts";
import { markOf, type TurnPlan } from "./plan.ts";

/** A server of the model. It refuses what the provider's API would refuse. */
export function startLedgerModel(): Promise<ModelServer> {
  return startModelServer({ fallback: ({ json }) => replyTo(json) });
}

function replyTo(json: unknown): ModelReply {
  const { messages } = json as { readonly messages: readonly { readonly role: string }[] };
  const plan = JSON.parse(lastUserText(json)) as TurnPlan;
  const since = messages.slice(messages.findLastIndex(({ role }) => role === "user"));
  const round = since.filter(({ role }) => role === "assistant").length;
  const calls = plan.rounds[round];
  if (calls === undefined) return { kind: "stream", steps: [...openAiText("done"), ...openAiEnd()] };
  const deltas = calls.map((name, index) => {
    const mark = markOf(plan, round, index);
    return { index, id: mark, type: "function", function: { name, arguments: JSON.stringify({ mark }) } };
  });
  return { kind: "stream", steps: [...openAiText("so"), openAiChunk({ tool_calls: deltas }), ...openAiEnd("tool_calls")] };
}
