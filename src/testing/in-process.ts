/**
 * A host in this process behind the client's transport: no socket, and otherwise what a server is. With it the conformance suite runs over
 * any store, any harnesses and any ports.
 *
 * Requests and answers pass through their encoding, and of an error only code, message and field go on, as over a wire.
 */

import { create, fromBinary, toBinary, type DescMessage, type DescMethod, type Message, type MessageShape } from "@bufbuild/protobuf";
import { HoldfastError, hostIdOf, SILENT_LOG, toHoldfastError, type Ports } from "../base/index.ts";
import type { CallOptions, Method, Transport } from "../client/index.ts";
import { createController, type ControllerLimits } from "../controller/index.ts";
import { ExecUpdateSchema, Sessions } from "../gen/agentsessions/v1/session_pb.ts";
import { ExportChunkSchema } from "../gen/holdfast/v1/export_pb.ts";
import { ToolCalls } from "../gen/holdfast/v1/calls_pb.ts";
import { Journal } from "../gen/holdfast/v1/journal_pb.ts";
import { Turns } from "../gen/holdfast/v1/turns_pb.ts";
import { wrapRecord } from "../grpc/update.ts";
import type { JournalStore, StoredRecord } from "../journal/index.ts";
import {
  ALLOW_ALL,
  createJournalService,
  createSessionsService,
  createToolCallsService,
  createTurnsService,
  type CallContext,
  type JournalService,
  type SessionsService,
  type StreamItem,
  type ToolCallsService,
  type TurnsService,
} from "../service/index.ts";
import type { Harness, ModelCatalog, ToolExecutor } from "../spi/index.ts";
import { harnessCatalog, TestModel } from "./host.ts";

/** What the host is made of. */
export interface InProcessOptions {
  readonly journal: JournalStore;
  readonly ports: Ports;
  /** By name; the first one is the default. */
  readonly harnesses: Readonly<Record<string, Harness>>;
  /** Default: a model that says hello. */
  readonly models?: ModelCatalog | undefined;
  /** Default: no tools. */
  readonly tools?: ToolExecutor | undefined;
  readonly limits?: Partial<ControllerLimits> | undefined;
}

/** A transport to a host in this process, which ends with the transport. The journal is its owner's. */
export function inProcessTransport({ journal, ports, harnesses, models, tools, limits }: InProcessOptions): Transport {
  const catalog = harnessCatalog(harnesses);
  const controller = createController({
    journal,
    harnesses: catalog,
    models: models ?? new TestModel(),
    tools,
    ports,
    log: SILENT_LOG,
    hostId: hostIdOf("in-process"),
    limits,
  });
  const shared = { journal, controller, harnesses: catalog, authorizer: ALLOW_ALL, ports };
  const [harness = ""] = Object.keys(harnesses);
  return new InProcessTransport(ports, {
    sessions: createSessionsService({ ...shared, defaults: { harness, model: "" } }),
    journal: createJournalService({ ...shared, tools }),
    toolCalls: createToolCallsService(shared),
    turns: createTurnsService(shared),
    close: () => controller.shutdown({ graceMs: 0 }),
  });
}

interface Services {
  readonly sessions: SessionsService;
  readonly journal: JournalService;
  readonly toolCalls: ToolCallsService;
  readonly turns: TurnsService;
  readonly close: () => Promise<void>;
}

class InProcessTransport implements Transport {
  readonly ports: Ports;
  readonly #services: Services;

  constructor(ports: Ports, services: Services) {
    this.ports = ports;
    this.#services = services;
  }

