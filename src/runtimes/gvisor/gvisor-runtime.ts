/**
 * The `gvisor` runtime: an unmodified program in a runsc sandbox of its own for each session, whose memory is captured and brought back.
 *
 * Invariants:
 * - A capture is stored before its reference is returned; an `external` snapshot and a checkpoint outlive this process.
 * - A `local` snapshot is the paused sandbox itself. It is good until the sandbox goes on, then it is superseded.
 * - A restore, or a fork, that fails leaves no container, no folder and no process behind. None of them outlives the host.
 */

import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "../../base/errors.ts";
import { newUuid, type Fence, type SessionUid } from "../../base/ids.ts";
import { RuntimeCapabilitiesSchema, SnapshotRefSchema } from "../../gen/agentsessions/v1/session_pb.ts";
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
import type { ContainerHost } from "./container.ts";
import { goneError } from "./ended.ts";
import { gvisorSettings, type GvisorRuntimeOptions } from "./options.ts";
import { findPrograms } from "./programs.ts";
import { Resident } from "./resident.ts";
import { SandboxHost, type StoredImage } from "./sandbox-host.ts";
import { Workspace } from "./workspace.ts";

/**
 * A runtime that starts `command` in a sandbox for every incarnation. Rejects with INVALID_ARGUMENT for options that cannot be, with
 * FAILED_PRECONDITION where this host has no runsc, is not run as root, or lacks a program.
 */
export async function createGvisorRuntime(options: GvisorRuntimeOptions): Promise<Runtime> {
  const settings = gvisorSettings(options, process.env["PATH"]);
  const programs = await findPrograms(settings);
  return new GvisorRuntime({ settings, programs, workspace: new Workspace(settings.folder) });
}

const CAPABILITIES = create(RuntimeCapabilitiesSchema, { memorySnapshot: true });

class GvisorRuntime implements Runtime {
  readonly name = "gvisor";
  readonly #containers: ContainerHost;
  readonly #host: SandboxHost;
  readonly #residents = new Map<string, Resident>();
  #isClosed = false;

  constructor(containers: ContainerHost) {
    this.#containers = containers;
    this.#host = new SandboxHost(containers);
  }

  capabilities(): RuntimeCapabilities {
    return CAPABILITIES;
  }

  async create({ sessionUid, fence }: SessionSpec, { signal }: CallOptions = {}): Promise<Incarnation> {
    this.#refuseClosed(signal);
    return this.#incarnate(sessionUid, fence, undefined, signal);
  }

  async attach(incarnation: Incarnation, { signal }: CallOptions = {}): Promise<Harness> {
    this.#refuseClosed(signal);
    const resident = this.#living(incarnation);
    await resident.present(signal);
    return resident.harness;
  }

  async describe({ signal }: CallOptions = {}): Promise<HarnessDescriptor> {
    this.#refuseClosed(signal);
    const sandbox = await this.#host.begin({ image: undefined, signal, onGone: () => undefined });
    try {
      return await sandbox.harness.describe({ signal });
    } finally {
      await sandbox.stop();
    }
  }

  async snapshot(incarnation: Incarnation, kind: SnapshotKind, { signal }: CallOptions = {}): Promise<SnapshotRef> {
    this.#refuseClosed(signal);
    const resident = this.#living(incarnation);
    if (kind === "external") return stored(await resident.capture("gone"));
    await resident.pause();
    return create(SnapshotRefSchema, { local: resident.localReference, memory: true });
  }

