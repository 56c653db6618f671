/** What the options' values mean. Each reader throws commander's InvalidArgumentError, which says what would be right. */

import { InvalidArgumentError } from "commander";
import { systemClock } from "../node/index.ts";

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A hundred years: what is longer is a mistake, and far below what a date can hold. */
const DURATION_DAYS_MAX = 36_500;

/** `500ms`, `30s`, `5m`, `2h`, `1d`; in milliseconds. */
export function durationMs(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text);
  if (match === null) throw new InvalidArgumentError("It must be a number and a unit: 500ms, 30s, 5m, 2h, 1d.");
  const ms = Math.round(Number(match[1]) * (UNIT_MS[match[2] ?? ""] ?? 1));
  if (ms > DURATION_DAYS_MAX * 86_400_000) throw new InvalidArgumentError(`It must be at most ${DURATION_DAYS_MAX}d.`);
  return ms;
}

/** The time that is meant by how long ago it was (`7d`, `12h`), or by its date (`2026-11-30`, `2026-11-30T12:00:00Z`). */
export function timeSince(text: string): Date {
  if (/^\d{4}-\d\d-\d\d(T\S+)?$/.test(text) && !Number.isNaN(Date.parse(text))) return new Date(Date.parse(text));
  if (!/^\d+(\.\d+)?(s|m|h|d)$/.test(text))
    throw new InvalidArgumentError("It must be a time ago such as 7d or 12h, or a date such as 2026-11-30.");
  return new Date(systemClock.nowMs() - durationMs(text));
}

/** A whole number from 0. */
export function natural(text: string): number {
  const number = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(number)) throw new InvalidArgumentError("It must be a whole number from 0.");
  return number;
}

/** Collects `key=value` pairs. */
export function pair(text: string, before: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("It must be key=value.");
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}

/** Collects values of an option that may be given again. */
export function collected(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}
