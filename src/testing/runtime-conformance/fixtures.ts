/** What the cases are made of: incarnations, turns of the counter, and turns that are held open. */

import assert from "node:assert/strict";
import { fenceOf, HoldfastError, sessionUidOf, type ErrorCode } from "../../base/index.ts";
import type { Harness, Incarnation, IncarnationOptions, Runtime, SessionSpec, Start } from "../../spi/index.ts";
import { firstStart } from "../evaluated.ts";
import { createRecordingSink } from "../recording-sink.ts";

/** The spec of a session's sandbox. */
export function spec(session: string, fence = 1): SessionSpec {
  return { sessionUid: sessionUidOf(session), harness: "counter", fence: fenceOf(fence) };
}

/** What a restore or a fork is bound to. */
export function bound(session: string, fence = 2): IncarnationOptions {
  return { sessionUid: sessionUidOf(session), fence: fenceOf(fence) };
}

const startOf = (session: string): Start => firstStart(sessionUidOf(session), []);

/** Runs one turn in an incarnation; answers the count. */
export async function count(runtime: Runtime, incarnation: Incarnation): Promise<number> {
  return countBy(await runtime.attach(incarnation), incarnation.sessionUid);
}

/** Runs one turn of a harness; answers the count. */
export async function countBy(harness: Harness, session: string): Promise<number> {
  const sink = createRecordingSink();
  await harness.run(startOf(session), sink, { signal: new AbortController().signal });
  const [effect, ...more] = sink.effects;
  assert.deepEqual(more, [], "the counter outputs once in a turn");
  assert.equal(effect?.kind, "output");
  return Number(effect.kind === "output" ? effect.text : "");
}

/** A turn that waits for its output to be recorded. */
export interface HeldTurn {
  /** Lets it go on, and waits for its end. */
  release(): Promise<void>;
}

/** Begins a turn and resolves once its output has been asked for. */
export async function holdTurn(runtime: Runtime, incarnation: Incarnation): Promise<HeldTurn> {
  const asked = Promise.withResolvers<void>();
  const letGo = Promise.withResolvers<void>();
  const harness = await runtime.attach(incarnation);
  const sink = {
    ...createRecordingSink(),
    output: async () => {
      asked.resolve();
      await letGo.promise;
    },
  };
  const ended = harness.run(startOf(incarnation.sessionUid), sink, { signal: new AbortController().signal });
  ended.catch((error: unknown) => asked.reject(error));
  await asked.promise;
  return {
    release: async () => {
      letGo.resolve();
      await ended;
    },
  };
}

/** Expects a HoldfastError with one of the codes. */
export async function rejectsWith(promise: Promise<unknown>, ...codes: readonly ErrorCode[]): Promise<void> {
  await assert.rejects(promise, (error: unknown) => {
    assert.ok(error instanceof HoldfastError, `it rejects with a HoldfastError, not with ${String(error)}`);
    assert.ok(codes.includes(error.code), `its code is one of ${codes.join(", ")}, not ${error.code}: ${error.message}`);
    return true;
  });
}
