/**
 * The remote runtime: a harness that is served at an address. One connection carries all sessions.
 *
 * Invariants:
 * - An incarnation is a name: the harness elsewhere holds nothing of a session between its turns that its journal does not.
 * - A turn runs over the connection whose harness was asked what it is. One that is lost interrupts the turns on it, and the next call
 *   dials again.
 */

import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "../../base/errors.ts";
import { newUuid } from "../../base/ids.ts";
import { RuntimeCapabilitiesSchema, SnapshotRefSchema } from "../../gen/agentsessions/v1/session_pb.ts";
import { harnessAddressOf } from "../../harness-wire/node/index.ts";
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
import { Connection } from "./connection.ts";
import { Dialler } from "./dialler.ts";
import { credentialsOf, type RemoteRuntimeOptions } from "./options.ts";

/**
 * A runtime over the harness at `address`, which is dialled when it is first needed. Throws INVALID_ARGUMENT for what is no address and for
 * what is no PEM. Place it with `sandboxed: false`.
 */
export function createRemoteRuntime(options: RemoteRuntimeOptions): Runtime {
  return new RemoteRuntime(options);
}

/** What is known of an incarnation while somebody holds it. */
interface Residence {
  turns: number;
  isStopped: boolean;
  attached?: { readonly connection: Connection; readonly harness: Harness };
}

class RemoteRuntime implements Runtime {
  readonly name = "remote";
  readonly #options: RemoteRuntimeOptions;
  readonly #dialler: Dialler;
  /** By the incarnation itself: a shared harness has as many as there were turns, and nobody stops them. */
  readonly #residences = new WeakMap<Incarnation, Residence>();

  constructor(options: RemoteRuntimeOptions) {
    harnessAddressOf(options.address);
    this.#options = options;
    const { ports, log, callMetadata, connectTimeoutMs, limits, tls, grant } = options;
    const credentials = credentialsOf(tls);
    this.#dialler = new Dialler({
      clock: ports.clock,
      log,
      dial: (signal) =>
        Connection.dial(options, {
          credentials,
          serverName: tls?.serverName,
          callMetadata,
          frameBytesMax: limits?.frameBytesMax,
          offersHost: grant !== undefined,
          timeoutMs: connectTimeoutMs,
          signal,
        }),
    });
  }

  async create({ sessionUid, fence }: SessionSpec, options: CallOptions = {}): Promise<Incarnation> {
    options.signal?.throwIfAborted();
    return this.#incarnate({ sessionUid, fence });
  }

  async attach(incarnation: Incarnation, options: CallOptions = {}): Promise<Harness> {
    const residence = this.#of(incarnation);
    const connection = await this.#dialler.connection(options);
    if (residence.attached?.connection === connection) return residence.attached.harness;
    const harness: Harness = {
      describe: (call) => connection.describe(call),
      run: async (start, sink, call) => {
        residence.turns += 1;
        try {
          await connection.harness.run(start, sink, call);
        } finally {
          residence.turns -= 1;
        }
      },
    };
    residence.attached = { connection, harness };
    return harness;
  }

  async describe(options?: CallOptions): Promise<HarnessDescriptor> {
    const connection = await this.#dialler.connection(options);
    return connection.describe(options);
  }

  async snapshot(incarnation: Incarnation, kind: SnapshotKind, options: CallOptions = {}): Promise<SnapshotRef> {
    options.signal?.throwIfAborted();
    const residence = this.#of(incarnation);
    if (residence.turns > 0) throw new HoldfastError("aborted", "session: a turn of it runs; suspend it when the turn has ended");
    if (kind === "external") residence.isStopped = true;
    return create(SnapshotRefSchema, { local: incarnation.sessionUid });
  }

  async restore(_snapshot: SnapshotRef, options: IncarnationOptions): Promise<Incarnation> {
    options.signal?.throwIfAborted();
    return this.#incarnate(options);
  }

  async fork(_snapshot: SnapshotRef, options: IncarnationOptions): Promise<Incarnation> {
    options.signal?.throwIfAborted();
    return this.#incarnate(options);
  }

  async stop(incarnation: Incarnation): Promise<void> {
    const residence = this.#residences.get(incarnation);
    if (residence !== undefined) residence.isStopped = true;
  }

  /** LIVE until it is stopped: whether the harness answers is known when it is called. */
  async status(incarnation: Incarnation): Promise<ComputeState> {
    const isLive = this.#residences.get(incarnation)?.isStopped === false;
    return isLive ? ComputeState.COMPUTE_LIVE : ComputeState.COMPUTE_TERMINATED;
  }

  capabilities(): RuntimeCapabilities {
    return create(RuntimeCapabilitiesSchema);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#dialler[Symbol.asyncDispose]();
  }

  #incarnate({ sessionUid, fence }: Pick<Incarnation, "sessionUid" | "fence">): Incarnation {
    this.#dialler.throwIfClosed();
    const { address, callMetadata, ports } = this.#options;
    const incarnation: Incarnation = {
      id: newUuid(ports),
      runtime: this.name,
      worker: "elsewhere",
      sessionUid,
      fence,
      address,
      callMetadata,
    };
    this.#residences.set(incarnation, { turns: 0, isStopped: false });
    return incarnation;
  }

  #of(incarnation: Incarnation): Residence {
    const residence = this.#residences.get(incarnation);
    if (residence?.isStopped === false) return residence;
    throw new HoldfastError("unavailable", "runtime: the incarnation was stopped");
  }
}
