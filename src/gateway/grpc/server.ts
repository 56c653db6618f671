/** The gRPC front door: which services it has and how it takes connections. It listens to nothing itself. */

import type { Duplex } from "node:stream";
import { Server, ServerCredentials, type UntypedServiceImplementation } from "@grpc/grpc-js";
import type { DescService } from "@bufbuild/protobuf";
import { Sessions } from "../../gen/agentsessions/v1/session_pb.ts";
import { Journal } from "../../gen/holdfast/v1/journal_pb.ts";
import { Health as HealthProtocol } from "../../gen/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { rawMethod } from "../../grpc/index.ts";
import type { JournalService, SessionsService } from "../../service/contract.ts";
import type { Authenticate } from "../contract.ts";
import { GATEWAY_LIMITS } from "../limits.ts";
import { Admission } from "./admission.ts";
import { OpenCalls, type CallOptions } from "./calls.ts";
import { ServedFiles } from "./files.ts";
import { checkBytes, pieceBytes, recordBytes, updateBytes } from "./frames.ts";
import { createHealthService, healthBytes } from "./health.ts";
import { bytesOf, pipelined } from "./pipelining.ts";
import { receiving } from "./reception.ts";
import { serveReflection } from "./reflection.ts";
import { serveStream } from "./streaming.ts";
import { serveUnary } from "./unary.ts";
import { unimplemented } from "./unimplemented.ts";
import { serveUpload } from "./upload.ts";

export interface GrpcServerOptions extends Omit<CallOptions, "limits" | "admission"> {
  readonly authenticate: Authenticate;
  readonly sessions: SessionsService;
  readonly journal: JournalService;
  readonly limits?: Partial<CallOptions["limits"]> | undefined;
}

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

/** The services that callers see, and that health is kept for. */
export const SERVICES: readonly DescService[] = [Sessions, Journal, HealthProtocol, ServerReflection, ServerReflectionAlpha];

/** Creates the gRPC front door. */
export function createGrpcServer(options: GrpcServerOptions): GrpcServer {
  const limits = { ...GATEWAY_LIMITS, ...options.limits };
  const admission = new Admission(options.authenticate, limits);
  const calls = new OpenCalls({ ...options, admission, limits });
  const server = new Server({
    "grpc.max_receive_message_length": limits.requestBytesMax,
    // What is sent was bounded when it was recorded.
    "grpc.max_send_message_length": -1,
    "grpc.max_concurrent_streams": limits.streamsPerConnectionMax,
    "grpc.keepalive_time_ms": limits.keepaliveIntervalMs,
    "grpc.keepalive_timeout_ms": limits.keepaliveTimeoutMs,
    "grpc.enable_channelz": 0,
    interceptors: [receiving({ admission, limits, log: options.log }), pipelined],
  });
  addService(server, Sessions, sessionsHandlers(calls, options.sessions));
  addService(server, Journal, journalHandlers(calls, options.journal));
  addService(server, HealthProtocol, healthHandlers(calls));
  const reflection = { ServerReflectionInfo: serveReflection(calls, new ServedFiles(SERVICES)) };
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

function sessionsHandlers(calls: OpenCalls, sessions: SessionsService): UntypedServiceImplementation {
  const { method } = Sessions;
  return {
    CreateSession: serveUnary(calls, method.createSession, (request, context) => sessions.createSession(request, context)),
    GetSession: serveUnary(calls, method.getSession, (request, context) => sessions.getSession(request, context)),
    ListSessions: serveUnary(calls, method.listSessions, (request, context) => sessions.listSessions(request, context)),
    DeleteSession: serveUnary(calls, method.deleteSession, (request, context) => sessions.deleteSession(request, context)),
    Cancel: serveUnary(calls, method.cancel, (request, context) => sessions.cancel(request, context)),
    Suspend: serveUnary(calls, method.suspend, (request, context) => sessions.suspend(request, context)),
    Resume: serveUnary(calls, method.resume, (request, context) => sessions.resume(request, context)),
    Fork: serveUnary(calls, method.fork, (request, context) => sessions.fork(request, context)),
    Exec: serveStream(calls, method.exec, {
      open: (request, context) => sessions.exec(request, context),
      encode: updateBytes,
      endsItself: true,
    }),
    Replay: serveStream(calls, method.replay, { open: (request, context) => sessions.replay(request, context), encode: recordBytes }),
  };
}

function journalHandlers(calls: OpenCalls, journal: JournalService): UntypedServiceImplementation {
  const { method } = Journal;
  return {
    Tail: serveStream(calls, method.tail, { open: (request, context) => journal.tail(request, context), encode: updateBytes }),
    Verify: serveUnary(calls, method.verify, (request, context) => journal.verify(request, context)),
    CheckReplay: serveStream(calls, method.checkReplay, {
      open: (request, context) => journal.checkReplay(request, context),
      encode: checkBytes,
    }),
    Lineage: serveUnary(calls, method.lineage, (request, context) => journal.lineage(request, context)),
    Export: serveStream(calls, method.export, { open: (request, context) => journal.export(request, context), encode: pieceBytes }),
    Import: serveUpload(calls, method.import, (requests, context) => journal.import(requests, context)),
    SignHead: serveUnary(calls, method.signHead, (request, context) => journal.signHead(request, context)),
  };
}

function healthHandlers(calls: OpenCalls): UntypedServiceImplementation {
  const { method } = HealthProtocol;
  const health = createHealthService(
    calls.options.health,
    SERVICES.map((service) => service.typeName),
  );
  return {
    Check: serveUnary(calls, method.check, (request) => health.check(request)),
    Watch: serveStream(calls, method.watch, { open: (request, { signal }) => health.watch(request, signal), encode: healthBytes }),
  };
}
