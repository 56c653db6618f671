/**
 * The protobuf encoding of what is kept beside records in every turn.
 *
 * Invariant: the bytes are the ones that protobuf-es writes for the same message; tests hold both equal.
 */

import type { ModelFacts, OfferedTools, RecordedResults, RequestSketch, SketchedMessage } from "../gen/holdfast/v1/beside_pb.ts";
import { writeMessage, writeToolChoice, writeToolDefinition } from "./encode.ts";
import { bool, encoded, int32, int64, LENGTH, message, messages, string, VARINT, writer } from "./fields.ts";

/** A message by its fields alone. */
export type FieldsOf<T> = Omit<T, "$typeName" | "$unknown">;

/** The bytes of ModelFacts. The caller owns them. */
export function encodeModelFacts(facts: FieldsOf<ModelFacts>): Uint8Array {
  return encoded(facts, writeModelFacts);
}

/** The bytes of a RequestSketch. The caller owns them. */
export function encodeRequestSketch(sketch: FieldsOf<RequestSketch>): Uint8Array {
  return encoded(sketch, writeRequestSketch);
}

/** The bytes of OfferedTools. The caller owns them. */
export function encodeOfferedTools(offered: FieldsOf<OfferedTools>): Uint8Array {
  return encoded(offered, writeOfferedTools);
}

/** A field that is there or not, whatever its value. */
function optionalInt64(field: number, value: bigint | undefined): void {
  if (value !== undefined) writer.int64((field << 3) | VARINT, value);
}

function writeModelFacts(facts: FieldsOf<ModelFacts>): void {
  optionalInt64(10, facts.outputTokens);
  optionalInt64(9, facts.inputTokens);
  optionalInt64(8, facts.costNanoDollars);
  string(7, facts.provider);
  string(6, facts.model);
  int32(5, facts.attempts);
  optionalInt64(4, facts.latencyMs);
  optionalInt64(3, facts.cacheWriteTokens);
  optionalInt64(2, facts.cachedInputTokens);
  string(1, facts.stopReason);
}

function writeRequestSketch(sketch: FieldsOf<RequestSketch>): void {
  if (sketch.toolChoice !== undefined) message(6, sketch.toolChoice, writeToolChoice);
  messages(5, sketch.tools, writeToolDefinition);
  bool(4, sketch.toolsKept);
  messages(3, sketch.added, writeSketchedMessage);
  int32(2, sketch.keptMessages);
  int64(1, sketch.baseSeq);
}

function writeSketchedMessage({ source }: SketchedMessage): void {
  switch (source.case) {
    case "seq":
      return writer.int64((1 << 3) | VARINT, source.value);
    case "message":
      return message(2, source.value, writeMessage);
    case "results":
      return message(3, source.value, writeRecordedResults);
    case undefined:
      return undefined;
  }
}

function writeRecordedResults({ seqs }: RecordedResults): void {
  if (seqs.length > 0) writer.naturals((1 << 3) | LENGTH, seqs.map(Number));
}

function writeOfferedTools({ sameAsSeq, tools }: FieldsOf<OfferedTools>): void {
  messages(2, tools, writeToolDefinition);
  int64(1, sameAsSeq);
}
