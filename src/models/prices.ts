/**
 * What a completion costs by a price table. Pure.
 *
 * Money is counted in whole numbers: prices in picodollars a token (a dollar a million tokens is a million of them), costs in nanodollars,
 * rounded up, so that a sum of costs is never less than the bill.
 */

import { invalidArgument } from "../base/errors.ts";
import type { ModelFacts, Usage } from "../spi/index.ts";

/** The prices of a model in US dollars a million tokens, with at most six decimals. */
export interface ModelPrice {
  readonly input: number;
  /** Input that the provider read from its cache. Default: as other input. */
  readonly cachedInput?: number | undefined;
  /** Input that the provider wrote to its cache. Default: as other input. */
  readonly cacheWrite?: number | undefined;
  /** Output, reasoning included. */
  readonly output: number;
}

/** A price as it is counted with. */
export interface CheckedPrice {
  readonly input: bigint;
  readonly cachedInput: bigint;
  readonly cacheWrite: bigint;
  readonly output: bigint;
}

const DOLLARS_MAX = 1_000_000;

/** The price in picodollars a token. Throws INVALID_ARGUMENT naming `field` and the price that is wrong. */
export function checkPrice(price: ModelPrice, field: string): CheckedPrice {
  const input = picoDollars(price.input, `${field}.input`);
  const orInput = (value: number | undefined, name: string): bigint =>
    value === undefined ? input : picoDollars(value, `${field}.${name}`);
  return {
    input,
    cachedInput: orInput(price.cachedInput, "cachedInput"),
    cacheWrite: orInput(price.cacheWrite, "cacheWrite"),
    output: picoDollars(price.output, `${field}.output`),
  };
}

function picoDollars(dollars: number, field: string): bigint {
  const pico = Math.round(dollars * 1_000_000);
  // What is lost in rounding has to be the binary fraction's own error and no seventh decimal.
  if (!(dollars >= 0 && dollars <= DOLLARS_MAX) || Math.abs(pico - dollars * 1_000_000) > 0.000_1) {
    throw invalidArgument(field, `must be dollars a million tokens from 0 to ${DOLLARS_MAX}, with at most six decimals`);
  }
  return BigInt(pico);
}

/** The cost of a completion in nanodollars. */
export function costNanoDollars(price: CheckedPrice, usage: Usage, facts: ModelFacts): number {
  // Cached tokens are part of the input tokens; a provider that says otherwise must not make a cost negative.
  const cached = least(BigInt(facts.cachedInputTokens ?? 0), usage.inputTokens);
  const written = least(BigInt(facts.cacheWriteTokens ?? 0), usage.inputTokens - cached);
  const others = usage.inputTokens - cached - written;
  const pico = others * price.input + cached * price.cachedInput + written * price.cacheWrite + usage.outputTokens * price.output;
  return Number((pico + 999n) / 1_000n);
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
