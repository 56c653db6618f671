/**
 * The `quickjs` runtime: a harness that is one script, in a WebAssembly VM of its own for each session, with captures of its memory in
 * milliseconds.
 *
 * Invariants:
 * - A capture is stored before its reference is returned; an `external` snapshot and a checkpoint outlive this process.
 * - A `local` snapshot is the paused VM itself. It is good until the VM goes on, then it is superseded.
 * - A restore, or a fork, that fails leaves no VM behind.
 */

import { create } from "@bufbuild/protobuf";
import { HoldfastError, newUuid, SILENT_LOG, sessionUidOf, FENCE_NONE, type Fence, type SessionUid } from "../../base/index.ts";
import { RuntimeCapabilitiesSchema, SnapshotRefSchema } from "../../gen/agentsessions/v1/session_pb.ts";
import { createLineHarness } from "../../harness-wire/index.ts";
import {
  ComputeState,
  SnapshotSupersededError,
  type CallOptions,
  type Harness,
  type HarnessDescriptor,
  type Incarnation,
  type IncarnationOptions,
  type Runtime,
  type RuntimeCapabilities,
  type SessionSpec,
  type SnapshotKind,
  type SnapshotRef,
} from "../../spi/index.ts";
import { Captures, refuseInTurn } from "./captures.ts";
import { loadEngine } from "./engine.ts";
import { GuestHost, type Beginning } from "./guest-host.ts";
import { quickJsLimits, type QuickJsLimits } from "./limits.ts";
import type { QuickJsRuntimeOptions } from "./options.ts";
import { Residents, type Resident } from "./residents.ts";
import { SnapshotStore, type StoredCapture } from "./snapshot-store.ts";

/** Starts the runtime; its threads start with their first VM. Throws INVALID_ARGUMENT for a bound that is out of its range. */
export async function createQuickJsRuntime(options: QuickJsRuntimeOptions): Promise<Runtime> {
  const { ports, script, log = SILENT_LOG } = options;
  const limits = quickJsLimits(options.limits);
  const engine = await loadEngine(ports.digest);
  const store = new SnapshotStore(options.blobs, { wasm: engine.sha256, script: ports.digest.sha256Hex(script) });
  const residents = new Residents();
  const host = new GuestHost({
    engine,
    script,
    store,
    limits,
    log,
    clock: ports.clock,
    digest: ports.digest,
    quickWorkers: options.workers ?? 2,
    slowSliceCpuMs: options.slowSliceCpuMs ?? 20,
    hungAfterMs: options.hungAfterMs ?? 10_000,
    onConsole: options.onConsole,
    onFault: (session, inTimer) => residents.struck(session, { inTimer, nowMs: ports.clock.nowMs() }),
  });
  return new QuickJsRuntime(options, { limits, store, host, residents });
}

const CAPABILITIES = create(RuntimeCapabilitiesSchema, { memorySnapshot: true });

/** What the runtime is put together of. */
interface Parts {
  readonly limits: QuickJsLimits;
  readonly store: SnapshotStore;
  readonly host: GuestHost;
  readonly residents: Residents;
}

class QuickJsRuntime implements Runtime {
  readonly name = "quickjs";
  readonly #options: QuickJsRuntimeOptions;
  readonly #limits: QuickJsLimits;
  readonly #store: SnapshotStore;
  readonly #host: GuestHost;
  readonly #residents: Residents;
  readonly #captures: Captures;
  #isClosed = false;

  constructor(options: QuickJsRuntimeOptions, { limits, store, host, residents }: Parts) {
    this.#options = options;
    this.#limits = limits;
    this.#store = store;
    this.#host = host;
    this.#residents = residents;
    this.#captures = new Captures(store, residents, (deltas, memoryBytes) => host.merge(deltas, memoryBytes));
  }

  capabilities(): RuntimeCapabilities {
    return CAPABILITIES;
  }

