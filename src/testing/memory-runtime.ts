/**
 * A runtime that keeps the memory of its harnesses in plain values: the smallest one that captures memory, for tests of what stands on
 * runtimes. A snapshot is a copy of the value; it lives as long as the runtime's storage, which other runtimes may share, as hosts share
 * a blob store.
 */

import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "../base/index.ts";
import { RuntimeCapabilitiesSchema, SnapshotRefSchema } from "../gen/agentsessions/v1/session_pb.ts";
import { ComputeState, SnapshotSupersededError } from "../spi/index.ts";
import type {
  EventSink,
  Harness,
  HarnessDescriptor,
  Incarnation,
  IncarnationOptions,
  Runtime,
  RuntimeCapabilities,
  SessionSpec,
  SnapshotKind,
  SnapshotRef,
  Start,
} from "../spi/index.ts";

/** What a harness keeps in memory. */
export interface Memory {
  [name: string]: unknown;
}

/** A harness's run with its memory, which it changes in place. */
export type RunWithMemory = (memory: Memory, start: Start, sink: EventSink, options: { readonly signal: AbortSignal }) => Promise<void>;

/** Snapshots by their names; runtimes that share one stand for hosts that share a store. */
export type SnapshotStorage = Map<string, string>;

/** What a memory runtime is made of. */
export interface MemoryRuntimeOptions {
  readonly describe: () => HarnessDescriptor;
  readonly run: RunWithMemory;
  readonly storage?: SnapshotStorage | undefined;
}

interface Sandbox {
  readonly incarnation: Incarnation;
  readonly memory: Memory;
  readonly harness: Harness;
  state: ComputeState;
}

/** A runtime over plain values. It counts what it did, and its sandboxes can be killed. */
export class MemoryRuntime implements Runtime {
  readonly name = "memory";
  readonly storage: SnapshotStorage;
  /** What was asked of it, in order. */
  readonly calls: string[] = [];
  readonly #options: MemoryRuntimeOptions;
  readonly #sandboxes = new Map<string, Sandbox>();
  #made = 0;

  constructor(options: MemoryRuntimeOptions) {
    this.#options = options;
    this.storage = options.storage ?? new Map();
  }

  /** Sandboxes that hold memory now. */
  get living(): number {
    return [...this.#sandboxes.values()].filter(({ state }) => state !== ComputeState.COMPUTE_TERMINATED).length;
  }

  /** Kills every sandbox, as a crash would. */
  kill(): void {
    for (const sandbox of this.#sandboxes.values()) sandbox.state = ComputeState.COMPUTE_TERMINATED;
  }

  async describe(): Promise<HarnessDescriptor> {
    return this.#options.describe();
  }

  async create({ sessionUid, fence }: SessionSpec): Promise<Incarnation> {
    this.calls.push("create");
    return this.#start({}, { sessionUid, fence });
  }

  async attach(incarnation: Incarnation): Promise<Harness> {
    const sandbox = this.#living(incarnation);
    sandbox.state = ComputeState.COMPUTE_LIVE;
    return sandbox.harness;
  }

  async snapshot(incarnation: Incarnation, kind: SnapshotKind): Promise<SnapshotRef> {
    this.calls.push(`snapshot ${kind}`);
    const sandbox = this.#living(incarnation);
    if (kind === "external") {
      this.#sandboxes.delete(incarnation.id);
      return this.#capture(sandbox);
    }
    sandbox.state = ComputeState.COMPUTE_WARM;
    // It is the sandbox itself: nothing is stored, and it ends with it.
    return create(SnapshotRefSchema, { local: incarnation.id, memory: true });
  }

  async checkpoint(incarnation: Incarnation): Promise<SnapshotRef> {
    this.calls.push("checkpoint");
    return this.#capture(this.#living(incarnation));
  }

  async restore(snapshot: SnapshotRef, options: IncarnationOptions): Promise<Incarnation> {
    this.calls.push("restore");
    const memory = this.storage.get(snapshot.externalUri);
    if (memory === undefined) throw new HoldfastError("failed_precondition", "session: its snapshot is not in this host's storage");
    return this.#start(JSON.parse(memory) as Memory, options);
  }

  async fork(snapshot: SnapshotRef, options: IncarnationOptions): Promise<Incarnation> {
    this.calls.push("fork");
    const memory = this.storage.get(snapshot.externalUri);
    if (memory === undefined) throw new SnapshotSupersededError();
    return this.#start(JSON.parse(memory) as Memory, options);
  }

  async stop(incarnation: Incarnation): Promise<void> {
    this.calls.push("stop");
    this.#sandboxes.delete(incarnation.id);
  }

  async status(incarnation: Incarnation): Promise<ComputeState> {
    return this.#sandboxes.get(incarnation.id)?.state ?? ComputeState.COMPUTE_TERMINATED;
  }

  capabilities(): RuntimeCapabilities {
    return create(RuntimeCapabilitiesSchema, { memorySnapshot: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#sandboxes.clear();
  }

  #start(memory: Memory, { sessionUid, fence }: Pick<IncarnationOptions, "sessionUid" | "fence">): Incarnation {
    this.#made++;
    const incarnation = { id: `sandbox-${this.#made}`, runtime: this.name, worker: "here", sessionUid, fence };
    const { describe, run } = this.#options;
    const harness: Harness = { describe: async () => describe(), run: (start, sink, options) => run(memory, start, sink, options) };
    this.#sandboxes.set(incarnation.id, { incarnation, memory, harness, state: ComputeState.COMPUTE_LIVE });
    return incarnation;
  }

  #capture({ incarnation, memory }: Sandbox): SnapshotRef {
    const externalUri = `memory:${incarnation.id}/${this.storage.size + 1}`;
    this.storage.set(externalUri, JSON.stringify(memory));
    return create(SnapshotRefSchema, { externalUri, memory: true });
  }

  #living(incarnation: Incarnation): Sandbox {
    const sandbox = this.#sandboxes.get(incarnation.id);
    if (sandbox === undefined || sandbox.state === ComputeState.COMPUTE_TERMINATED) {
      throw new HoldfastError("unavailable", "runtime: the sandbox is gone");
    }
    return sandbox;
  }
}
