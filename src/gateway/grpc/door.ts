/**
 * A gRPC door: a set of services with health and reflection, one keeper, one way to take connections and to end. It listens to nothing
 * itself.
 */

import type { Duplex } from "node:stream";
import { Server, ServerCredentials, type UntypedServiceImplementation } from "@grpc/grpc-js";
import type { DescService } from "@bufbuild/protobuf";
import { Health as HealthProtocol } from "../../gen/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { rawMethod } from "../../grpc/index.ts";
import type { HoldfastError } from "../../base/errors.ts";
import type { Authenticate } from "../contract.ts";
import { GATEWAY_LIMITS } from "../limits.ts";
import { Admission } from "./admission.ts";
import { OpenCalls, type CallOptions } from "./calls.ts";
import { ServedFiles } from "./files.ts";
import { createHealthService, healthBytes } from "./health.ts";
import { bytesOf, pipelined } from "./pipelining.ts";
import { receiving } from "./reception.ts";
import { serveReflection } from "./reflection.ts";
import { serveStream } from "./streaming.ts";
import { serveUnary } from "./unary.ts";
import { unimplemented } from "./unimplemented.ts";

/** What every door is made of. */
export interface GrpcDoorOptions extends Omit<CallOptions, "limits" | "admission"> {
  readonly authenticate: Authenticate;
  /** Who a harness is that calls its host; without it, none is let in. */
  readonly authenticateHarness?: Authenticate | undefined;
  readonly limits?: Partial<CallOptions["limits"]> | undefined;
  /** What a call that is not let in is told before its status. Default: nothing. */
  readonly lastWord?: ((path: string, error: HoldfastError) => Uint8Array | undefined) | undefined;
}

/** A service and its handlers by the names of their methods; a method without one is UNIMPLEMENTED. */
export type ServedService = readonly [service: DescService, handlers: UntypedServiceImplementation];

/** A gRPC server over sockets that somebody else accepted. */
export interface GrpcServer {
  /** Serves a connection whose first bytes are HTTP/2's preface, unread. */
  accept(connection: Duplex): void;
  /** Calls that have not been answered. */
  readonly openCalls: number;
  /**
   * Ends the server. `Health.closing` must have fired, so that open streams end with its reason; what is still open after
   * `graceMs` is cut off.
   */
  close(graceMs: number): Promise<void>;
}

/** What every door serves beside its own services. */
export const DOOR_SERVICES: readonly DescService[] = [HealthProtocol, ServerReflection, ServerReflectionAlpha];

/** Creates a door that serves what `services` makes of the calls of this door, and nothing else but health and reflection. */
export function createGrpcDoor(options: GrpcDoorOptions, services: (calls: OpenCalls) => readonly ServedService[]): GrpcServer {
  const limits = { ...GATEWAY_LIMITS, ...options.limits };
  const admission = new Admission(options.authenticate, limits, options.authenticateHarness);
  const calls = new OpenCalls({ ...options, admission, limits });
  const server = new Server({
    "grpc.max_receive_message_length": limits.requestBytesMax,
    // What is sent was bounded when it was recorded.
    "grpc.max_send_message_length": -1,
    "grpc.max_concurrent_streams": limits.streamsPerConnectionMax,
    "grpc.keepalive_time_ms": limits.keepaliveIntervalMs,
    "grpc.keepalive_timeout_ms": limits.keepaliveTimeoutMs,
    "grpc.enable_channelz": 0,
    interceptors: [receiving({ admission, limits, log: options.log, lastWord: options.lastWord }), pipelined],
  });
  const own = services(calls);
  const served = [...own.map(([service]) => service), ...DOOR_SERVICES];
  const reflection = { ServerReflectionInfo: serveReflection(calls, new ServedFiles(served)) };
  for (const [service, handlers] of own) addService(server, service, handlers);
  addService(server, HealthProtocol, healthHandlers(calls, served));
  addService(server, ServerReflection, reflection);
  addService(server, ServerReflectionAlpha, reflection);
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const connections = new Connections();
  return {
    accept(connection) {
      connections.add(connection);
      injector.injectConnection(connection);
    },
    get openCalls() {
      return calls.count;
    },
    async close(graceMs) {
      const grace = new Promise<void>((resolve) => setTimeout(resolve, graceMs).unref());
      // grpc-js answers CANCELLED for what is open when it drains; so open calls get to end by themselves first.
      await Promise.race([calls.idle(), grace]);
      // Its callback comes before the last frames have left; only a connection's own end says that they have.
      server.tryShutdown(() => undefined);
      await Promise.race([connections.gone(), grace]);
      // grpc-js's forced shutdown overlooks connections that were injected; the injector's own drain does not.
      injector.drain(0);
    },
  };
}

/** The connections that were handed over. */
class Connections {
  readonly #open = new Set<Duplex>();
  #onGone: () => void = () => undefined;

  add(connection: Duplex): void {
    this.#open.add(connection);
    connection.once("close", () => {
      this.#open.delete(connection);
      if (this.#open.size === 0) this.#onGone();
    });
  }

  /** Resolves when none is left. */
  async gone(): Promise<void> {
    if (this.#open.size > 0) await new Promise<void>((resolve) => (this.#onGone = resolve));
  }
}

/** Binds every method of a service; the handlers take and answer bytes. */
function addService(server: Server, service: DescService, handlers: UntypedServiceImplementation): void {
  const { methods } = service;
  server.addService(
    Object.fromEntries(methods.map((method) => [method.name, { ...rawMethod(method), responseSerialize: bytesOf }])),
    Object.fromEntries(methods.map((method) => [method.name, handlers[method.name] ?? unimplemented(method)])),
  );
}

function healthHandlers(calls: OpenCalls, served: readonly DescService[]): UntypedServiceImplementation {
  const { method } = HealthProtocol;
  const health = createHealthService(
    calls.options.health,
    served.map((service) => service.typeName),
  );
  return {
    Check: serveUnary(calls, method.check, (request) => health.check(request)),
    Watch: serveStream(calls, method.watch, { open: (request, { signal }) => health.watch(request, signal), encode: healthBytes }),
  };
}