  async unary<Input extends DescMessage, Output extends DescMessage>(
    method: Method<Input, Output>,
    request: MessageShape<Input>,
    options: CallOptions = {},
  ): Promise<MessageShape<Output>> {
    const call = new Call(this.ports, options);
    try {
      const answer: unknown = await Promise.race([this.#handle(method, request, call), call.over]);
      return copyOf(method.output, answer as MessageShape<Output>);
    } catch (error) {
      throw call.reasonOf(error);
    } finally {
      call.end();
    }
  }

  async *stream<Input extends DescMessage, Output extends DescMessage>(
    method: Method<Input, Output>,
    request: MessageShape<Input>,
    options?: CallOptions,
  ): AsyncGenerator<MessageShape<Output>, void, undefined> {
    for await (const bytes of this.streamBytes(method, request, options)) yield fromBinary(method.output, bytes);
  }

  async *streamBytes<Input extends DescMessage>(
    method: Method<Input, DescMessage>,
    request: MessageShape<Input>,
    options: CallOptions = {},
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const call = new Call(this.ports, options);
    try {
      const items = this.#handle(method, request, call) as AsyncIterable<unknown>;
      for await (const item of items) {
        for (const bytes of bytesOf(method.output, item)) yield bytes;
      }
      call.signal.throwIfAborted();
    } catch (error) {
      throw call.reasonOf(error);
    } finally {
      call.end();
    }
  }

  async upload<Input extends DescMessage, Output extends DescMessage>(
    method: Method<Input, Output>,
    requests: AsyncIterable<MessageShape<Input>>,
    options: CallOptions = {},
  ): Promise<MessageShape<Output>> {
    const call = new Call(this.ports, options);
    try {
      const answer: unknown = await Promise.race([this.#handleRequests(method, requests, call), call.over]);
      return copyOf(method.output, answer as MessageShape<Output>);
    } catch (error) {
      throw call.reasonOf(error);
    } finally {
      call.end();
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#services.close();
  }

  #handle<Input extends DescMessage>(method: Method<Input, DescMessage>, request: MessageShape<Input>, call: Call): unknown {
    return this.#apply(method, copyOf(method.input, request), call);
  }

  #handleRequests<Input extends DescMessage>(
    method: Method<Input, DescMessage>,
    requests: AsyncIterable<MessageShape<Input>>,
    call: Call,
  ): unknown {
    async function* copies(): AsyncGenerator<MessageShape<Input>, void, undefined> {
      for await (const request of requests) yield copyOf(method.input, request);
    }
    return this.#apply(method, copies(), call);
  }

  #apply(method: DescMethod, input: unknown, call: Call): unknown {
    call.signal.throwIfAborted();
    const service = servicesOf(this.#services).get(method.parent.typeName);
    const handler: unknown = service === undefined ? undefined : Reflect.get(service, method.localName);
    if (typeof handler !== "function") throw new HoldfastError("unimplemented", `${method.name}: is not served by this host`);
    const context: CallContext = { caller: { identity: undefined }, signal: call.signal };
    return Reflect.apply(handler, service, [input, context]);
  }
}

function servicesOf({ sessions, journal, toolCalls, turns }: Services): ReadonlyMap<string, object> {
  return new Map<string, object>([
    [Sessions.typeName, sessions],
    [Journal.typeName, journal],
    [ToolCalls.typeName, toolCalls],
    [Turns.typeName, turns],
  ]);
}

function copyOf<Desc extends DescMessage>(desc: Desc, message: MessageShape<Desc>): MessageShape<Desc> {
  return fromBinary(desc, toBinary(desc, message));
}

/** The messages of an item of a handler's stream: a page of records, a live item, or a message. */
function* bytesOf(output: DescMessage, item: unknown): Generator<Uint8Array> {
  if (item instanceof Uint8Array) yield toBinary(ExportChunkSchema, create(ExportChunkSchema, { data: item }));
  else if (Array.isArray(item)) {
    for (const record of item as readonly StoredRecord[]) yield record.bytes;
  } else if (isMessage(item)) yield toBinary(output, item);
  else yield updateBytes(item as StreamItem);
}

function isMessage(item: unknown): item is Message {
  return typeof item === "object" && item !== null && "$typeName" in item;
}

/** ExecUpdate and TailUpdate have the same fields, so this is both. */
function updateBytes(item: StreamItem): Uint8Array {
  switch (item.kind) {
    case "record":
      return wrapRecord(item.record.bytes);
    case "delta":
      return toBinary(ExecUpdateSchema, create(ExecUpdateSchema, { update: { case: "delta", value: item.delta } }));
    case "session":
      return toBinary(ExecUpdateSchema, create(ExecUpdateSchema, { update: { case: "session", value: item.session } }));
  }
}

/** One call: its signal, which the caller and the call's time fire, and what it rejects with. */
class Call {
  readonly #caller: AbortSignal | undefined;
  readonly #own = new AbortController();
  readonly #timer: { cancel(): void } | undefined;
  readonly #onCallerAbort = (): void => this.#own.abort(new HoldfastError("cancelled", "the client cancelled the call"));

  constructor({ clock }: Ports, { signal, timeoutMs }: CallOptions) {
    this.#caller = signal;
    if (signal?.aborted === true) this.#onCallerAbort();
    signal?.addEventListener("abort", this.#onCallerAbort, { once: true });
    if (timeoutMs !== undefined) {
      const late = new HoldfastError("deadline_exceeded", "the call's deadline passed before the server answered");
      this.#timer = clock.after(timeoutMs, () => this.#own.abort(late));
    }
  }

  get signal(): AbortSignal {
    return this.#own.signal;
  }

  /** Rejects when the call is over before its answer. */
  get over(): Promise<never> {
    return new Promise((_, reject) => {
      this.signal.addEventListener("abort", () => reject(this.signal.reason as Error), { once: true });
    });
  }

  reasonOf(error: unknown): unknown {
    if (this.#caller?.aborted === true) return this.#caller.reason;
    const { code, message, field } = toHoldfastError(this.signal.aborted ? this.signal.reason : error);
    return new HoldfastError(code, message, { field });
  }

  /** Ends what the call still holds: a handler that goes on is told that nobody listens. */
  end(): void {
    this.#timer?.cancel();
    this.#caller?.removeEventListener("abort", this.#onCallerAbort);
    this.#own.abort(new HoldfastError("cancelled", "the call is over"));
  }
}
