/**
 * The models of a host as its sessions are served: a catalogue with fallback models, a limit of open calls for each provider, and a price
 * table around it.
 *
 * Invariants:
 * - Another model is asked only after a call failed for good and before anything of an answer was handed on.
 * - Usage names the model that answered, and so do the facts. The request that is hashed and recorded is the one that was made.
 * - A slot of a provider is given back in whatever way its call ends.
 */

import { HoldfastError, invalidArgument, type ErrorCode } from "../base/errors.ts";
import type { Clock } from "../base/ports.ts";
import type { ModelCatalog, ModelChunk, ModelProvider, ModelRequest } from "../spi/index.ts";
import { createMatchTable, type MatchEntry, type MatchTable } from "./match-table.ts";
import { readNames } from "./params.ts";
import { checkPrice, costNanoDollars, type CheckedPrice, type ModelPrice } from "./prices.ts";
import { Slots } from "./slots.ts";

/** How models are served. */
export interface ServingOptions {
  readonly catalog: ModelCatalog;
  readonly clock: Clock;
  /** For models that match: the models to ask, in order, when a call failed. The param `fallback_models` goes before it. */
  readonly fallbacks?: readonly MatchEntry<readonly string[]>[] | undefined;
  /** How many calls may be open at once, by the provider's name; a provider that is not here has no limit. */
  readonly concurrency?: Readonly<Record<string, number>> | undefined;
  readonly prices?: readonly MatchEntry<ModelPrice>[] | undefined;
}

/** The param that names the fallback models of one request: a JSON array of ids, or one id. No provider sees it. */
export const FALLBACK_PARAM = "fallback_models";
/** Fallback models of one call at most. */
const FALLBACKS_MAX = 8;

/** Errors after which another model may answer. What is wrong with the request itself, or was called off, is so for every model. */
const FALLS_BACK: ReadonlySet<ErrorCode> = new Set(["unavailable", "resource_exhausted", "failed_precondition", "deadline_exceeded"]);

/** A catalogue that serves `options.catalog`'s models. Throws INVALID_ARGUMENT for options that cannot work. */
export function createServedModels(options: ServingOptions): ModelCatalog {
  const serving = new Serving(options);
  return {
    providerOf: (model) => {
      const provider = options.catalog.providerOf(model);
      return provider === undefined
        ? undefined
        : { name: provider.name, complete: (request, { signal }) => serving.complete(request, signal) };
    },
  };
}

class Serving {
  readonly #catalog: ModelCatalog;
  readonly #clock: Clock;
  readonly #fallbacks: MatchTable<readonly string[]>;
  readonly #prices: MatchTable<CheckedPrice>;
  readonly #slots = new Map<string, Slots>();

  constructor(options: ServingOptions) {
    this.#catalog = options.catalog;
    this.#clock = options.clock;
    this.#fallbacks = createMatchTable(options.fallbacks ?? [], "fallbacks");
    const prices = (options.prices ?? []).map(({ match, value }) => ({ match, value: checkPrice(value, `prices.${match}`) }));
    this.#prices = createMatchTable(prices, "prices");
    for (const [name, count] of Object.entries(options.concurrency ?? {})) {
      if (!Number.isSafeInteger(count) || count < 1) throw invalidArgument(`concurrency.${name}`, "must be a whole number from 1");
      this.#slots.set(name, new Slots(count));
    }
  }

  async *complete(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelChunk, void, undefined> {
    const startedMs = this.#clock.monotonicMs();
    const { sent, models } = this.#plan(request);
    let attemptsBefore = 0;
    let first: HoldfastError | undefined;
    for (const [index, { model, provider }] of models.entries()) {
      const answer = new Answer();
      try {
        for await (const chunk of this.#ask(provider, { ...sent, model }, signal)) {
          answer.handedOn = true;
          if (chunk.kind !== "completed") yield chunk;
          else yield this.#told(chunk, { model, provider: provider.name, attemptsBefore, startedMs, fellBack: index > 0 });
        }
        return;
      } catch (error) {
        if (!mayFallBack(error, signal, index > 0) || answer.handedOn) throw error;
        attemptsBefore += attemptsOf(error);
        first ??= error;
      }
    }
    throw failureOf(first, models.length - 1);
  }

  /** Which models are asked, in order, and with what. Throws INVALID_ARGUMENT for a fallback that is not served. */
  #plan(request: ModelRequest): { readonly sent: ModelRequest; readonly models: readonly Candidate[] } {
    const { [FALLBACK_PARAM]: given, ...params } = request.params ?? {};
    const field = `params.${FALLBACK_PARAM}`;
    const names = given === undefined ? (this.#fallbacks(request.model) ?? []) : readNames(given, field);
    if (names.length > FALLBACKS_MAX) throw invalidArgument(field, `must be at most ${FALLBACKS_MAX} models`);
    const models = [...new Set([request.model, ...names])].map((model): Candidate => {
      const provider = this.#catalog.providerOf(model);
      if (provider === undefined) throw invalidArgument(field, "must be models that this host serves");
      return { model, provider };
    });
    return { sent: given === undefined ? request : { ...request, params }, models };
  }

  async *#ask(provider: ModelProvider, request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelChunk, void, undefined> {
    const giveBack = await this.#slots.get(provider.name)?.take(signal);
    try {
      yield* provider.complete(request, { signal });
    } finally {
      giveBack?.();
    }
  }

  #told(chunk: CompletedChunk, by: Answering): CompletedChunk {
    const { response, facts } = chunk;
    const price = this.#prices(by.model);
    return {
      kind: "completed",
      response,
      facts: {
        ...facts,
        ...(by.fellBack
          ? { attempts: by.attemptsBefore + (facts.attempts ?? 1), latencyMs: Math.round(this.#clock.monotonicMs() - by.startedMs) }
          : {}),
        model: by.model,
        provider: by.provider,
        ...(price === undefined ? {} : { costNanoDollars: costNanoDollars(price, response.usage, facts) }),
      },
    };
  }
}

type CompletedChunk = Extract<ModelChunk, { kind: "completed" }>;

interface Candidate {
  readonly model: string;
  readonly provider: ModelProvider;
}

interface Answering {
  readonly model: string;
  readonly provider: string;
  /** Requests of the models that failed before. */
  readonly attemptsBefore: number;
  readonly startedMs: number;
  readonly fellBack: boolean;
}

/** What the caller has of one model's answer. */
class Answer {
  handedOn = false;
}

/** A fallback may refuse what the first model takes, such as a param: that is a failure like any other there. */
function mayFallBack(error: unknown, signal: AbortSignal, isFallback: boolean): error is HoldfastError {
  return error instanceof HoldfastError && !signal.aborted && (isFallback ? error.code !== "cancelled" : FALLS_BACK.has(error.code));
}

function attemptsOf(error: HoldfastError): number {
  const attempts = error.details?.["attempts"];
  return typeof attempts === "number" ? attempts : 1;
}

/** The failure of the model that was asked for; that others failed as well is a detail. */
function failureOf(first: HoldfastError | undefined, fallbacks: number): HoldfastError {
  if (first === undefined) return new HoldfastError("internal", "model: no model was asked");
  if (fallbacks === 0) return first;
  const details = { ...first.details, fallbacks };
  return new HoldfastError(first.code, first.message, { field: first.field, details, cause: first.cause });
}
