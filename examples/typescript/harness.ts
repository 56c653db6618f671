/**
 * An agent as a graph: the model is asked, the tools that it calls are run, and the model is asked again, until it has answered.
 *
 * The graph's state is a conversation. It is kept nowhere: a turn reads it from the session's history, which is the checkpoint. So the
 * program can be killed between any two steps; what it did is in the journal, and it goes on from there.
 */

import {
  defineHarness,
  Mediation,
  serveHarness,
  toolCallsOf,
  toolResult,
  toolResultMessage,
  type Message,
  type Start,
  type ToolCall,
  type ToolResult,
  type TurnSink,
} from "holdfast/harness";
import { END, runGraph } from "./graph.ts";

interface State {
  readonly messages: readonly Message[];
}

const ADD = {
  name: "add",
  description: "Adds two numbers.",
  inputSchema: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
};

/** The tool: pure, so running it again does no harm. */
function add(call: ToolCall): ToolResult {
  const { a, b } = call.args ?? {};
  if (typeof a !== "number" || typeof b !== "number") return toolResult({ id: call.id, isError: true, error: "a and b must be numbers" });
  return toolResult({ id: call.id, output: { sum: a + b } });
}

/** What was said in the session so far, each call followed by its result. */
async function conversationOf(start: Start): Promise<Message[]> {
  const messages: Message[] = [];
  let results: ToolResult[] = [];
  const say = (message: Message): void => {
    if (results.length > 0) messages.push(toolResultMessage(results));
    results = [];
    messages.push(message);
  };
  for await (const page of start.history.read()) {
    for (const { body } of page.events) {
      if (body.case === "message") say(body.value);
      if (body.case === "result") results.push(body.value);
    }
  }
  for (const input of start.inputs) say(input);
  return messages;
}

async function runTurn(start: Start, sink: TurnSink, signal: AbortSignal): Promise<void> {
  const lastCalls = ({ messages }: State): ToolCall[] => toolCallsOf(messages.at(-1)!);
  await runGraph<State, "model" | "tools">(
    {
      entry: "model",
      nodes: {
        model: async ({ messages }) => {
          const { message, usage } = await sink.model({ model: start.model || "echo", messages, tools: [ADD] }, { signal });
          await sink.usage(usage);
          return { messages: [...messages, message] };
        },
        tools: async (state) => {
          const results = lastCalls(state).map(add);
          for (const result of results) await sink.report(result, { signal });
          return { messages: [...state.messages, toolResultMessage(results)] };
        },
      },
      edges: {
        model: (state) => (lastCalls(state).length > 0 ? "tools" : END),
        tools: () => "model",
      },
    },
    { messages: await conversationOf(start) },
  );
}

void serveHarness(
  defineHarness({
    id: "graph",
    version: "1",
    tools: [{ name: "add", description: ADD.description, mediation: Mediation.IN_HARNESS_REPORTED }],
    run: (start, sink, { signal }) => runTurn(start, sink, signal),
  }),
);
