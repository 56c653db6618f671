/** From how a worker's turn went to the result of the call that spawned it. */

import { create } from "@bufbuild/protobuf";
import { textStart, utf8Length } from "../../base/bytes.ts";
import type { SessionUid } from "../../base/ids.ts";
import { PartSchema, ToolResult_Code, ToolResultSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import type { EndState } from "../../journal/index.ts";
import { hostFailure, type ToolResult } from "../../spi/index.ts";

/** How a worker's turn went. */
export type WorkerAnswer =
  | { readonly kind: "completed"; readonly text: string }
  /** It has no answer; `why` says so in words. */
  | { readonly kind: "failed"; readonly state: Exclude<EndState, "COMPLETED">; readonly why: string };

/** Names a worker in a result's output. */
const WORKER_KEY = "worker";

/** The result of the call `id` that spawned `worker`. */
export function spawnResult(id: string, worker: SessionUid, answer: WorkerAnswer, answerBytesMax: number): ToolResult {
  switch (answer.kind) {
    case "completed": {
      const content = answer.text === "" ? [] : textParts(answer.text, answerBytesMax);
      return create(ToolResultSchema, { id, content, output: { [WORKER_KEY]: worker, state: "COMPLETED" } });
    }
    case "failed": {
      const failure = hostFailure(id, { code: ToolResult_Code.CODE_UNSPECIFIED, error: answer.why });
      failure.output = { [WORKER_KEY]: worker, state: answer.state };
      return failure;
    }
  }
}

/** The result of a call that spawned nothing. */
export function refusedSpawn(id: string, why: string): ToolResult {
  return hostFailure(id, { code: ToolResult_Code.CODE_UNSPECIFIED, error: `nothing was spawned: ${why}` });
}

/** Whether a result is that of a call which spawned a worker. */
export function namesWorker({ output }: ToolResult): boolean {
  return typeof output?.[WORKER_KEY] === "string";
}

function textParts(text: string, bytesMax: number) {
  const bytes = utf8Length(text);
  if (bytes <= bytesMax) return [textPart(text)];
  return [
    textPart(textStart(text, bytesMax)),
    textPart(`[the answer takes ${bytes} bytes and was cut; the worker's session has the whole]`),
  ];
}

function textPart(text: string) {
  return create(PartSchema, { part: { case: "text", value: { text } } });
}
