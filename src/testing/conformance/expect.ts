/** What cases expect with. Every failure says what was asked, what was expected and what was found, for somebody who knows only the contract. */

import { toJson, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { HoldfastError, type ErrorCode } from "../../base/index.ts";
import { BrokenPromise } from "./contract.ts";

/** Throws unless `condition` holds. `what` is the whole sentence. */
export function must(condition: unknown, what: string): asserts condition {
  if (!condition) throw new BrokenPromise(what);
}

/** Throws unless the two are the same, as JSON shows them. */
export function mustEqual(what: string, found: unknown, expected: unknown): void {
  const [foundText, expectedText] = [shown(found), shown(expected)];
  if (foundText !== expectedText) throw new BrokenPromise(`${what}: expected ${clip(expectedText)}, found ${clip(foundText)}`);
}

/** Throws unless the two messages are the same in every field. */
export function mustMatch<Desc extends DescMessage>(
  what: string,
  desc: Desc,
  found: MessageShape<Desc> | undefined,
  expected: MessageShape<Desc> | undefined,
): void {
  mustEqual(what, jsonOf(desc, found), jsonOf(desc, expected));
}

function jsonOf<Desc extends DescMessage>(desc: Desc, message: MessageShape<Desc> | undefined): unknown {
  return message === undefined ? undefined : toJson(desc, message, { useProtoFieldName: true });
}

/** The HoldfastError that a call rejects with; undefined when it succeeds. */
export async function errorOf(call: Promise<unknown>): Promise<HoldfastError | undefined> {
  try {
    await call;
    return undefined;
  } catch (error) {
    if (error instanceof HoldfastError) return error;
    throw error;
  }
}

/** Throws unless the call is refused with `code` and a message that has the word `names` (a field or a state) in it. */
export async function mustRefuse(what: string, call: Promise<unknown>, code: ErrorCode, names?: string): Promise<void> {
  mustBeRefusal(what, await errorOf(call), code, names);
}

/** Throws unless `error` has `code` and a message that has the word `names` in it. */
export function mustBeRefusal(what: string, error: HoldfastError | undefined, code: ErrorCode, names?: string): void {
  const found = error === undefined ? "OK" : `${error.code.toUpperCase()} (${clip(error.message)})`;
  if (error?.code !== code) throw new BrokenPromise(`${what}: expected ${code.toUpperCase()}, got ${found}`);
  if (names === undefined || error.message.includes(names) || error.field?.includes(names) === true) return;
  throw new BrokenPromise(`${what}: expected a message that names ${names}, got ${found}`);
}

function shown(value: unknown): string {
  return JSON.stringify(plainOf(value)) ?? "nothing";
}

/** The value with what JSON has no word for as text: bytes as hex, bigints as digits. */
function plainOf(value: unknown): unknown {
  if (typeof value === "bigint") return `${value}`;
  if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
  if (Array.isArray(value)) return value.map(plainOf);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plainOf(inner)]));
}

function clip(text: string): string {
  return text.length > 400 ? `${text.slice(0, 400)}… (${text.length} characters)` : text;
}
