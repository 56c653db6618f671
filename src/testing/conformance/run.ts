/** Running the suite: each case on a bench of its own, one after the other. */

import { newUuid } from "../../base/index.ts";
import type { Transport } from "../../client/index.ts";
import { Bench } from "./bench.ts";
import { CONTRACT_CASES } from "./cases.ts";
import {
  BrokenPromise,
  NotServed,
  type Abilities,
  type CaseResult,
  type ConformanceOptions,
  type ConformanceReport,
  type ContractCase,
} from "./contract.ts";

const CASE_TIMEOUT_MS = 60_000;

/**
 * Runs the cases against a server, through its public API alone. A broken promise is a result, not an error; what it rejects with is that
 * the transport could not be opened, or the caller's signal. Sessions that it makes are in projects of their own (`conformance-…`), save
 * those that Exec creates, and are deleted.
 */
export async function runConformance(options: ConformanceOptions): Promise<ConformanceReport> {
  const transport = await options.connect();
  const results: CaseResult[] = [];
  try {
    for (const each of selected(options.only)) {
      options.signal?.throwIfAborted();
      const result = await runCase(transport, each, options);
      results.push(result);
      options.onResult?.(result);
    }
  } finally {
    await transport[Symbol.asyncDispose]();
  }
  const count = (outcome: CaseResult["outcome"]): number => results.filter((result) => result.outcome === outcome).length;
  return { results, passed: count("passed"), failed: count("failed"), skipped: count("skipped") };
}

/** The cases of these groups, or with these ids. */
export function selected(only: readonly string[] | undefined): readonly ContractCase[] {
  if (only === undefined || only.length === 0) return CONTRACT_CASES;
  return CONTRACT_CASES.filter(({ id }) => only.some((name) => id === name || id.startsWith(`${name}/`)));
}

/**
 * The cases for a test runner: `it.each(contractTests(options))("$name", ({ run }) => run())`. Each opens a transport of its own and
 * rejects for a broken promise, and for a case that had to be skipped: whoever gives the abilities means all cases to run.
 */
export function contractTests(
  options: Omit<ConformanceOptions, "onResult">,
): readonly { readonly name: string; readonly run: () => Promise<void> }[] {
  return selected(options.only).map((each) => ({
    name: `${each.id}: ${each.promise}`,
    run: async () => {
      await using transport = await options.connect();
      const result = await runCase(transport, each, options);
      if (result.outcome !== "passed") throw new BrokenPromise(result.reason);
    },
  }));
}

async function runCase(transport: Transport, each: ContractCase, options: ConformanceOptions): Promise<CaseResult> {
  const { clock } = transport.ports;
  const { abilities = {}, caseTimeoutMs = CASE_TIMEOUT_MS } = options;
  const about = { id: each.id, promise: each.promise };
  const missing = each.needs.find((need) => abilities[need] === undefined);
  if (missing !== undefined) return { ...about, durationMs: 0, outcome: "skipped", reason: `needs a ${NEEDS[missing]}` };
  const late = new AbortController();
  const timer = clock.after(caseTimeoutMs, () => late.abort(new BrokenPromise(`it took longer than ${caseTimeoutMs} ms`)));
  const signal = options.signal === undefined ? late.signal : AbortSignal.any([late.signal, options.signal]);
  const startedMs = clock.monotonicMs();
  const ended = (): number => Math.round(clock.monotonicMs() - startedMs);
  try {
    await using bench = new Bench(transport, { project: `conformance-${newUuid(transport.ports)}`, abilities, signal });
    await each.run(bench);
    return { ...about, durationMs: ended(), outcome: "passed" };
  } catch (error) {
    options.signal?.throwIfAborted();
    if (error instanceof NotServed) return { ...about, durationMs: ended(), outcome: "skipped", reason: error.message };
    return { ...about, durationMs: ended(), outcome: "failed", reason: reasonOf(error) };
  } finally {
    timer.cancel();
  }
}

const NEEDS: Readonly<Record<Exclude<keyof Abilities, "harness">, string>> = {
  waitingHarness: "harness whose turn goes on until it is cancelled",
  failingHarness: "harness whose turns end FAILED",
  flakyHarness: "harness that throws in a turn's first run and completes when it is resumed",

  toolHarness: "harness that calls a tool that succeeds, then one whose executor fails",
  approvalHarness: "harness whose turn makes one call that needs approval",
  parallelApprovalHarness: "harness whose turn makes three such calls at once",
};

/** What a case that did not pass says: its own words, or those of an error that it did not expect. */
function reasonOf(error: unknown): string {
  if (error instanceof BrokenPromise) return error.message;
  if (error instanceof Error && "code" in error) return `an unexpected error: ${String(error.code).toUpperCase()} (${error.message})`;
  return `an unexpected error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
}
