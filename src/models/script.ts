/**
 * The script of a scripted model: what it says when. Parsed strictly: a key that is not known, or a value of another form, is refused by its
 * path, since a script that is half understood plays another part.
 */

import { parseDocument } from "yaml";
import type { JsonObject } from "@bufbuild/protobuf";
import { ERROR_CODES, invalidArgument, type ErrorCode } from "../base/errors.ts";
import { recordableArgs } from "./tool-args.ts";

/** When an entry answers: all that is given must be so; an entry without any of it answers always. */
export interface ScriptMatch {
  /** The turn: 1 is the first. */
  readonly turn?: number | undefined;
  /** The model call within its turn: 1 is the first. */
  readonly step?: number | undefined;
  /** A piece of the text of the user's last message. */
  readonly user?: string | undefined;
  /** A piece of the results that the request ends with. */
  readonly result?: string | undefined;
}

/** A tool call of an answer. */
export interface ScriptCall {
  readonly tool: string;
  readonly args: JsonObject;
  /** Default: made of turn, step and place. */
  readonly id?: string | undefined;
}

/** One answer. */
export interface ScriptEntry {
  readonly on: ScriptMatch;
  /** Milliseconds before the first piece. */
  readonly delayMs: number;
  /** Milliseconds before each further piece. */
  readonly pieceDelayMs: number;
  /** Reasoning, with what stands for a provider's opaque bytes. */
  readonly reasoning: { readonly text: string; readonly opaque?: string | undefined } | undefined;
  /** The text, in the pieces that it arrives in. */
  readonly text: readonly string[];
  readonly calls: readonly ScriptCall[];
  /** How the call fails, after what comes before it. */
  readonly error: { readonly code: ErrorCode; readonly message: string } | undefined;
  readonly stopReason: string | undefined;
  readonly usage: { readonly inputTokens?: number; readonly outputTokens?: number; readonly reasoningTokens?: number } | undefined;
}

/** A script: the first entry that matches answers. */
export interface Script {
  readonly completions: readonly ScriptEntry[];
}

/** The script in a text of YAML or JSON. Throws INVALID_ARGUMENT that names the path, or the line where it is neither. */
export function parseScript(text: string): Script {
  const document = parseDocument(text, { strict: true, uniqueKeys: true, prettyErrors: false });
  const [error] = document.errors;
  if (error !== undefined) {
    // The parser's message quotes the text; where it is wrong is all that is told on.
    const line = text.slice(0, error.pos[0]).split("\n").length;
    throw invalidArgument("script", `must be YAML or JSON; this is neither at line ${line}`);
  }
  return scriptOf({ at: "script", value: document.toJS({ maxAliasCount: 100 }) as unknown });
}

interface Place {
  readonly at: string;
  readonly value: unknown;
}

function scriptOf(place: Place): Script {
  const fields = fieldsOf(place, ["completions"]);
  const completions = listOf(required(fields, place, "completions")).map(entryOf);
  if (completions.length === 0) throw invalidArgument(`${place.at}.completions`, "must have one completion at least");
  return { completions };
}

const ENTRY_KEYS = ["on", "delayMs", "pieceDelayMs", "reasoning", "text", "calls", "error", "stopReason", "usage"];

function entryOf(place: Place): ScriptEntry {
  const fields = fieldsOf(place, ENTRY_KEYS);
  const read = <Value>(key: string, reader: (inner: Place) => Value): Value | undefined => {
    const inner = fields.get(key);
    return inner === undefined ? undefined : reader(inner);
  };
  const entry: ScriptEntry = {
    on: read("on", matchOf) ?? {},
    delayMs: read("delayMs", countOf) ?? 0,
    pieceDelayMs: read("pieceDelayMs", countOf) ?? 0,
    reasoning: read("reasoning", reasoningOf),
    text: read("text", piecesOf) ?? [],
    calls: read("calls", (inner) => listOf(inner).map(callOf)) ?? [],
    error: read("error", errorOf),
    stopReason: read("stopReason", textOf),
    usage: read("usage", usageOf),
  };
  if (entry.text.length === 0 && entry.calls.length === 0 && entry.error === undefined) {
    throw invalidArgument(place.at, "must have text, calls or an error");
  }
  if (entry.error !== undefined && entry.calls.length > 0)
    throw invalidArgument(`${place.at}.error`, "goes without calls: a call that failed has none");
  return entry;
}