  async create(spec: SessionSpec, { signal }: CallOptions = {}): Promise<Incarnation> {
    this.#refuseClosed(signal);
    return (await this.#begin(spec.sessionUid, spec.fence, await this.#host.fresh(), signal)).incarnation;
  }

  async attach(incarnation: Incarnation, { signal }: CallOptions = {}): Promise<Harness> {
    this.#refuseClosed(signal);
    const resident = this.#residents.living(incarnation.id);
    resident.isPaused = false;
    return this.#harnessOf(resident);
  }

  async describe({ signal }: CallOptions = {}): Promise<HarnessDescriptor> {
    this.#refuseClosed(signal);
    const session = sessionUidOf(`describe-${newUuid(this.#options.ports)}`);
    const resident = await this.#begin(session, FENCE_NONE, await this.#host.fresh(), signal);
    const { sandbox } = resident;
    try {
      return await sandbox.inTurn(() => {
        sandbox.timers.wake();
        return this.#harnessOf(resident).describe({ signal });
      });
    } finally {
      await this.#end(resident);
    }
  }

  async snapshot(incarnation: Incarnation, kind: SnapshotKind, options: CallOptions = {}): Promise<SnapshotRef> {
    this.#refuseClosed(options.signal);
    const resident = this.#residents.living(incarnation.id);
    if (kind === "external") {
      const snapshot = await this.#captures.take(resident, options);
      await this.#end(resident);
      return snapshot;
    }
    refuseInTurn(resident);
    await resident.sandbox.rest();
    resident.isPaused = true;
    return create(SnapshotRefSchema, { local: localReference(resident), memory: true });
  }

  async checkpoint(incarnation: Incarnation, options: CallOptions = {}): Promise<SnapshotRef> {
    this.#refuseClosed(options.signal);
    return this.#captures.take(this.#residents.living(incarnation.id), options);
  }

  async restore(snapshot: SnapshotRef, options: IncarnationOptions): Promise<Incarnation> {
    this.#refuseClosed(options.signal);
    if (snapshot.externalUri === "") return this.#rebound(snapshot.local, options);
    const capture = await this.#store.get(snapshot.externalUri, options);
    if (capture === undefined) throw new HoldfastError("data_loss", "snapshot: it is not in the blob store");
    if (capture.head.session !== options.sessionUid)
      throw new HoldfastError("failed_precondition", "snapshot: it is another session's memory");
    return this.#resumed(capture, options, true);
  }

  async fork(snapshot: SnapshotRef, options: IncarnationOptions): Promise<Incarnation> {
    this.#refuseClosed(options.signal);
    const capture = await this.#store.get(await this.#stored(snapshot, options), options);
    if (capture === undefined) throw new SnapshotSupersededError();
    return this.#resumed(capture, options, false);
  }

  async stop(incarnation: Incarnation): Promise<void> {
    const resident = this.#residents.find(incarnation.id);
    if (resident !== undefined) await this.#end(resident);
  }

  async status(incarnation: Incarnation): Promise<ComputeState> {
    const resident = this.#residents.find(incarnation.id);
    if (resident === undefined || resident.sandbox.isGone) return ComputeState.COMPUTE_TERMINATED;
    return resident.isPaused ? ComputeState.COMPUTE_WARM : ComputeState.COMPUTE_LIVE;
  }

  async renew(snapshot: SnapshotRef, options: CallOptions = {}): Promise<string | undefined> {
    this.#refuseClosed(options.signal);
    return snapshot.externalUri === "" ? undefined : this.#store.renew(snapshot.externalUri, options);
  }

  async discard(snapshot: SnapshotRef, newer: SnapshotRef, options: CallOptions = {}): Promise<void> {
    this.#refuseClosed(options.signal);
    if (snapshot.externalUri === "" || newer.externalUri === "") return;
    await this.#store.discard(snapshot.externalUri, newer.externalUri, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await Promise.all(this.#residents.all().map((resident) => this.#end(resident)));
    await this.#host.close();
  }

  async #begin(session: SessionUid, fence: Fence, beginning: Beginning, signal: AbortSignal | undefined): Promise<Resident> {
    const sandbox = await this.#host.start(session, beginning);
    const id = newUuid(this.#options.ports);
    const incarnation = { id, runtime: this.name, worker: sandbox.link.name, sessionUid: session, fence };
    const { base } = beginning;
    const resident: Resident = {
      incarnation,
      sandbox,
      base,
      chain: [],
      capturedAt: undefined,
      harness: undefined,
      turns: 0,
      isPaused: false,
    };
    this.#residents.add(resident);
    if (signal?.aborted === true || this.#isClosed) {
      await this.#end(resident);
      this.#refuseClosed(signal);
    }
    return resident;
  }

  async #resumed(capture: StoredCapture, options: IncarnationOptions, isOwn: boolean): Promise<Incarnation> {
    const { head, base, deltas, chain } = capture;
    const { memoryBytes, nowMs } = head;
    const timers = this.#residents.timersLeft([options.sessionUid, sessionUidOf(head.session)], head.timers);
    const forkOf = isOwn ? undefined : sessionUidOf(head.session);
    const beginning = { base, memoryBytes, deltas, isKept: isOwn, forkOf, timers, nowMs };
    const resident = await this.#begin(options.sessionUid, options.fence, beginning, options.signal);
    if (isOwn) resident.chain = chain;
    return resident.incarnation;
  }

