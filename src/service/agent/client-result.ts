/** A client's answer to a ToolRequest as the result that is recorded, and that the model is given. Pure. */

import { create, type JsonObject } from "@bufbuild/protobuf";
import { textStart } from "../../base/bytes.ts";
import { invalidArgument } from "../../base/errors.ts";
import { PartSchema, ToolResultSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import type { ToolResult as ClientAnswer } from "../../gen/roz/v1/agent_pb.ts";
import type { ToolResult } from "../../spi/index.ts";

/** Throws INVALID_ARGUMENT for an answer that no record can hold. */
export function checkAnswer({ toolCallId, result, durationMs }: ClientAnswer): void {
  if (toolCallId === "") throw invalidArgument("tool_call_id", "must be that of a ToolRequest");
  if (!result.isWellFormed()) throw invalidArgument("result", "must have no lone surrogates");
  if (durationMs === undefined) return;
  if (durationMs < 0n || durationMs > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw invalidArgument("duration_ms", "must be a whole number from 0 to 9007199254740991");
  }
}

/** The result in an answer. What is larger than `bytesMax` is cut, and is then truncated. */
export function answeredResult(id: string, answer: ClientAnswer, bytesMax: number): ToolResult {
  const { success, exitCode, durationMs } = answer;
  const text = textStart(answer.result, bytesMax);
  const output: JsonObject = {
    ...(exitCode === undefined ? {} : { exit_code: exitCode }),
    truncated: answer.truncated || text.length < answer.result.length,
    ...(durationMs === undefined ? {} : { duration_ms: Number(durationMs) }),
  };
  const error = exitCode === undefined ? "the tool failed" : `the tool failed with exit code ${exitCode}`;
  return create(ToolResultSchema, { id, isError: !success, error: success ? "" : error, output, content: textParts(text) });
}

/** What a call gets that its client did not answer. */
export function timedOutResult(id: string, timeoutMs: number): ToolResult {
  const error = `the tool's client did not answer within ${timeoutMs} ms; whether the tool took effect is not known`;
  return create(ToolResultSchema, { id, isError: true, error, output: { timed_out: true }, content: textParts(error) });
}

/** What a call gets that acts on the world while nobody has looked at it lately. */
export function staleObservationResult(id: string, maxAgeMs: number | undefined): ToolResult {
  const limit =
    maxAgeMs === undefined ? "there is nothing to observe with" : `this host knows of no observation of the last ${maxAgeMs} ms`;
  const error = `the tool was not run: ${limit}`;
  return create(ToolResultSchema, { id, isError: true, error, output: { stale_observation: true }, content: textParts(error) });
}

/** Whether a recorded result is a client's answer. */
export function isAnswered({ output }: ToolResult): boolean {
  return typeof output?.["truncated"] === "boolean";
}

function textParts(text: string) {
  return text === "" ? [] : [create(PartSchema, { part: { case: "text", value: { text } } })];
}