function matchOf(place: Place): ScriptMatch {
  const fields = fieldsOf(place, ["turn", "step", "user", "result"]);
  const [turn, step, user, result] = [fields.get("turn"), fields.get("step"), fields.get("user"), fields.get("result")];
  return {
    ...(turn === undefined ? {} : { turn: ordinalOf(turn) }),
    ...(step === undefined ? {} : { step: ordinalOf(step) }),
    ...(user === undefined ? {} : { user: textOf(user) }),
    ...(result === undefined ? {} : { result: textOf(result) }),
  };
}

function reasoningOf(place: Place): ScriptEntry["reasoning"] {
  if (typeof place.value === "string") return { text: textOf(place) };
  const fields = fieldsOf(place, ["text", "opaque"]);
  const opaque = fields.get("opaque");
  return { text: textOf(required(fields, place, "text")), ...(opaque === undefined ? {} : { opaque: textOf(opaque) }) };
}

function piecesOf(place: Place): readonly string[] {
  return typeof place.value === "string" ? [textOf(place)] : listOf(place).map(textOf);
}

function callOf(place: Place): ScriptCall {
  const fields = fieldsOf(place, ["tool", "args", "id"]);
  const args = fields.get("args");
  const id = fields.get("id");
  return {
    tool: textOf(required(fields, place, "tool")),
    args: args === undefined ? {} : argsOf(args),
    ...(id === undefined ? {} : { id: textOf(id) }),
  };
}

function argsOf({ at, value }: Place): JsonObject {
  const args = recordableArgs(value);
  if (args === undefined) throw invalidArgument(at, "must be an object of JSON, with whole numbers within ±(2^53−1)");
  return args;
}

function errorOf(place: Place): ScriptEntry["error"] {
  const fields = fieldsOf(place, ["code", "message"]);
  const code = textOf(required(fields, place, "code"));
  if (!Object.hasOwn(ERROR_CODES, code)) throw invalidArgument(`${place.at}.code`, `must be one of ${Object.keys(ERROR_CODES).join(", ")}`);
  const message = fields.get("message");
  return { code: code as ErrorCode, message: message === undefined ? "model: the script fails here" : textOf(message) };
}

function usageOf(place: Place): ScriptEntry["usage"] {
  const fields = fieldsOf(place, ["inputTokens", "outputTokens", "reasoningTokens"]);
  return Object.fromEntries([...fields].map(([key, inner]) => [key, countOf(inner)]));
}

function fieldsOf({ at, value }: Place, known: readonly string[]): ReadonlyMap<string, Place> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw invalidArgument(at, `must be an object of ${known.join(", ")}`);
  const fields = new Map<string, Place>();
  for (const [key, inner] of Object.entries(value)) {
    if (!known.includes(key))
      throw invalidArgument(`${at}.${key.toWellFormed().slice(0, 64)}`, `is no key here; there are: ${known.join(", ")}`);
    fields.set(key, { at: `${at}.${key}`, value: inner });
  }
  return fields;
}

function required(fields: ReadonlyMap<string, Place>, place: Place, key: string): Place {
  const field = fields.get(key);
  if (field === undefined) throw invalidArgument(`${place.at}.${key}`, "must be there");
  return field;
}

function listOf({ at, value }: Place): readonly Place[] {
  if (!Array.isArray(value)) throw invalidArgument(at, "must be a list");
  return value.map((inner: unknown, index) => ({ at: `${at}[${index}]`, value: inner }));
}

function textOf({ at, value }: Place): string {
  if (typeof value !== "string" || value === "" || !value.isWellFormed()) throw invalidArgument(at, "must be a text that is not empty");
  return value;
}

function countOf({ at, value }: Place): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) throw invalidArgument(at, "must be a whole number from 0");
  return value;
}

function ordinalOf(place: Place): number {
  const count = countOf(place);
  if (count === 0) throw invalidArgument(place.at, "must be a whole number from 1");
  return count;
}
