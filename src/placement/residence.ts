/**
 * A harness on a runtime: the incarnations of its sessions that live on this host.
 *
 * Invariants:
 * - At most one incarnation of a session lives here. What is done to one session is done one after the other.
 * - An incarnation is bound to the fence that it was started, restored or forked under. Whoever was superseded starts another.
 * - Memory is what the last settled turn left. An incarnation whose turn was not settled is destroyed before the next one, which is
 *   restored from the capture that the row tells of (I4: nothing is ever rebuilt by driving turns again).
 * - A harness that changed what it says of itself runs no turn that was planned with the old.
 */

import { create, equals } from "@bufbuild/protobuf";
import { HoldfastError } from "../base/errors.ts";
import { FENCE_NONE, sessionUidOf, type Fence, type SessionUid } from "../base/ids.ts";
import { CapabilitiesSchema, HarnessDescriptorSchema } from "../gen/agentsessions/v1/harness_pb.ts";
import { ComputeRefSchema, SnapshotRefSchema } from "../gen/agentsessions/v1/session_pb.ts";
import {
  ComputeState,
  type AttachedHarness,
  type AttachOptions,
  type CallOptions,
  type ComputeRef,
  type HarnessDescriptor,
  type HarnessEntry,
  type Incarnation,
  type RehearsedHarness,
  type ResidenceOptions,
  type SettleOptions,
  type SharedMemory,
  type Runtime,
  type SnapshotRef,
  type SuspendedSession,
  type SuspendOptions,
  type WakeOptions,
} from "../spi/index.ts";
import { keepsMemory, placedDescriptor } from "./can-place.ts";
import { Described } from "./described.ts";
import { Turnstile } from "./turnstile.ts";

/** A harness to be placed. */
export interface PlacedHarnessOptions {
  readonly name: string;
  readonly source: HarnessEntry["source"];
  /** Whether new sessions may use it; a registration may be retired at any time. Default: they may. */
  readonly isOpen?: (() => boolean) | undefined;
  readonly runtime: Runtime;
  /** True where the runtime gives every session a sandbox of its own. */
  readonly sandboxed: boolean;
  /** The id that the harness must say it has; undefined or empty for any. */
  readonly descriptorId?: string | undefined;
  /** Sandboxes at once; one more is RESOURCE_EXHAUSTED. Default 10,000. */
  readonly residentsMax?: number | undefined;
}

const RESIDENTS_MAX = 10_000;

/** `Session.compute.attributes` names. */
const HARNESS_ATTRIBUTE = "harness";
const INCARNATION_ATTRIBUTE = "incarnation";
/** Set on a child of a fork until its first turn is settled: the snapshot is its parent's. */
const FORKED_ATTRIBUTE = "forked";

interface Resident {
  readonly incarnation: Incarnation;
  /** A turn was attached and neither settled nor given up. */
  inTurn: boolean;
  /** What its harness said of itself as it was made ready for the turn that is attached next. */
  readied: HarnessDescriptor | undefined;
}

/** Places a harness on a runtime. Disposing it disposes of the runtime. */
export function createPlacedHarness(options: PlacedHarnessOptions): HarnessEntry & AsyncDisposable {
  return new Residence(options);
}

class Residence implements HarnessEntry, AsyncDisposable {
  readonly name: string;
  readonly source: HarnessEntry["source"];
  readonly runtime: HarnessEntry["runtime"];
  readonly sandboxed: boolean;
  readonly #options: PlacedHarnessOptions;
  readonly #runtime: Runtime;
  readonly #described: Described;
  readonly #residents = new Map<SessionUid, Resident>();
  readonly #turnstile = new Turnstile<SessionUid>();
  #rehearsals = 0;

  constructor(options: PlacedHarnessOptions) {
    this.#options = options;
    this.#runtime = options.runtime;
    this.name = options.name;
    this.source = options.source;
    this.sandboxed = options.sandboxed;
    this.runtime = { name: options.runtime.name, capabilities: options.runtime.capabilities() };
    this.#described = new Described(async () => this.#placed(await this.#runtime.describe()));
  }

