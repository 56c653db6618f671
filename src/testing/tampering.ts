/**
 * Ways to tamper with an exported journal: every field of every record, and the order and number of records. Checkers of
 * journals are tested with all of them, so that none is found by luck.
 *
 * A record's fence is left alone: it is outside the hash, as the contract says.
 */

import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { testDigest } from "./ports.ts";
import { canonical } from "./canonical-reference.ts";

/** A journal that was tampered with, and how. */
export interface Tampering {
  readonly name: string;
  readonly records: readonly JsonObject[];
}

/** Every change of one field of one record; `records` stays as it is. */
export function* fieldTamperings(records: readonly JsonObject[]): Generator<Tampering> {
  for (const [index, record] of records.entries()) {
    for (const { name, value } of changesOf(record, "")) {
      if (name.startsWith(".fence")) continue;
      yield { name: `record ${index + 1}${name}`, records: records.with(index, value as JsonObject) };
    }
  }
}

interface Change {
  readonly name: string;
  readonly value: JsonValue;
}

/** Every small change of `value`, each by itself: leaves, keys, items. */
function* changesOf(value: JsonValue, at: string): Generator<Change> {
  if (Array.isArray(value)) yield* listChanges(value, at);
  else if (typeof value === "object" && value !== null) yield* objectChanges(value, at);
  else for (const changed of leafChanges(value)) yield { name: `${at} → ${JSON.stringify(changed)}`, value: changed };
}

function leafChanges(value: string | number | boolean | null): JsonValue[] {
  if (value === null) return [0, "null", false, {}];
  if (typeof value === "boolean") return [!value, null, String(value), value ? 1 : 0];
  if (typeof value === "number") return [value === 0 ? 1 : -value, value * 2 + 1, String(value), null];
  const flips = flippedAt(value).map((index) => value.slice(0, index) + (value[index] === "a" ? "b" : "a") + value.slice(index + 1));
  const others = [value.toUpperCase(), `${value} `, ` ${value}`, value.slice(1), value.slice(0, -1), `${value}\u0000`];
  return [...flips, ...others, null, Number(value) || 7].filter((changed) => changed !== value);
}

/** Every place of a short string; of a long one its ends and its middle. */
function flippedAt(text: string): number[] {
  const { length } = text;
  return length <= 8 ? Array.from({ length }, (_, index) => index) : [0, length >> 1, length - 1];
}

function* listChanges(list: readonly JsonValue[], at: string): Generator<Change> {
  yield { name: `${at} emptied`, value: [] };
  yield { name: `${at} with one more`, value: [...list, {}] };
  for (const [index, item] of list.entries()) {
    yield { name: `${at}[${index}] dropped`, value: list.toSpliced(index, 1) };
    yield { name: `${at}[${index}] doubled`, value: list.toSpliced(index, 0, item) };
    const next = list[index + 1];
    if (next !== undefined && JSON.stringify(next) !== JSON.stringify(item)) {
      yield { name: `${at}[${index}] swapped with the next`, value: list.toSpliced(index, 2, next, item) };
    }
    for (const { name, value } of changesOf(item, `${at}[${index}]`)) yield { name, value: list.with(index, value) };
  }
}

function* objectChanges(object: JsonObject, at: string): Generator<Change> {
  yield { name: `${at} with an unknown key`, value: { ...object, unknown_key: 1 } };
  yield { name: `${at} with an empty key`, value: { "": "", ...object, "\u{10001}": "" } };
  for (const [key, held] of Object.entries(object)) {
    const { [key]: _, ...rest } = object;
    // Leaving out the first record's empty prev_hash is the same record: the JSON mapping does not write defaults.
    if (held !== "") yield { name: `${at}.${key} dropped`, value: rest };
    yield { name: `${at}.${key} renamed`, value: { ...rest, [`${key}_`]: held } };
    const camel = key.replace(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());
    if (camel !== key) yield { name: `${at}.${key} in camelCase`, value: { ...rest, [camel]: held } };
    for (const { name, value } of changesOf(held, `${at}.${key}`)) yield { name, value: { ...object, [key]: value } };
  }
}

/** Every change of the order and number of records that leaves each record whole, and every forged record among them. */
export function* chainTamperings(records: readonly JsonObject[]): Generator<Tampering> {
  for (const [index, record] of records.entries()) {
    const at = `record ${index + 1}`;
    // Without its last record a journal is a shorter one; only its head tells. See `truncations`.
    if (index < records.length - 1) yield { name: `${at} dropped`, records: records.toSpliced(index, 1) };
    yield { name: `${at} doubled`, records: records.toSpliced(index, 0, record) };
    if (index > 0) yield { name: `${at} moved to the front`, records: [record, ...records.toSpliced(index, 1)] };
    if (index > 0)
      yield { name: `${at} swapped with the one before`, records: records.toSpliced(index - 1, 2, record, records[index - 1]!) };
    yield { name: `a forged record before ${at}`, records: records.toSpliced(index, 0, forged(record)) };
    if (index < records.length - 1) {
      // Edited and hashed again, but the next record still links to what was there before.
      yield { name: `${at} edited and rehashed`, records: records.with(index, rehashed({ ...record, event: { execution_id: "forged" } })) };
      yield {
        name: `${at} exchanged for another one's event`,
        records: records.with(index, rehashed({ ...record, event: records[index + 1]!["event"]! })),
      };
    }
  }
  if (records.length > 1) yield { name: "reversed", records: records.toReversed() };
  yield { name: "begun in the middle", records: records.slice(1) };
}

/** A record whose hash is right, in the place of `record`, of which it takes seq and link. */
function forged(record: JsonObject): JsonObject {
  return rehashed({ ...record, event: { kind: "EVENT_INPUT", message: { role: "user", parts: [{ text: { text: "forged" } }] } } });
}

/** `record` with the hash that its content has now. */
export function rehashed(record: JsonObject): JsonObject {
  const envelope = { event: record["event"], prev_hash: record["prev_hash"] ?? "", seq: record["seq"] };
  return { ...record, content_hash: testDigest.sha256Hex(canonical(envelope)) };
}

/** Every shorter journal: each is intact by itself, and not the one that its session's head names. */
export function* truncations(records: readonly JsonObject[]): Generator<Tampering> {
  for (let length = records.length - 1; length > 0; length--) {
    yield { name: `cut to ${length}`, records: records.slice(0, length) };
  }
}