  /** The same VM, bound to a new fence. */
  async #rebound(local: string, { sessionUid, fence }: IncarnationOptions): Promise<Incarnation> {
    const resident = this.#local(local);
    if (resident === undefined || resident.incarnation.sessionUid !== sessionUid) {
      throw new HoldfastError(
        "failed_precondition",
        "snapshot: it was kept warm by a sandbox that is gone or went on; use one that is stored",
      );
    }
    this.#residents.remove(resident.incarnation.id);
    resident.incarnation = { ...resident.incarnation, id: newUuid(this.#options.ports), fence };
    resident.isPaused = false;
    this.#residents.add(resident);
    return resident.incarnation;
  }

  /** A stored capture of what a snapshot means. */
  async #stored(snapshot: SnapshotRef, options: CallOptions): Promise<string> {
    if (snapshot.externalUri !== "") return snapshot.externalUri;
    const resident = this.#local(snapshot.local);
    if (resident === undefined) throw new SnapshotSupersededError();
    return (await this.#captures.take(resident, options)).externalUri;
  }

  #local(local: string): Resident | undefined {
    const [id = ""] = local.split("/");
    const resident = this.#residents.find(id);
    return resident !== undefined && !resident.sandbox.isGone && localReference(resident) === local ? resident : undefined;
  }

  /** The VM is gone, and everything that is kept of it here. Doing it again does nothing. */
  async #end(resident: Resident): Promise<void> {
    this.#residents.remove(resident.incarnation.id);
    await resident.sandbox.drop(new HoldfastError("unavailable", "sandbox: it was stopped"));
  }

  /** The line was closed: by whoever ended the sandbox, or since the guest broke a rule of the wire. */
  async #closed(resident: Resident): Promise<void> {
    const { sandbox, incarnation } = resident;
    if (!sandbox.isGone) this.#residents.struck(incarnation.sessionUid, { inTimer: false, nowMs: this.#options.ports.clock.nowMs() });
    await this.#end(resident);
  }

  /** The harness in a VM; one for its lifetime. */
  #harnessOf(resident: Resident): Harness {
    resident.harness ??= this.#harness(resident);
    return resident.harness;
  }

  #harness(resident: Resident): Harness {
    const { frameChars } = this.#limits;
    const { ports, log } = this.#options;
    const { sandbox } = resident;
    const line = createLineHarness({
      line: sandbox.line(() => this.#closed(resident)),
      clock: ports.clock,
      limits: { frameBytesMax: frameChars },
      log,
    });
    return {
      describe: (options) => sandbox.inCall(() => line.describe(options)),
      run: async (start, sink, options) => {
        resident.turns++;
        try {
          await sandbox.inTurn(() => line.run(start, sink, options));
        } finally {
          resident.turns--;
        }
      },
    };
  }

  #refuseClosed(signal: AbortSignal | undefined): void {
    signal?.throwIfAborted();
    if (this.#isClosed) throw new HoldfastError("unavailable", "runtime: it was closed");
  }
}

/** What a `local` snapshot is called: the incarnation, and how much it had been told by then. */
function localReference({ incarnation, sandbox }: Resident): string {
  return `${incarnation.id}/${sandbox.deliveries}`;
}