  async checkpoint(incarnation: Incarnation, { signal }: CallOptions = {}): Promise<SnapshotRef> {
    this.#refuseClosed(signal);
    return stored(await this.#living(incarnation).capture("on"));
  }

  async restore(snapshot: SnapshotRef, options: IncarnationOptions): Promise<Incarnation> {
    this.#refuseClosed(options.signal);
    if (snapshot.externalUri === "") return this.#rebound(snapshot.local, options);
    const image = await this.#host.imageOf(snapshot.externalUri, options);
    if (image === undefined) throw new HoldfastError("data_loss", "snapshot: it is not in the blob store");
    const { session = options.sessionUid } = image.head;
    if (session !== options.sessionUid) throw new HoldfastError("failed_precondition", "snapshot: it is another session's memory");
    return this.#incarnate(options.sessionUid, options.fence, image, options.signal);
  }

  async fork(snapshot: SnapshotRef, options: IncarnationOptions): Promise<Incarnation> {
    this.#refuseClosed(options.signal);
    const image = await this.#imageFor(snapshot, options);
    return this.#incarnate(options.sessionUid, options.fence, image, options.signal);
  }

  async stop(incarnation: Incarnation): Promise<void> {
    await this.#residents.get(incarnation.id)?.stop();
  }

  async status(incarnation: Incarnation): Promise<ComputeState> {
    return this.#residents.get(incarnation.id)?.state ?? ComputeState.COMPUTE_TERMINATED;
  }

  async renew(snapshot: SnapshotRef, options: CallOptions = {}): Promise<string | undefined> {
    this.#refuseClosed(options.signal);
    return snapshot.externalUri === "" ? undefined : this.#host.renew(snapshot.externalUri, options);
  }

  /** A sandbox that was started from the image has all of it. */
  async discard(snapshot: SnapshotRef, newer: SnapshotRef, options: CallOptions = {}): Promise<void> {
    this.#refuseClosed(options.signal);
    if (snapshot.externalUri === "" || newer.externalUri === "") return;
    await this.#host.discard(snapshot.externalUri, newer.externalUri, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await Promise.all([...this.#residents.values()].map((resident) => resident.stop()));
    await this.#host[Symbol.asyncDispose]();
  }

  async #incarnate(
    sessionUid: SessionUid,
    fence: Fence,
    image: StoredImage | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Incarnation> {
    const { settings, programs } = this.#containers;
    const id = newUuid(settings.ports);
    const attributes = { runsc: programs.runscVersion, platform: settings.platform ?? "default" };
    const incarnation = { id, runtime: this.name, worker: String(process.pid), sessionUid, fence, attributes };
    const onEnded = (ended: Resident): void => void this.#residents.delete(ended.incarnation.id);
    const resident = new Resident({ incarnation, image, host: this.#host, log: settings.log, onEnded });
    this.#residents.set(id, resident);
    try {
      await resident.present(signal);
      this.#refuseClosed(signal);
      return incarnation;
    } catch (error) {
      await resident.stop();
      throw error;
    }
  }

  /** The same sandbox, bound to a new fence. */
  async #rebound(local: string, { sessionUid, fence, signal }: IncarnationOptions): Promise<Incarnation> {
    const resident = this.#local(local);
    if (resident === undefined || resident.incarnation.sessionUid !== sessionUid) {
      throw new HoldfastError(
        "failed_precondition",
        "snapshot: it was kept warm by a sandbox that is gone or went on; use one that is stored",
      );
    }
    this.#residents.delete(resident.incarnation.id);
    resident.incarnation = { ...resident.incarnation, id: newUuid(this.#containers.settings.ports), fence };
    this.#residents.set(resident.incarnation.id, resident);
    await resident.present(signal);
    return resident.incarnation;
  }

  /** A stored image of what a snapshot means. */
  async #imageFor(snapshot: SnapshotRef, options: CallOptions): Promise<StoredImage> {
    if (snapshot.externalUri !== "") {
      const image = await this.#host.imageOf(snapshot.externalUri, options);
      if (image !== undefined) return image;
      throw new SnapshotSupersededError();
    }
    const resident = this.#local(snapshot.local);
    if (resident === undefined) throw new SnapshotSupersededError();
    return resident.capture(resident.state === ComputeState.COMPUTE_WARM ? "paused" : "on");
  }

  #local(local: string): Resident | undefined {
    const [id = ""] = local.split("/");
    const resident = this.#residents.get(id);
    return resident?.localReference === local ? resident : undefined;
  }

  #living(incarnation: Incarnation): Resident {
    const resident = this.#residents.get(incarnation.id);
    if (resident === undefined || resident.isGone) throw goneError();
    return resident;
  }

  #refuseClosed(signal: AbortSignal | undefined): void {
    signal?.throwIfAborted();
    if (this.#isClosed) throw new HoldfastError("unavailable", "runtime: it was closed");
  }
}

function stored({ uri }: StoredImage): SnapshotRef {
  return create(SnapshotRefSchema, { externalUri: uri, memory: true });
}
