/**
 * A runtime that keeps the memory of its harnesses in plain values: the smallest one that captures memory, for tests of what stands on
 * runtimes. A capture is a blob of the value that names some of the captures before it, and cannot be restored without them, as if it held
 * nothing but changes. Runtimes that share a blob store stand for hosts that do.
 */

import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "../base/index.ts";
import { RuntimeCapabilitiesSchema, SnapshotRefSchema } from "../gen/agentsessions/v1/session_pb.ts";
import { ComputeState, snapshotBlob, SnapshotSupersededError, snapshotUri } from "../spi/index.ts";
import type {
  BlobName,
  BlobStore,
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

/** What a memory runtime is made of. */
export interface MemoryRuntimeOptions {
  readonly describe: () => HarnessDescriptor;
  readonly run: RunWithMemory;
  /** Where captures are stored. */
  readonly captures: BlobStore;
}

interface Sandbox {
  readonly incarnation: Incarnation;
  readonly memory: Memory;
  readonly harness: Harness;
  state: ComputeState;
  /** The captures that its next one may be made of, oldest first. */
  chain: readonly BlobName[];
}

/** A capture as it is stored. */
interface MemoryCapture {
  readonly kind: "memory";
  /** Makes every capture another blob. */
  readonly id: string;
  readonly session: string;
  readonly layers: readonly BlobName[];
  readonly memory: Memory;
}

/** With so many captures in its chain, a capture needs only the first of them. */
const LAYERS_MAX = 3;

/** What a capture of this runtime needs beside itself; see `CaptureParts`. */
export function memoryCaptureParts(bytes: Uint8Array): readonly BlobName[] {
  return captureOf(bytes).layers;
}

function captureOf(bytes: Uint8Array): MemoryCapture {
  return JSON.parse(new TextDecoder().decode(bytes)) as MemoryCapture;
}

/** A runtime over plain values. It counts what it did, and its sandboxes can be killed. */
export class MemoryRuntime implements Runtime {
  readonly name = "memory";
  /** What was done with its sandboxes, in order. */
  readonly calls: string[] = [];
  readonly #options: MemoryRuntimeOptions;
  readonly #sandboxes = new Map<string, Sandbox>();
  #made = 0;
  #captured = 0;

  constructor(options: MemoryRuntimeOptions) {
    this.#options = options;
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
    const { capture, name } = await this.#read(snapshot.externalUri);
    if (capture === undefined) throw new HoldfastError("failed_precondition", "session: its snapshot is not in this host's storage");
    if (capture.session !== options.sessionUid) throw new HoldfastError("failed_precondition", "snapshot: it is another session's memory");
    return this.#start(capture.memory, options, [...capture.layers, name]);
  }

  async fork(snapshot: SnapshotRef, options: IncarnationOptions): Promise<Incarnation> {
    this.calls.push("fork");
    const { capture } = await this.#read(snapshot.externalUri);
    if (capture === undefined) throw new SnapshotSupersededError();
    return this.#start(capture.memory, options);
  }

  async renew({ externalUri }: SnapshotRef): Promise<string | undefined> {
    const name = snapshotBlob(externalUri);
    if (name === undefined) return undefined;
    const bytes = await this.#options.captures.get(name);
    if (bytes === undefined) return name.digest;
    return this.#missing([name, ...captureOf(bytes).layers]);
  }

  async discard(snapshot: SnapshotRef, newer: SnapshotRef): Promise<void> {
    const [old, kept] = [await this.#read(snapshot.externalUri), await this.#read(newer.externalUri)];
    if (old.capture === undefined || kept.capture?.session !== old.capture.session) return;
    const needed = new Set([kept.name, ...kept.capture.layers].map(({ digest }) => digest));
    for (const part of [old.name, ...old.capture.layers]) if (!needed.has(part.digest)) await this.#options.captures.delete(part);
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

  #start(
    memory: Memory,
    { sessionUid, fence }: Pick<IncarnationOptions, "sessionUid" | "fence">,
    chain: readonly BlobName[] = [],
  ): Incarnation {
    this.#made++;
    const incarnation = { id: `sandbox-${this.#made}`, runtime: this.name, worker: "here", sessionUid, fence };
    const { describe, run } = this.#options;
    const harness: Harness = { describe: async () => describe(), run: (start, sink, options) => run(memory, start, sink, options) };
    this.#sandboxes.set(incarnation.id, { incarnation, memory, harness, state: ComputeState.COMPUTE_LIVE, chain });
    return incarnation;
  }

  async #capture(sandbox: Sandbox): Promise<SnapshotRef> {
    const { incarnation, memory } = sandbox;
    const { captures } = this.#options;
    const kept = sandbox.chain.slice(0, sandbox.chain.length < LAYERS_MAX ? LAYERS_MAX : 1);
    const layers = (await this.#missing(kept)) === undefined ? kept : [];
    this.#captured++;
    const id = `${incarnation.id}/${incarnation.fence}/${this.#captured}`;
    const capture: MemoryCapture = { kind: "memory", id, session: incarnation.sessionUid, layers, memory };
    const { uri, digest } = await captures.put(new TextEncoder().encode(JSON.stringify(capture)));
    sandbox.chain = [...layers, { uri, digest }];
    return create(SnapshotRefSchema, { externalUri: snapshotUri({ uri, digest }), memory: true });
  }

  /** A capture with all that it needs. Rejects with DATA_LOSS where a layer is gone. */
  async #read(externalUri: string): Promise<{ readonly name: BlobName; readonly capture: MemoryCapture | undefined }> {
    const name = snapshotBlob(externalUri) ?? { uri: "", digest: "" };
    const bytes = await this.#options.captures.get(name);
    if (bytes === undefined) return { name, capture: undefined };
    const capture = captureOf(bytes);
    for (const layer of capture.layers) {
      if ((await this.#options.captures.get(layer)) === undefined) throw new HoldfastError("data_loss", "snapshot: a layer of it is gone");
    }
    return { name, capture };
  }

  async #missing(names: readonly BlobName[]): Promise<string | undefined> {
    for (const name of names) if (!(await this.#options.captures.renew(name))) return name.digest;
    return undefined;
  }

  #living(incarnation: Incarnation): Sandbox {
    const sandbox = this.#sandboxes.get(incarnation.id);
    if (sandbox === undefined || sandbox.state === ComputeState.COMPUTE_TERMINATED) {
      throw new HoldfastError("unavailable", "runtime: the sandbox is gone");
    }
    return sandbox;
  }
}
