/**
 * The process runtime: a child process for every incarnation.
 *
 * Invariants:
 * - An incarnation lives as long as its child. A child that crashed, hung or left is TERMINATED; its session starts another.
 * - Nothing is captured: a snapshot is the session itself, whose journal is all that a new child needs. `local` pauses the child.
 * - No child outlives the runtime, nor the host, however that ends.
 */

import { availableParallelism } from "node:os";
import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "../../base/errors.ts";
import { newUuid } from "../../base/ids.ts";
import { RuntimeCapabilitiesSchema, SnapshotRefSchema } from "../../gen/agentsessions/v1/session_pb.ts";
import { StartGate } from "../../node/index.ts";
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
import { processSettings, type ProcessRuntimeOptions, type ProcessSettings } from "./options.ts";
import { Sandbox } from "./sandbox.ts";
import { Watchdog } from "./watchdog.ts";

/** A runtime that starts `command` for every incarnation. Throws INVALID_ARGUMENT for options that cannot be. */
export function createProcessRuntime(options: ProcessRuntimeOptions): Runtime {
  return new ProcessRuntime(processSettings(options, process.env));
}

class ProcessRuntime implements Runtime {
  readonly name = "process";
  readonly #settings: ProcessSettings;
  readonly #watchdog: Watchdog;
  readonly #gate: StartGate;
  readonly #sandboxes = new Map<string, Sandbox>();
  /** All that live, those too that are not yet, or no longer, an incarnation's. */
  readonly #living = new Set<Promise<Sandbox>>();
  readonly #closing = new AbortController();

  constructor(settings: ProcessSettings) {
    this.#settings = settings;
    this.#watchdog = new Watchdog(settings.log);
    this.#gate = new StartGate(settings.startsAtOnceMax ?? 2 * availableParallelism());
  }

  create({ sessionUid, fence }: SessionSpec, options: CallOptions = {}): Promise<Incarnation> {
    return this.#incarnate({ sessionUid, fence, signal: options.signal });
  }

  async attach(incarnation: Incarnation, options: CallOptions = {}): Promise<Harness> {
    options.signal?.throwIfAborted();
    const sandbox = this.#of(incarnation);
    sandbox.child.resume();
    return sandbox.harness;
  }

  async describe(options: CallOptions = {}): Promise<HarnessDescriptor> {
    const sandbox = await this.#start(newUuid(this.#settings.ports), options.signal);
    try {
      return await sandbox.harness.describe(options);
    } finally {
      await sandbox.stop();
    }
  }

  async snapshot(incarnation: Incarnation, kind: SnapshotKind, options: CallOptions = {}): Promise<SnapshotRef> {
    options.signal?.throwIfAborted();
    const sandbox = this.#of(incarnation);
    if (sandbox.isInTurn) throw new HoldfastError("aborted", "session: a turn of it runs; suspend it when the turn has ended");
    if (kind === "local") sandbox.child.pause();
    else await this.stop(incarnation);
    return create(SnapshotRefSchema, { local: incarnation.sessionUid });
  }

  restore(_snapshot: SnapshotRef, options: IncarnationOptions): Promise<Incarnation> {
    return this.#incarnate(options);
  }

  fork(_snapshot: SnapshotRef, options: IncarnationOptions): Promise<Incarnation> {
    return this.#incarnate(options);
  }

  async stop(incarnation: Incarnation): Promise<void> {
    await this.#sandboxes.get(incarnation.id)?.stop();
  }

  async status(incarnation: Incarnation): Promise<ComputeState> {
    const sandbox = this.#sandboxes.get(incarnation.id);
    if (sandbox?.isAlive !== true) return ComputeState.COMPUTE_TERMINATED;
    return sandbox.child.isPaused ? ComputeState.COMPUTE_WARM : ComputeState.COMPUTE_LIVE;
  }

  capabilities(): RuntimeCapabilities {
    return create(RuntimeCapabilitiesSchema);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new HoldfastError("unavailable", "runtime: it is being closed"));
    const living = await Promise.allSettled(this.#living);
    const sandboxes = living.flatMap((started) => (started.status === "fulfilled" ? [started.value] : []));
    await Promise.all(sandboxes.map((sandbox) => sandbox.stop()));
    this.#watchdog[Symbol.dispose]();
  }

  async #incarnate({ sessionUid, fence, signal }: IncarnationOptions): Promise<Incarnation> {
    const id = newUuid(this.#settings.ports);
    const { child } = await this.#start(id, signal);
    const { line, confinement } = this.#settings;
    const attributes = { line, confined: String(confinement !== undefined) };
    return { id, runtime: this.name, worker: String(child.pid), sessionUid, fence, attributes };
  }

  async #start(id: string, signal: AbortSignal | undefined): Promise<Sandbox> {
    const either = signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal]);
    const { watchdog, settings } = { watchdog: this.#watchdog, settings: this.#settings };
    const forget = (): void => {
      this.#sandboxes.delete(id);
      this.#living.delete(starting);
    };
    const starting = this.#gate.pass(() => Sandbox.start({ settings, watchdog, signal: either, onGone: forget }), either);
    this.#living.add(starting);
    try {
      const sandbox = await starting;
      if (sandbox.isAlive) this.#sandboxes.set(id, sandbox);
      return sandbox;
    } catch (error) {
      forget();
      throw error;
    }
  }

  #of(incarnation: Incarnation): Sandbox {
    const sandbox = this.#sandboxes.get(incarnation.id);
    if (sandbox?.isAlive === true) return sandbox;
    throw new HoldfastError("unavailable", "runtime: the incarnation's process has gone");
  }
}
