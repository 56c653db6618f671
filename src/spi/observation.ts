/**
 * Observations: how things stand outside, as a tool tells it that the harness itself calls before it asks a model. Such a call is mediated and
 * on record like any other; its id tells it from those that a model makes.
 *
 * Invariant: the id has the turn's in it, so no other call of the session has it. Whoever keeps results by the ids of their calls never
 * takes an old observation for a new one.
 */

import { create } from "@bufbuild/protobuf";
import type { ExecutionId } from "../base/ids.ts";
import { MessageSchema, PartSchema, type Event, type Message, type Part, type ToolResult } from "../gen/agentsessions/v1/common_pb.ts";

const PREFIX = "observation.";

/** What stands before an observation when a model is shown it. */
const HEADING = "[Observation of how things stand at this point:]";

/** The id of a turn's first observation; those of the others have a number behind it (`~2`). */
export function observationCallId(executionId: ExecutionId): string {
  return PREFIX + executionId;
}

/** Whether an event is the call of an observation. */
export function isObservationCall({ executionId, body }: Pick<Event, "executionId" | "body">): boolean {
  return body.case === "tool" && executionId !== "" && body.value.id.startsWith(PREFIX + executionId);
}

/** What was observed, as a message that a model is shown; undefined where that is nothing: the call failed, or there is nothing in its result. */
export function observationMessage({ isError, content, output }: ToolResult): Message | undefined {
  if (isError) return undefined;
  const seen = content.filter(showsSomething);
  if (output !== undefined && Object.keys(output).length > 0) {
    seen.unshift(create(PartSchema, { part: { case: "data", value: { data: output } } }));
  }
  if (seen.length === 0) return undefined;
  const heading = create(PartSchema, { part: { case: "text", value: { text: HEADING } } });
  return create(MessageSchema, { role: "user", parts: [heading, ...seen] });
}

function showsSomething({ part }: Part): boolean {
  if (part.case === "text") return part.value.text.trim() !== "";
  if (part.case === "data") return part.value.data !== undefined;
  return part.case === "file";
}
