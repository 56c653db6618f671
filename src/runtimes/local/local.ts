/**
 * The local runtime: a harness in this process. Nothing is started for a session and nothing is captured; an incarnation is a name.
 *
 * Invariants: every incarnation is the one harness object, which drives any number of sessions; a snapshot is the session itself, since
 * the journal is all there is.
 */

import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "../../base/errors.ts";
import { RuntimeCapabilitiesSchema, SnapshotRefSchema } from "../../gen/agentsessions/v1/session_pb.ts";
import { ComputeState } from "../../spi/index.ts";
import type {
  CallOptions,
  Harness,
  HarnessDescriptor,
  Incarnation,
  IncarnationOptions,
  Runtime,
  RuntimeCapabilities,
  SessionSpec,
  SnapshotKind,
  SnapshotRef,
} from "../../spi/index.ts";

/** A runtime over `harness`, which lives in this process and is not disposed of with the runtime. */
export function createLocalRuntime(options: { readonly harness: Harness }): Runtime {
  return new LocalRuntime(options.harness);
}

class LocalRuntime implements Runtime {
  readonly name = "local";
  readonly #harness: Harness;
  /** Incarnations that were not stopped, with whether they are paused. */
  readonly #incarnations = new Map<string, { paused: boolean }>();
  #started = 0;
  #isClosed = false;

  constructor(harness: Harness) {
    this.#harness = harness;
  }

  async create({ sessionUid, fence }: SessionSpec, options: CallOptions = {}): Promise<Incarnation> {
    this.#enter(options);
    return this.#start({ sessionUid, fence });
  }

  async attach(incarnation: Incarnation, options: CallOptions = {}): Promise<Harness> {
    this.#enter(options);
    this.#of(incarnation).paused = false;
    return this.#harness;
  }

  async describe(options: CallOptions = {}): Promise<HarnessDescriptor> {
    this.#enter(options);
    return this.#harness.describe(options);
  }

  async snapshot(incarnation: Incarnation, kind: SnapshotKind, options: CallOptions = {}): Promise<SnapshotRef> {
    this.#enter(options);
    const state = this.#of(incarnation);
    if (kind === "external") this.#incarnations.delete(incarnation.id);
    else state.paused = true;
    return create(SnapshotRefSchema, { local: incarnation.sessionUid });
  }

  async restore(_snapshot: SnapshotRef, options: IncarnationOptions): Promise<Incarnation> {
    this.#enter(options);
    return this.#start(options);
  }

  async fork(_snapshot: SnapshotRef, options: IncarnationOptions): Promise<Incarnation> {
    this.#enter(options);
    return this.#start(options);
  }

  async stop(incarnation: Incarnation): Promise<void> {
    this.#incarnations.delete(incarnation.id);
  }

  async status(incarnation: Incarnation): Promise<ComputeState> {
    const state = this.#incarnations.get(incarnation.id);
    if (state === undefined) return ComputeState.COMPUTE_TERMINATED;
    return state.paused ? ComputeState.COMPUTE_WARM : ComputeState.COMPUTE_LIVE;
  }

  capabilities(): RuntimeCapabilities {
    return create(RuntimeCapabilitiesSchema);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#incarnations.clear();
  }

  #enter({ signal }: CallOptions): void {
    signal?.throwIfAborted();
    if (this.#isClosed) throw new HoldfastError("unavailable", "runtime: it was closed");
  }

  #start({ sessionUid, fence }: Pick<Incarnation, "sessionUid" | "fence">): Incarnation {
    this.#started++;
    const id = `local-${this.#started}`;
    this.#incarnations.set(id, { paused: false });
    return { id, runtime: this.name, worker: "host", sessionUid, fence };
  }

  #of(incarnation: Incarnation): { paused: boolean } {
    const state = this.#incarnations.get(incarnation.id);
    if (state === undefined) throw new HoldfastError("unavailable", "runtime: the incarnation was stopped");
    return state;
  }
}
