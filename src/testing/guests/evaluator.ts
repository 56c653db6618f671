/**
 * A harness for tests of sandboxes: it evaluates each input, an expression or the body of an async function, and outputs what that gives.
 * The globals are its memory.
 */

import type { Harness } from "../../spi/index.ts";

/** The evaluator. */
export function createEvaluator(): Harness {
  return {
    describe: async () => ({
      $typeName: "agentsessions.v1.HarnessDescriptor",
      id: "evaluator",
      version: "1",
      models: [],
      tools: [],
      capabilities: {
        $typeName: "agentsessions.v1.Capabilities",
        resumability: 2,
        forkSafe: true,
        streaming: false,
        requiresGpu: false,
        reasoningReplay: false,
      },
    }),
    run: async ({ inputs }, sink, { signal }) => {
      for (const { parts } of inputs) {
        for (const { part } of parts) if (part.case === "text") await sink.output(await evaluate(part.value.text), { signal });
      }
    },
  };
}

const AsyncFunction = (async () => undefined).constructor as new (body: string) => () => Promise<unknown>;

async function evaluate(code: string): Promise<string> {
  try {
    return String(await compiled(code)());
  } catch (error) {
    try {
      return `thrown ${String(error)}`;
    } catch {
      return "thrown";
    }
  }
}

function compiled(code: string): () => Promise<unknown> {
  try {
    return new AsyncFunction(`return (${code}\n);`);
  } catch {
    return new AsyncFunction(code);
  }
}
