/** A gRPC door for tests: a real server on a port of its own, over handlers that each test gives, and clients of it. */

import { connect as connectHttp2, type ClientHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { create, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { onTestFinished } from "vitest";
import { HoldfastError, SILENT_LOG, type LogFields, type Seq } from "../../src/base/index.ts";
import type { Authenticate, Health, ServingState } from "../../src/gateway/contract.ts";
import { createGrpcServer, type GrpcServer } from "../../src/gateway/grpc/server.ts";
import type { GatewayLimits } from "../../src/gateway/limits.ts";
import { listen } from "../../src/gateway/listener.ts";
import { EventKind } from "../../src/gen/agentsessions/v1/common_pb.ts";
import { SessionSchema } from "../../src/gen/agentsessions/v1/session_pb.ts";
import { clientMethod, errorOfStatus, rawClientMethod, type MethodDesc } from "../../src/grpc/index.ts";
import type { StoredRecord } from "../../src/journal/index.ts";
import { systemClock } from "../../src/node/index.ts";
import type { AgentService, HarnessHostService, JournalService, SessionsService } from "../../src/service/contract.ts";

/** A health that changes when it is told to. */
export class TestHealth implements Health {
  state: ServingState = "serving";
  readonly #closing = new AbortController();
  readonly #listeners = new Set<(state: ServingState) => void>();

  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  watch(listener: (state: ServingState) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  get watchers(): number {
    return this.#listeners.size;
  }

  become(state: ServingState): void {
    this.state = state;
    for (const listener of this.#listeners) listener(state);
  }

  close(): void {
    this.#closing.abort(new HoldfastError("unavailable", "host: it is shutting down"));
  }

  async ready(): Promise<void> {}
}

const refuse = (): never => {
  throw new HoldfastError("unimplemented", "not in this test");
};

const JOURNAL_REFUSED: JournalService = {
  tail: refuse,
  verify: refuse,
  checkReplay: refuse,
  lineage: refuse,
  export: refuse,
  import: refuse,
  signHead: refuse,
};

export interface DoorOptions {
  readonly sessions?: Partial<SessionsService>;
  readonly journal?: Partial<JournalService>;
  readonly limits?: Partial<GatewayLimits>;
  readonly token?: string;
  readonly harnessHost?: HarnessHostService;
  readonly agent?: Partial<AgentService>;
  readonly authenticateHarness?: Authenticate;
  readonly onLog?: (message: string, fields: LogFields | undefined) => void;
}

/** A gRPC server on a port of its own, over handlers that each test gives. */
export async function openDoor(options: DoorOptions = {}) {
  const health = new TestHealth();
  const reading = { getSession: refuse, listSessions: refuse, replay: refuse };
  const changing = {
    createSession: refuse,
    deleteSession: refuse,
    approve: refuse,
    cancel: refuse,
    suspend: refuse,
    resume: refuse,
    fork: refuse,
  };
  const server: GrpcServer = createGrpcServer({
    sessions: { ...reading, ...changing, exec: refuse, ...options.sessions },
    journal: { ...JOURNAL_REFUSED, ...options.journal },
    toolCalls: { listApprovals: refuse, watchApprovals: refuse, listUnsettled: refuse, settleCall: refuse },
    turns: { steer: refuse },
    health,
    authenticate: (authorization) => {
      if (options.token !== undefined && authorization !== `Bearer ${options.token}`) {
        throw new HoldfastError("unauthenticated", "authorization: must be a token");
      }
      return { identity: undefined };
    },
    log: { log: (level, message, fields) => (level === "error" ? options.onLog?.(message, fields) : undefined) },
    limits: options.limits,
    harnessHost: options.harnessHost,
    agent: options.agent && { streamSession: refuse, watchTeam: refuse, ...options.agent },
    authenticateHarness: options.authenticateHarness,
  });
  const listener = await listen({
    host: "127.0.0.1",
    port: 0,
    http1: (socket) => void socket.destroy(),
    http2: (socket) => server.accept(socket),
    clock: systemClock,
    log: SILENT_LOG,
    limits: options.limits,
  });
  const address = `127.0.0.1:${listener.port}`;
  const client = new Client(address, credentials.createInsecure(), { "grpc.max_receive_message_length": -1 });
  onTestFinished(async () => {
    health.close();
    client.close();
    await server.close(200);
    await listener.close();
  });
  return { address, client, health, listener, server };
}

/** A unary call: its answer, or the HoldfastError it was refused with. */
export function ask<Input extends DescMessage, Output extends DescMessage>(
  client: Client,
  method: MethodDesc<Input, Output>,
  request: MessageShape<Input> | Uint8Array,
  { metadata = new Metadata(), deadlineMs }: { metadata?: Metadata; deadlineMs?: number } = {},
): Promise<MessageShape<Output>> {
  const { path, requestSerialize, responseDeserialize } = clientMethod(method);
  const options = deadlineMs === undefined ? {} : { deadline: Date.now() + deadlineMs };
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, metadata, options, (error, response) => {
      if (error !== null) reject(errorOfStatus(error));
      else if (response !== undefined) resolve(response);
    });
  });
}

/** A server-streaming call, its messages as bytes. */
export function stream<Input extends DescMessage>(
  client: Client,
  method: MethodDesc<Input, DescMessage>,
  request: MessageShape<Input> | Uint8Array,
  { metadata = new Metadata(), deadlineMs }: { metadata?: Metadata; deadlineMs?: number } = {},
) {
  const { path, requestSerialize, responseDeserialize } = rawClientMethod(method);
  const options = deadlineMs === undefined ? {} : { deadline: Date.now() + deadlineMs };
  return client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request, metadata, options);
}

export async function collect(messages: AsyncIterable<unknown>): Promise<Uint8Array[]> {
  const collected: Uint8Array[] = [];
  try {
    for await (const message of messages) collected.push(message as Uint8Array);
  } catch (error) {
    throw errorOfStatus(error);
  }
  return collected;
}

/** A session that has nothing but a harness. */
export const session = create(SessionSchema, { harness: "echo" });

/** A promise that the signal rejects, and nothing else settles. */
export const untilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }));

/** A record of `size` bytes, each of them its seq. */
export function record(seq: number, size = 4): StoredRecord {
  return {
    seq: seq as Seq,
    kind: EventKind.EVENT_OUTPUT,
    contentHash: "",
    fence: 1 as StoredRecord["fence"],
    bytes: new Uint8Array(size).fill(seq),
  };
}

/** A call of a client that is no gRPC library, and reads only when it is told to. */
export function rawStream(address: string, path: string, message = new Uint8Array(), socket?: Socket): ClientHttp2Stream {
  const client = connectHttp2(`http://${address}`, socket === undefined ? {} : { createConnection: () => socket });
  client.on("error", () => undefined);
  onTestFinished(() => client.destroy());
  const call = client.request({ ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" });
  call.on("error", () => undefined);
  const frame = Buffer.alloc(5 + message.length);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, 5);
  call.end(frame);
  return call;
}
