/**
 * Harnesses with an observer around each run: what it was started with, every completion that it was given, and whether it learnt
 * that it had diverged. What happens inside a run (a request to a model) knows whose run it is, however deep it lies.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { clone } from "@bufbuild/protobuf";
import type { Digest, Fence } from "../../base/index.ts";
import { inputHash } from "../../canon/index.ts";
import { DivergenceError } from "../../controller/index.ts";
import { MessageSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { Mediation } from "../../spi/index.ts";
import type {
  CallOptions,
  EventSink,
  Harness,
  HarnessCatalog,
  HarnessEntry,
  History,
  ModelRequest,
  ModelResponse,
  Start,
} from "../../spi/index.ts";
import type { JournalMonitor } from "./journal-monitor.ts";
import type { Ledger, Run, SeenStart } from "./ledger.ts";

const runs = new AsyncLocalStorage<Run>();

/** The run that asks, from inside of it. */
export function currentRun(): Run | undefined {
  return runs.getStore();
}

/** What observing harnesses needs. */
export interface HarnessObserverOptions {
  readonly harnesses: HarnessCatalog;
  readonly ledger: Ledger;
  readonly monitor: JournalMonitor;
  readonly digest: Digest;
  readonly host: string;
}

/** The same catalog, observed. A rehearsal is a replay's. */
export function observedHarnesses(options: HarnessObserverOptions): HarnessCatalog {
  return {
    find(name) {
      const entry = options.harnesses.find(name);
      return entry === undefined ? undefined : observedEntry(entry, options);
    },
    names: () => options.harnesses.names(),
  };
}

function observedEntry(entry: HarnessEntry, options: HarnessObserverOptions): HarnessEntry {
  const ready = entry.ready?.bind(entry);
  return {
    name: entry.name,
    source: entry.source,
    open: entry.open,
    runtime: entry.runtime,
    sandboxed: entry.sandboxed,
    fenceOf: (session) => entry.fenceOf(session),
    wake: (wake) => entry.wake(wake),
    describe: (call) => entry.describe(call),
    ready,
    attach: async (attach) => {
      const attached = await entry.attach(attach);
      return { ...attached, harness: observedHarness(attached.harness, attach.fence, { ...options, actsItself: await runsTools(entry) }) };
    },
    rehearse: async (call) => {
      const rehearsed = await entry.rehearse(call);
      return {
        harness: observedHarness(rehearsed.harness, "replay", { ...options, actsItself: await runsTools(entry) }),
        [Symbol.asyncDispose]: () => rehearsed[Symbol.asyncDispose](),
      };
    },
    settle: (residence) => entry.settle(residence),
    suspend: (residence) => entry.suspend(residence),
    shared: (compute) => entry.shared(compute),
    discard: (before, now) => entry.discard(before, now),
    release: (session) => entry.release(session),
  };
}

async function runsTools(entry: HarnessEntry): Promise<boolean> {
  const { tools } = await entry.describe();
  return tools.some(({ mediation }) => mediation === Mediation.IN_HARNESS_REPORTED);
}

interface RunObserverOptions extends HarnessObserverOptions {
  readonly actsItself: boolean;
}

function observedHarness(harness: Harness, fence: Fence | "replay", options: RunObserverOptions): Harness {
  const { ledger, host } = options;
  return {
    readsOnly: harness.readsOnly,
    describe: (call) => harness.describe(call),
    run: (start, sink, call) => {
      const run: Run = { session: start.sessionUid, host, fence, executionId: start.executionId };
      const { lastSeq } = start.history;
      const { inputs, config, resumeFromSeq } = start;
      const seen: SeenStart = { ...run, lastSeq, inputs, config, resumeFromSeq, pages: [] };
      ledger.starts.push(seen);
      const observed: Start = { ...start, history: observedHistory(start.history, seen) };
      return runs.run(run, () => harness.run(observed, new ObservedSink(sink, run, options), call));
    },
  };
}

function observedHistory(history: History, seen: SeenStart): History {
  return {
    lastSeq: history.lastSeq,
    async *read(options) {
      for await (const page of history.read(options)) {
        seen.pages.push(page);
        yield page;
      }
    },
  };
}

class ObservedSink implements EventSink {
  readonly #sink: EventSink;
  readonly #run: Run;
  readonly #options: RunObserverOptions;

  constructor(sink: EventSink, run: Run, options: RunObserverOptions) {
    this.#sink = sink;
    this.#run = run;
    this.#options = options;
  }

  async model(request: ModelRequest, options?: CallOptions): Promise<ModelResponse> {
    const { ledger, monitor, digest, actsItself } = this.#options;
    const hash = inputHash(request, digest);
    const response = await this.#noted(this.#sink.model(request, options));
    const message = clone(MessageSchema, response.message);
    ledger.served.push({ ...this.#run, inputHash: hash, message, durableSeq: monitor.durableSeq(this.#run.session), actsItself });
    return response;
  }

  output(text: string, options?: CallOptions): Promise<void> {
    return this.#noted(this.#sink.output(text, options));
  }

  toolCall(...call: Parameters<EventSink["toolCall"]>): ReturnType<EventSink["toolCall"]> {
    return this.#noted(this.#sink.toolCall(...call));
  }

  report(...report: Parameters<EventSink["report"]>): Promise<void> {
    return this.#noted(this.#sink.report(...report));
  }

  usage(...usage: Parameters<EventSink["usage"]>): Promise<void> {
    return this.#noted(this.#sink.usage(...usage));
  }

  /** Passes an effect's answer on. The first DivergenceError of a run is noted. */
  async #noted<T>(effect: Promise<T>): Promise<T> {
    try {
      return await effect;
    } catch (error) {
      const { divergences, calls } = this.#options.ledger;
      const known = divergences.some(({ session, fence }) => session === this.#run.session && fence === this.#run.fence);
      if (error instanceof DivergenceError && !known) divergences.push({ ...this.#run, callsBefore: calls.length });
      throw error;
    }
  }
}
