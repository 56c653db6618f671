/**
 * Events as agents make them, at a wanted size: a turn's kinds in a turn's order, text with the line feeds, quotes and
 * characters beyond ASCII that real text has. The same index makes the same event again.
 */

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { encodeLogRecord } from "../src/canon/index.ts";
import type { Fence, Seq } from "../src/base/index.ts";
import {
  EventKind,
  EventSchema,
  ExecutionStartSchema,
  HarnessEndSchema,
  IdentityRefSchema,
  ModelCallSchema,
  UsageSchema,
  type Event,
} from "../src/gen/agentsessions/v1/common_pb.ts";
import { textMessage } from "../src/spi/index.ts";

const START_MS = Date.UTC(2026, 10, 2, 9, 30);
const HASH = "0123456789abcdef".repeat(4);
const PRINCIPAL = create(IdentityRefSchema, { principal: "user:ada", issuer: "https://id.example", subject: "ada" });

const SENTENCES = [
  "The build is green again, and the two flaky tests turned out to share one temporary folder.",
  'She asked: "which of the three plans costs least to undo?", and nobody had an answer.',
  "Totals for the quarter:\n- north: 41,200\n- south: 38,950\n\nBoth are above the forecast.",
  "Das Lager in Köln meldet 12 Stück, die Zusage für Málaga steht noch aus.",
  "Run the migration twice; the second run must change nothing, or the first one was wrong.",
  "Prüfung abgeschlossen ✓ drei Abweichungen, alle unter 0,5 %.",
] as const;

/** `length` characters of text; `index` picks where in it they begin. */
function textOf(length: number, index: number): string {
  let text = "";
  for (let sentence = index; text.length < length; sentence++) text += `${SENTENCES[sentence % SENTENCES.length]!} `;
  // A cut may fall behind the first half of a pair; there are none here, and this keeps it so.
  return text.slice(0, length).toWellFormed();
}

/** The same in bytes of UTF-8, which it has exactly. */
export function textOfBytes(bytes: number, index: number): string {
  let text = textOf(bytes, index);
  while (Buffer.byteLength(text) > bytes) text = text.slice(0, -1);
  return text + ".".repeat(bytes - Buffer.byteLength(text));
}

/** Makes the event at an index of a journal. */
export type EventSource = (index: number) => Event;

/** Turns, one after the other, whose records have `bytes` bytes on average. */
export function turnEvents(bytes: number): EventSource {
  return eventsOfSize(bytes, turnEvent);
}

/** OUTPUTs whose records have `bytes` bytes: what fills a journal in the middle of turns. */
export function outputEvents(bytes: number): EventSource {
  return eventsOfSize(bytes, outputEvent);
}

/** The start of the turn that the first events of a journal belong to. */
export function turnStart(): Event {
  return turnEvent(0, 0);
}

type SizedSource = (index: number, textLength: number) => Event;

const SAMPLE = 360;
const TEXT_LENGTH_MAX = 20_000;

function eventsOfSize(bytes: number, source: SizedSource): EventSource {
  let low = 0;
  let high = TEXT_LENGTH_MAX;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (meanRecordBytes(source, middle) < bytes) low = middle + 1;
    else high = middle;
  }
  if (low === 0) throw new Error(`a record has more than ${bytes} bytes before any text`);
  return (index) => source(index, low);
}

function meanRecordBytes(source: SizedSource, textLength: number): number {
  let bytes = 0;
  for (let index = 0; index < SAMPLE; index++) {
    const event = source(index, textLength);
    bytes += encodeLogRecord({ seq: (10_000 + index) as Seq, prevHash: HASH, contentHash: HASH, fence: 1 as Fence, event }).length;
  }
  return bytes / SAMPLE;
}

function outputEvent(index: number, textLength: number): Event {
  return stamped(index, {
    kind: EventKind.EVENT_OUTPUT,
    body: { case: "message", value: textMessage("assistant", textOf(textLength, index)) },
  });
}

/** The event at `index` of a session that runs one turn after the other. Kinds with text carry the size. */
function turnEvent(index: number, textLength: number): Event {
  return stamped(index, bodyOf(index, textLength));
}

type KindAndBody = Pick<Event, "kind" | "body">;

function stamped(index: number, { kind, body }: KindAndBody): Event {
  return create(EventSchema, {
    executionId: `018f3c2a-7b1d-7c44-9e21-${(1_000_000 + Math.floor(index / 6)).toString(16).padStart(12, "0")}`,
    ts: timestampFromMs(START_MS + index * 37),
    schemaVersion: 1,
    actor: PRINCIPAL,
    kind,
    body,
  });
}

function bodyOf(index: number, textLength: number): KindAndBody {
  switch (index % 6) {
    case 0: {
      const value = create(ExecutionStartSchema, { inputCount: 1n, harness: "chat", harnessVersion: "1" });
      return { kind: EventKind.EVENT_EXECUTION_START, body: { case: "executionStart", value } };
    }
    case 1:
      return { kind: EventKind.EVENT_INPUT, body: { case: "message", value: textMessage("user", textOf(textLength, index)) } };
    case 2: {
      const value = create(ModelCallSchema, { model: "model-9", inputHash: HASH, id: "c0ffee00c0ffee00", params: { temperature: "0.2" } });
      return { kind: EventKind.EVENT_MODEL_CALL, body: { case: "model", value } };
    }
    case 3:
      return { kind: EventKind.EVENT_OUTPUT, body: { case: "message", value: textMessage("assistant", textOf(textLength * 2, index)) } };
    case 4: {
      const value = create(UsageSchema, { model: "model-9", inputTokens: 1834n, outputTokens: 212n, reasoningTokens: 64n });
      return { kind: EventKind.EVENT_USAGE, body: { case: "usage", value } };
    }
    default:
      return { kind: EventKind.EVENT_END, body: { case: "end", value: create(HarnessEndSchema, { state: "COMPLETED" }) } };
  }
}
