/**
 * A model that counts. Every request that reaches it is in the ledger, with the MODEL_CALL that was durable for it at that moment, if
 * there was one. What it answers is the caller's script.
 */

import { clone } from "@bufbuild/protobuf";
import { HoldfastError, type Digest, type Seq } from "../../base/index.ts";
import { inputHash } from "../../canon/index.ts";
import { MessageSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import type { ModelCatalog, ModelChunk, ModelProvider, ModelRequest } from "../../spi/index.ts";
import type { JournalMonitor } from "./journal-monitor.ts";
import type { Ledger, RealCall, Run } from "./ledger.ts";
import { currentRun } from "./observed-harness.ts";
import { modelCallSeqs } from "./session-evidence.ts";
import { violation } from "./violation.ts";

/** Answers one request. `call` counts requests of the world from 0. */
export type ModelScript = (request: ModelRequest, signal: AbortSignal, call: number) => AsyncIterable<ModelChunk>;

/** What a counted model needs. */
export interface CountedModelOptions {
  readonly ledger: Ledger;
  readonly monitor: JournalMonitor;
  readonly digest: Digest;
  readonly script: ModelScript;
  /** Resolves when the host that asks may go on: never, once it is dead. */
  readonly alive: () => Promise<void>;
}

/** The model of one host. It serves every model name but `unserved`. */
export class CountedModel implements ModelProvider, ModelCatalog {
  readonly name = "counted";
  readonly #options: CountedModelOptions;

  constructor(options: CountedModelOptions) {
    this.#options = options;
  }

  providerOf(model: string): ModelProvider | undefined {
    return model === "unserved" ? undefined : this;
  }

  complete(request: ModelRequest, { signal }: { readonly signal: AbortSignal }): AsyncIterable<ModelChunk> {
    const run = currentRun();
    if (run === undefined) throw new HoldfastError("internal", "a model was asked outside of any run");
    return this.#answer(request, signal, run, this.#options.monitor.durableSeq(run.session));
  }

  async *#answer(request: ModelRequest, signal: AbortSignal, run: Run, durableSeq: Seq): AsyncGenerator<ModelChunk, void, undefined> {
    const { ledger, monitor, digest, script, alive } = this.#options;
    signal.throwIfAborted();
    await alive();
    const hash = inputHash(request, digest);
    await monitor.refresh(run.session);
    const callSeq = modelCallSeqs(monitor.of(run.session), run.executionId, hash).findLast((seq) => seq <= durableSeq);
    const call: RealCall = { ...run, inputHash: hash, callSeq, response: undefined };
    ledger.calls.push(call);
    if (callSeq === undefined)
      ledger.found.push(violation("I7", { session: run.session }, "a model is asked, and no MODEL_CALL for it is durable"));
    for await (const chunk of script(request, signal, ledger.calls.length - 1)) {
      if (chunk.kind === "completed") call.response = clone(MessageSchema, chunk.response.message);
      yield chunk;
    }
  }
}
