/** Which model a client gets, and how much of a context, of what its environment has. Pure. */

import { invalidArgument } from "../../base/errors.ts";
import type { Environment } from "../../spi/index.ts";

/** The least that a context may be asked to be: below it the agent takes no context. */
export const CONTEXT_TOKENS_MIN = 1_000;
/** What the agent takes at most. */
export const CONTEXT_TOKENS_MAX = 100_000_000;

/**
 * The model for a client that asks for `asked`: a tier or a model, or "" for the environment's own. "" for the server's default. Throws
 * INVALID_ARGUMENT that names `model` for one that the environment does not have.
 */
export function resolveModel({ model, models }: Pick<Environment, "model" | "models">, asked: string): string {
  const named = (name: string): string => (Object.hasOwn(models, name) ? (models[name] ?? name) : name);
  const own = named(model);
  if (asked === "") return own;
  const found = named(asked);
  const choices = Object.values(models);
  if (choices.length === 0 || found === own || choices.includes(found)) return found;
  throw invalidArgument("model", `must be one that the environment has, or be empty; it has: ${namesOf(models)}`);
}

/**
 * The largest request for a client that asks for `asked` tokens: no more than the environment has. Undefined for the agent's default. Throws
 * INVALID_ARGUMENT that names `max_context_tokens` for too small a context.
 */
export function resolveContextTokens(
  { maxContextTokens }: Pick<Environment, "maxContextTokens">,
  asked: number | undefined,
): number | undefined {
  if (asked === undefined) return maxContextTokens;
  if (asked < CONTEXT_TOKENS_MIN) throw invalidArgument("max_context_tokens", `must be at least ${CONTEXT_TOKENS_MIN}`);
  return Math.min(asked, maxContextTokens ?? CONTEXT_TOKENS_MAX);
}

/** An error names so many. */
const NAMES_MAX = 20;

function namesOf(models: Environment["models"]): string {
  const names = Object.keys(models).toSorted();
  const more = names.length - NAMES_MAX;
  return [...names.slice(0, NAMES_MAX), ...(more > 0 ? [`${more} more`] : [])].join(", ");
}
