/**
 * What is recorded, as those get it who change nothing: the recorded values themselves.
 *
 * Invariants:
 * - What is handed out is frozen with all that is in it, but for bytes. So it can be kept, compared by identity, and handed out again.
 * - What is on its way to the journal shares no bytes with anybody: of what holds some a copy is handed out, and the same one ever after. A
 *   harness that changes bytes although it says that it changes nothing changes no record.
 */

import { deeplyFrozen } from "../base/frozen.ts";
import { normaliseEvent } from "../canon/index.ts";
import type { NewEvent } from "../journal/index.ts";
import type { Event, Message, ToolResult } from "../spi/index.ts";

/** What was handed out in place of events that hold bytes. */
const COPIES = new WeakMap<Event, Event>();

/** An event that is written, for good. Events are frozen from the inside out: one that is frozen is so with all that is in it. */
export function settledEvent(event: Event): Event {
  return COPIES.get(event) ?? (Object.isFrozen(event) ? event : deeplyFrozen(event));
}

/** The same of an event that may not be written yet. */
function unwrittenEvent(event: Event): Event {
  if (Object.isFrozen(event)) return settledEvent(event);
  const bytes: Uint8Array[] = [];
  deeplyFrozen(event, bytes);
  if (bytes.length === 0) return event;
  const copy = deeplyFrozen(normaliseEvent(event));
  COPIES.set(event, copy);
  return copy;
}

/** The message of an INPUT or an OUTPUT that is recorded now; undefined for another event. */
export function sharedMessage({ event }: NewEvent): Message | undefined {
  const { body } = unwrittenEvent(event);
  return body.case === "message" ? body.value : undefined;
}

/** The result of a TOOL_RESULT that is recorded now; undefined for another event. */
export function sharedResult({ event }: NewEvent): ToolResult | undefined {
  const { body } = unwrittenEvent(event);
  return body.case === "result" ? body.value : undefined;
}

/** The messages of the inputs that an append has recorded. */
export function sharedInputs(events: readonly NewEvent[]): readonly Message[] {
  return events.flatMap(({ event }) => {
    const { body } = settledEvent(event);
    return body.case === "message" ? [body.value] : [];
  });
}
