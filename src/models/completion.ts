/**
 * One model call against one provider: attempts, waits, time limits, and the rule that nothing is tried again once a chunk has
 * been handed on. What differs between providers comes in as a `ProviderCall`.
 *
 * Invariants:
 * - A call that throws throws a HoldfastError; what the provider sent is in none of its fields.
 * - When the generator ends, in whatever way, no request of it is open and no timer is left.
 */

import { HoldfastError } from "../base/errors.ts";
import type { Clock, Random } from "../base/ports.ts";
import type { ModelChunk, ModelFacts, ModelResponse } from "../spi/index.ts";
import { AttemptWatch } from "./attempt-watch.ts";
import { abortErrorOf, holdfastErrorOf, type ProviderFault } from "./fault.ts";
import type { ProviderLimits } from "./limits.ts";
import { fractionOf, retryDelayMs } from "./retry.ts";

/** What a translation makes of a stream: its events one by one, then the whole. */
export interface Translation {
  /** The chunks that one event of the stream stands for. Throws a ProviderFaultError on an event that breaks the protocol. */
  push(event: unknown): readonly ModelChunk[];
  /** The text still held back, and the completion. Throws a ProviderFaultError when the stream was not complete. */
  finish(): { readonly chunks: readonly ModelChunk[]; readonly response: ModelResponse; readonly facts: ModelFacts };
}

/** One attempt as a provider sees it. */
export interface Attempt {
  /** Stops the request. */
  readonly signal: AbortSignal;
  /** To be called whenever a piece of the answer has arrived. */
  readonly onBytes: () => void;
}

/** One model call. */
export interface ProviderCall {
  /** The provider's name, for the details of errors. */
  readonly provider: string;
  readonly limits: ProviderLimits;
  readonly clock: Clock;
  readonly random: Random;
  /** The caller's signal. */
  readonly signal: AbortSignal;
  /** Sends the request and returns the events of the answer. */
  open(attempt: Attempt): Promise<AsyncIterable<unknown>>;
  /** A translation of one answer, new for each attempt. */
  translate(): Translation;
  /** The fault behind an error of `open` or its events; undefined for an error that is not the provider's doing. */
  faultOf(error: unknown): ProviderFault | undefined;
}

/** Runs a call to its end; yields its chunks, `completed` last. */
export async function* runCompletion(call: ProviderCall): AsyncGenerator<ModelChunk, void, undefined> {
  const startedMs = call.clock.monotonicMs();
  const callEndsMs = startedMs + call.limits.callTimeoutMs;
  for (let attempt = 1; ; attempt++) {
    const outcome = yield* runAttempt(call, callEndsMs, (facts) => ({
      ...facts,
      attempts: attempt,
      latencyMs: Math.round(call.clock.monotonicMs() - startedMs),
    }));
    if (outcome.kind === "completed") return;
    const { fault } = outcome;
    const delayMs = outcome.handedOn ? undefined : retryDelayMs(fault, attempt, call.limits, fractionOf(call.random.bytes(4)));
    // A wait that outlasts the call would only delay the same end.
    if (delayMs === undefined || call.clock.monotonicMs() + delayMs >= callEndsMs) {
      throw holdfastErrorOf(fault, { provider: call.provider, attempts: attempt });
    }
    await call.clock.sleep(delayMs, { signal: call.signal }).catch(() => undefined);
    if (call.signal.aborted) throw abortErrorOf(call.signal);
  }
}

type AttemptOutcome =
  | { readonly kind: "completed" }
  /** `handedOn`: a chunk of this attempt has reached the caller. */
  | { readonly kind: "failed"; readonly fault: ProviderFault; readonly handedOn: boolean };

async function* runAttempt(
  call: ProviderCall,
  callEndsMs: number,
  factsOf: (facts: ModelFacts) => ModelFacts,
): AsyncGenerator<ModelChunk, AttemptOutcome, undefined> {
  if (call.signal.aborted) throw abortErrorOf(call.signal);
  const watch = new AttemptWatch({ clock: call.clock, limits: call.limits, signal: call.signal, callEndsMs });
  let handedOn = false;
  try {
    const events = await call.open({ signal: watch.signal, onBytes: () => watch.touch() });
    const translation = call.translate();
    for await (const event of events) {
      for (const chunk of translation.push(event)) {
        handedOn = true;
        yield* given(chunk, watch);
      }
    }
    // The clients end a stream without an error when its request was aborted, so a quiet end proves nothing. When a limit ran
    // out, the answer may be whole all the same: some servers leave the connection open after it.
    if (call.signal.aborted) throw abortErrorOf(call.signal);
    const { chunks, response, facts } = translation.finish();
    watch.hold();
    handedOn ||= chunks.length > 0;
    yield* chunks;
    yield { kind: "completed", response, facts: factsOf(facts) };
    return { kind: "completed" };
  } catch (error) {
    if (error instanceof HoldfastError) throw error;
    if (call.signal.aborted) throw abortErrorOf(call.signal);
    if (watch.expired !== undefined) return failed({ kind: "timeout", limit: watch.expired }, handedOn);
    const fault = call.faultOf(error);
    if (fault !== undefined) return failed(fault, handedOn);
    // A fault of our own code. It may hold what the provider sent, so only the name of its class goes on.
    const details = { provider: call.provider, error: error instanceof Error ? error.name : typeof error };
    throw new HoldfastError("internal", "model: an internal error; nothing of the answer was kept", { details });
  } finally {
    watch.stop();
  }
}

/** A chunk, for as long as the caller likes. One that leaves here wants nothing more, so the end of the answer is not waited for. */
function* given(chunk: ModelChunk, watch: AttemptWatch): Generator<ModelChunk, void, undefined> {
  let isWanted = false;
  watch.hold();
  try {
    yield chunk;
    isWanted = true;
  } finally {
    if (!isWanted) watch.stop();
  }
  watch.release();
}

function failed(fault: ProviderFault, handedOn: boolean): AttemptOutcome {
  return { kind: "failed", fault, handedOn };
}
