/**
 * Serves a harness over gRPC: the contract's own `Harness`, and `HarnessWire` beside it for hosts that speak it.
 *
 * Invariants:
 * - A host learns from Describe what is served. Nothing but the calls of these two services is answered.
 * - When serving ends, what runs is told to stop, and every call ends.
 */

import { existsSync, lstatSync, unlinkSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type Metadata,
  Server,
  ServerCredentials,
  type sendUnaryData,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { HoldfastError, toHoldfastError } from "../../base/errors.ts";
import { Harness as HarnessService, HarnessDescriptorSchema } from "../../gen/agentsessions/v1/harness_pb.ts";
import { HarnessFrameSchema, HarnessWire, HostFrameSchema } from "../../gen/holdfast/v1/harness_wire_pb.ts";
import { rawMethod, statusOf } from "../../grpc/index.ts";
import type { Harness } from "../../spi/harness.ts";
import { HarnessEnd, HOST_FRAME_BYTES_MAX, LINE_PROTOCOL, type HarnessEndOptions } from "../index.ts";
import { harnessAddressOf, textOfAddress } from "./address.ts";
import { serverChannel } from "./channel.ts";
import { ConnectBridge } from "./connect-bridge.ts";
import { HISTORY_KEY, LINE_KEY, metadataOf, WIRE_KEY } from "./metadata.ts";
import { Outlet } from "./outlet.ts";
import { listenShared } from "./shared-listener.ts";
import { serveLineOver } from "./stream-line.ts";

/** How a harness is served. */
export interface GrpcServeOptions extends HarnessEndOptions {
  /** `unix:///path` or `host:port`; port 0 is any free one. */
  readonly address: string;
  /** False serves the contract alone. Default true. */
  readonly wire?: boolean | undefined;
}

/** A harness that is served. */
export interface GrpcServed extends AsyncDisposable {
  /** Where it listens, with the port that it got. */
  readonly address: string;
  /** How many executions are under way. */
  readonly openExchanges: number;
  /** Resolves as soon as none is. */
  idle(): Promise<void>;
}

type Duplex = ServerDuplexStream<Uint8Array, Uint8Array>;

/** Binds, and serves until it is disposed of. Rejects with UNAVAILABLE where the address cannot be bound. */
export async function serveGrpc(harness: Harness, options: GrpcServeOptions): Promise<GrpcServed> {
  const address = harnessAddressOf(options.address, "listen");
  if (address.kind === "unix") await removeStaleSocket(address.path);
  const service = new Served(harness, options);
  const server = new Server(serverChannel(options.frameBytesMax ?? HOST_FRAME_BYTES_MAX));
  server.addService(
    { Describe: rawMethod(HarnessService.method.describe), Connect: rawMethod(HarnessService.method.connect) },
    service.contract,
  );
  if (options.wire !== false) server.addService({ Line: rawMethod(HarnessWire.method.line) }, service.wire);
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const listener = await listenShared(address, {
    grpc: (socket) => injector.injectConnection(socket),
    line: (socket) => service.stream(socket),
  });
  return {
    address: textOfAddress(address.kind === "tcp" ? { ...address, port: listener.port } : address),
    get openExchanges() {
      return service.openExchanges;
    },
    idle: () => service.idle(),
    [Symbol.asyncDispose]: async () => {
      listener.close();
      service.close();
      injector.destroy();
      server.forceShutdown();
      if (address.kind === "unix" && existsSync(address.path)) unlinkSync(address.path);
    },
  };
}

class Served {
  readonly #harness: Harness;
  readonly #options: GrpcServeOptions;
  readonly #ends = new Set<{ readonly end: HarnessEnd; close(): void }>();
  readonly contract: UntypedServiceImplementation;
  readonly wire: UntypedServiceImplementation;

  constructor(harness: Harness, options: GrpcServeOptions) {
    this.#harness = harness;
    this.#options = options;
    this.contract = {
      Describe: (call: ServerUnaryCall<Uint8Array, Uint8Array>, callback: sendUnaryData<Uint8Array>) => void this.#describe(call, callback),
      Connect: (call: Duplex) => this.#connect(call),
    };
    this.wire = { Line: (call: Duplex) => this.#line(call) };
  }

  get openExchanges(): number {
    let open = 0;
    for (const { end } of this.#ends) open += end.openExchanges;
    return open;
  }

  async idle(): Promise<void> {
    while (this.openExchanges > 0) await Promise.all([...this.#ends].map(({ end }) => end.idle()));
  }

  close(): void {
    for (const served of this.#ends) served.close();
    this.#ends.clear();
  }

  /** A line as frames on a connection of its own. */
  stream(socket: Socket): void {
    if (this.#options.wire === false) return void socket.destroy();
    const line = serveLineOver({ readable: socket, writable: socket }, this.#harness, this.#options);
    this.#ends.add(line);
    void line.closed.then(() => {
      this.#ends.delete(line);
      socket.destroySoon();
    });
  }

  async #describe(call: ServerUnaryCall<Uint8Array, Uint8Array>, callback: sendUnaryData<Uint8Array>): Promise<void> {
    try {
      const descriptor = await this.#harness.describe();
      call.sendMetadata(this.#facts());
      callback(null, toBinary(HarnessDescriptorSchema, create(HarnessDescriptorSchema, descriptor)));
    } catch (error) {
      callback(statusOf(toHoldfastError(error)));
    }
  }

  #facts(): Metadata {
    return metadataOf({
      [WIRE_KEY]: this.#options.wire === false ? undefined : String(LINE_PROTOCOL),
      [LINE_KEY]: this.#options.wire === false ? undefined : "stream",
      [HISTORY_KEY]: this.#options.pullsHistory === false ? undefined : "pull",
    });
  }

  #connect(call: Duplex): void {
    const bridge = new ConnectBridge(call, this.#harness, this.#options);
    this.#ends.add(bridge);
    call.on("close", () => this.#ends.delete(bridge));
    call.on("cancelled", () => this.#ends.delete(bridge));
    call.on("finish", () => this.#ends.delete(bridge));
  }

  #line(call: Duplex): void {
    const outlet = new Outlet(call);
    const end = new HarnessEnd(
      this.#harness,
      {
        send: (frame) => {
          const bytes = toBinary(HarnessFrameSchema, create(HarnessFrameSchema, frame));
          outlet.check(bytes);
          return outlet.put(bytes);
        },
        limitFrames: (bytesMax) => outlet.limit(bytesMax),
      },
      this.#options,
    );
    const served = {
      end,
      close: (): void => {
        end.close();
        outlet.end();
        this.#ends.delete(served);
      },
    };
    this.#ends.add(served);
    call.on("data", (bytes: Uint8Array) => {
      try {
        end.receive(fromBinary(HostFrameSchema, bytes));
      } catch {
        // A host that sends what is no frame is no host.
        served.close();
      }
    });
    for (const event of ["end", "cancelled", "error", "close"]) call.on(event, served.close);
  }
}

/** Removes a socket file that a program which is gone left behind. Throws ALREADY_EXISTS where somebody answers there. */
async function removeStaleSocket(path: string): Promise<void> {
  if (!existsSync(path)) return;
  if (!lstatSync(path).isSocket()) throw new HoldfastError("already_exists", "listen: a file that is no socket is at this path");
  const isAnswered = await new Promise<boolean>((resolve) => {
    const socket = connect(path, () => (socket.destroy(), resolve(true)));
    socket.on("error", () => resolve(false));
  });
  if (isAnswered) throw new HoldfastError("already_exists", "listen: a program listens at this path already");
  unlinkSync(path);
}
