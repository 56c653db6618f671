/** Turns of the guest `guests/evaluator.ts`, which evaluates what it is told. */

import { executionIdOf, SEQ_NONE, type SessionUid } from "../base/index.ts";
import { textMessage, type Incarnation, type Message, type Runtime, type Start } from "../spi/index.ts";
import { createRecordingSink } from "./recording-sink.ts";

let executions = 0;

/** The start of a turn that is a session's first as far as its harness sees. Each has an execution id of its own, unless one is given. */
export function firstStart(sessionUid: SessionUid, inputs: readonly Message[], executionId: string = `execution-${++executions}`): Start {
  return {
    executionId: executionIdOf(executionId),
    sessionUid,
    config: new Uint8Array(),
    history: { lastSeq: SEQ_NONE, read: async function* () {} },
    inputs,
    identity: {},
    resumeFromSeq: 0n,
    model: "",
  };
}

/** What a turn outputs that evaluates `code` in the guest; the kinds of its other effects, each on a line. */
export async function evaluated(runtime: Runtime, incarnation: Incarnation, code: string, executionId?: string): Promise<string> {
  const harness = await runtime.attach(incarnation);
  const sink = createRecordingSink();
  const start = firstStart(incarnation.sessionUid, [textMessage("user", code)], executionId);
  await harness.run(start, sink, { signal: new AbortController().signal });
  return sink.effects.map((effect) => (effect.kind === "output" ? effect.text : effect.kind)).join("\n");
}
