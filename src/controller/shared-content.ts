/**
 * What is recorded, as those get it who change nothing: the recorded values themselves.
 *
 * Invariant: what is handed out is frozen with all that is in it, but for bytes. So it can be kept, compared by identity, and handed out again.
 */

import { deeplyFrozen } from "../base/frozen.ts";
import type { NewEvent } from "../journal/index.ts";
import type { Event, Message, ToolResult } from "../spi/index.ts";

/** The event, for good. Events are frozen from the inside out: one that is frozen is so with all that is in it. */
export function settledEvent(event: Event): Event {
  return Object.isFrozen(event) ? event : deeplyFrozen(event);
}

/** The message of an INPUT or an OUTPUT; undefined for another event. */
export function sharedMessage({ event }: NewEvent): Message | undefined {
  const { body } = settledEvent(event);
  return body.case === "message" ? body.value : undefined;
}

/** The result of a TOOL_RESULT; undefined for another event. */
export function sharedResult({ event }: NewEvent): ToolResult | undefined {
  const { body } = settledEvent(event);
  return body.case === "result" ? body.value : undefined;
}

/** The messages of the inputs that an append has recorded. */
export function sharedInputs(events: readonly NewEvent[]): readonly Message[] {
  return events.flatMap((event) => sharedMessage(event) ?? []);
}