  get open(): boolean {
    return this.#options.isOpen?.() ?? true;
  }

  describe(options?: CallOptions): Promise<HarnessDescriptor> {
    return this.#described.get(options);
  }

  fenceOf(session: SessionUid): Fence | undefined {
    return this.#residents.get(session)?.incarnation.fence;
  }

  wake(options: WakeOptions): Promise<ComputeRef | undefined> {
    return this.#turnstile.pass(options.sessionUid, async () => {
      const { incarnation } = await this.#resident(options);
      await this.#runtime.attach(incarnation, { signal: options.signal });
      return this.#toldUnsettled(incarnation, options.compute);
    });
  }

  ready(options: WakeOptions): Promise<HarnessDescriptor> {
    const { sessionUid, signal } = options;
    return this.#turnstile.pass(sessionUid, async () => {
      const before = this.#residents.get(sessionUid);
      const resident = await this.#resident(options);
      try {
        const harness = await this.#runtime.attach(resident.incarnation, { signal });
        const descriptor = this.#placed(await harness.describe({ signal }));
        // An older one goes on as what it is; a new one is what those after it will be.
        if (resident !== before) this.#described.keep(descriptor);
        resident.readied = descriptor;
        return descriptor;
      } catch (error) {
        await this.#destroy(sessionUid);
        throw error;
      }
    });
  }

  attach(options: AttachOptions): Promise<AttachedHarness> {
    return this.#turnstile.pass(options.sessionUid, async () => {
      const { signal, descriptor, compute } = options;
      signal.throwIfAborted();
      const resident = await this.#resident(options);
      const { incarnation } = resident;
      try {
        const harness = await this.#runtime.attach(incarnation, { signal });
        this.#refuseChanged(descriptor, resident.readied ?? (await harness.describe({ signal })));
        resident.readied = undefined;
        resident.inTurn = this.sandboxed;
        return { harness, compute: this.#toldUnsettled(incarnation, compute) };
      } catch (error) {
        await this.#destroy(options.sessionUid);
        throw error;
      }
    });
  }

  async rehearse(options: CallOptions): Promise<RehearsedHarness> {
    this.#rehearsals++;
    const spec = { sessionUid: sessionUidOf(`rehearsal-${this.#rehearsals}`), harness: this.name, fence: FENCE_NONE };
    const incarnation = await this.#runtime.create(spec, options);
    try {
      const harness = await this.#runtime.attach(incarnation, options);
      return { harness, [Symbol.asyncDispose]: () => this.#runtime.stop(incarnation) };
    } catch (error) {
      await this.#runtime.stop(incarnation);
      throw error;
    }
  }

  settle(options: SettleOptions): Promise<ComputeRef | undefined> {
    return this.#turnstile.pass(options.sessionUid, async () => {
      const isCaptured = await this.#keepsMemory();
      const resident = this.#residents.get(options.sessionUid);
      if (resident?.incarnation.fence !== options.fence) {
        if (isCaptured) throw new HoldfastError("unavailable", "sandbox: it was destroyed while its turn ran; resume the turn");
        return undefined;
      }
      const checkpoint = isCaptured ? await this.#checkpoint(resident.incarnation, options) : undefined;
      resident.inTurn = false;
      return checkpoint === undefined ? undefined : this.#told(resident.incarnation, checkpoint);
    });
  }

  suspend(options: SuspendOptions): Promise<SuspendedSession> {
    return this.#turnstile.pass(options.sessionUid, async () => {
      const { sessionUid, kind, fence, compute, signal } = options;
      await this.#dropSuperseded(sessionUid, fence);
      await this.#dropUnsettled(sessionUid);
      const resident = await this.#living(sessionUid);
      if (resident === undefined) return this.#absent(sessionUid, compute);
      const { incarnation } = resident;
      const snapshot = await this.#runtime.snapshot(incarnation, kind, { signal });
      // What is kept warm ends with its sandbox. The row goes on telling of what is stored, which outlives it.
      if (kind === "local" && snapshot.memory) return { snapshot, compute: this.#toldUnsettled(incarnation, compute) };
      if (kind === "external") this.#residents.delete(sessionUid);
      return { snapshot, compute: this.#told(incarnation, snapshot) };
    });
  }

  async shared(compute: ComputeRef | undefined): Promise<SharedMemory> {
    const snapshot = isOwn(compute, this.name) ? compute?.snapshot : undefined;
    if (snapshot?.memory !== true) return { kind: "none" };
    const part = await this.#runtime.renew?.(snapshot);
    if (part !== undefined) return { kind: "missing", part };
    const child = create(ComputeRefSchema, {
      runtime: this.#runtime.name,
      snapshot,
      capabilities: this.runtime.capabilities,
      attributes: { [HARNESS_ATTRIBUTE]: this.name, [FORKED_ATTRIBUTE]: "true" },
    });
    return { kind: "whole", child };
  }

  /** What was captured before is in nobody's way: turns of the session need not wait for it. */
  async discard(before: ComputeRef, now: ComputeRef): Promise<void> {
    const isParents = before.attributes[FORKED_ATTRIBUTE] !== undefined;
    if (isParents || !isOwn(before, this.name) || !isOwn(now, this.name)) return;
    if (before.snapshot?.memory === true && now.snapshot?.memory === true) await this.#runtime.discard?.(before.snapshot, now.snapshot);
  }

  release(session: SessionUid): Promise<void> {
    return this.#turnstile.pass(session, () => this.#destroy(session));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#residents.clear();
    await this.#runtime[Symbol.asyncDispose]();
  }

  /** Whatever the session's sandbox is: the one that lives here, or one that is brought back, or a new one. */
  async #resident(options: WakeOptions): Promise<Resident> {
    const { sessionUid, fence } = options;
    await this.#dropUnsettled(sessionUid);
    const living = this.#residents.get(sessionUid);
    if (living !== undefined) {
      const isBound = living.incarnation.fence === fence;
      if (isBound && (await this.#runtime.status(living.incarnation)) !== ComputeState.COMPUTE_TERMINATED) return living;
      await this.#destroy(sessionUid);
    }
    const { residentsMax = RESIDENTS_MAX } = this.#options;
    if (this.#residents.size >= residentsMax) {
      throw new HoldfastError("resource_exhausted", `host: it holds ${residentsMax} sandboxes already; suspend sessions, or retry later`);
    }
    const resident: Resident = { incarnation: await this.#start(options), inTurn: false, readied: undefined };
    if (this.sandboxed) this.#residents.set(sessionUid, resident);
    return resident;
  }

  async #start({ sessionUid, fence, identity, compute, signal }: WakeOptions): Promise<Incarnation> {
    const snapshot = isOwn(compute, this.name) ? compute?.snapshot : undefined;
    if (snapshot?.memory === true) {
      const bound = { sessionUid, fence, signal };
      const isForked = compute?.attributes[FORKED_ATTRIBUTE] !== undefined;
      return isForked ? this.#runtime.fork(snapshot, bound) : this.#runtime.restore(snapshot, bound);
    }
    return this.#runtime.create({ sessionUid, harness: this.name, identity, fence }, { signal });
  }

  /** Nothing lives here: what was captured before is what there is; a session without memory is its journal. */
  #absent(sessionUid: SessionUid, compute: ComputeRef | undefined): SuspendedSession {
    const captured = isOwn(compute, this.name) ? compute?.snapshot : undefined;
    if (captured?.memory === true) return { snapshot: captured, compute };
    return { snapshot: create(SnapshotRefSchema, { local: sessionUid }) };
  }

  async #checkpoint(incarnation: Incarnation, { signal }: ResidenceOptions): Promise<SnapshotRef> {
    const checkpoint = await this.#runtime.checkpoint?.(incarnation, { signal });
    if (checkpoint !== undefined) return checkpoint;
    throw new HoldfastError("internal", "runtime: it says that it captures memory, and cannot while the sandbox goes on");
  }

  /** What lives here under an older fence is not the session's state any more. Under a newer one it is, and whoever asks is late. */
  async #dropSuperseded(session: SessionUid, fence: Fence): Promise<void> {
    const living = this.fenceOf(session) ?? fence;
    if (living > fence) throw new HoldfastError("aborted", "session: it went on meanwhile; read it, then retry");
    if (living < fence) await this.#destroy(session);
  }

  /** An incarnation whose turn was cut off holds memory that no record speaks of. Without memory it goes on. */
  async #dropUnsettled(session: SessionUid): Promise<void> {
    const resident = this.#residents.get(session);
    if (resident?.inTurn !== true) return;
    if (await this.#keepsMemory()) await this.#destroy(session);
    else resident.inTurn = false;
  }

  /** The session's sandbox, unless it has died: then nothing is held here, and what was captured before is what there is. */
  async #living(session: SessionUid): Promise<Resident | undefined> {
    const resident = this.#residents.get(session);
    if (resident === undefined) return undefined;
    if ((await this.#runtime.status(resident.incarnation)) !== ComputeState.COMPUTE_TERMINATED) return resident;
    await this.#destroy(session);
    return undefined;
  }

  async #destroy(session: SessionUid): Promise<void> {
    const resident = this.#residents.get(session);
    if (resident === undefined) return;
    this.#residents.delete(session);
    await this.#runtime.stop(resident.incarnation);
  }

  async #keepsMemory(): Promise<boolean> {
    return keepsMemory(await this.#described.get());
  }

  #placed(descriptor: HarnessDescriptor): HarnessDescriptor {
    const { descriptorId = "" } = this.#options;
    if (descriptorId !== "" && descriptor.id !== descriptorId) {
      throw new HoldfastError("failed_precondition", "harness: its descriptor has another id than the one that it was registered with", {
        field: "harness",
      });
    }
    return placedDescriptor(create(HarnessDescriptorSchema, descriptor), this.runtime);
  }

  /** The harness may have been replaced between the question what it is and the turn. */
  #refuseChanged(planned: HarnessDescriptor, now: HarnessDescriptor): void {
    const { id, version, capabilities } = planned;
    const none = create(CapabilitiesSchema);
    const same = equals(CapabilitiesSchema, capabilities ?? none, now.capabilities ?? none);
    if (id === now.id && version === now.version && same) return;
    this.#described.forget();
    throw new HoldfastError(
      "failed_precondition",
      "harness: its id, version or capabilities changed after the turn was planned; retry, and resume an interrupted turn with the version it was recorded with",
      { field: "harness" },
    );
  }

  /** A live incarnation, and what its session is restored from until its turn is settled. */
  #toldUnsettled(incarnation: Incarnation, before: ComputeRef | undefined): ComputeRef | undefined {
    const own = isOwn(before, this.name) ? before : undefined;
    const told = this.#told(incarnation, own?.snapshot);
    const forked = own?.attributes[FORKED_ATTRIBUTE];
    if (told !== undefined && forked !== undefined) told.attributes[FORKED_ATTRIBUTE] = forked;
    return told;
  }

  #told(incarnation: Incarnation, snapshot: SnapshotRef | undefined): ComputeRef | undefined {
    if (!this.sandboxed) return undefined;
    const { worker, fence, id, attributes } = incarnation;
    return create(ComputeRefSchema, {
      runtime: this.#runtime.name,
      worker,
      snapshot,
      capabilities: this.runtime.capabilities,
      attributes: { ...attributes, [HARNESS_ATTRIBUTE]: this.name, [INCARNATION_ATTRIBUTE]: id },
      fenceToken: BigInt(fence),
    });
  }
}

/** Whether a row's compute is this harness's: a turn may have been run by another. One without a name came with a SUSPEND. */
function isOwn(compute: ComputeRef | undefined, name: string): boolean {
  const harness = compute?.attributes[HARNESS_ATTRIBUTE];
  return harness === undefined || harness === name;
}
