/**
 * A transport to the interactive door's handler in this process: every message goes over it as bytes, and the line is cut at the n-th message of
 * a direction. For tests of what a client and the door make of that together.
 */

import { fromBinary, toBinary, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { HoldfastError } from "../../src/base/index.ts";
import type { Duplex, DuplexOptions, Method, Transport } from "../../src/client/index.ts";
import { SessionRequestSchema, type SessionRequest } from "../../src/gen/roz/v1/agent_pb.ts";
import { responseBytes } from "../../src/gateway/grpc/frames.ts";
import type { AgentResponse, AgentService, Incoming, StreamContext } from "../../src/service/index.ts";
import type { seededPorts } from "../../src/testing/ports.ts";

/** When the line is cut: at the n-th message of that direction, before it has any effect or right after. */
export interface Cut {
  readonly at: "sent" | "received";
  readonly message: number;
  readonly effect: "lost" | "had";
}

export interface DoorTransportOptions {
  /** The service that is there now. */
  readonly service: () => Pick<AgentService, "streamSession">;
  readonly ports: ReturnType<typeof seededPorts>;
  readonly cut?: Cut | undefined;
  /** Called when the line is cut, before a client can come back. */
  readonly onCut?: (() => Promise<void>) | undefined;
}

export class DoorTransport implements Transport {
  readonly ports: Transport["ports"];
  /** Messages that went each way. */
  readonly count = { sent: 0, received: 0 };
  readonly #options: DoorTransportOptions;
  #line: Line | undefined;
  /** Settles when there is a service to come back to. */
  #back: Promise<void> = Promise.resolve();

  constructor(options: DoorTransportOptions) {
    this.#options = options;
    const { clock, random } = options.ports;
    // Nobody waits before coming back.
    this.ports = {
      random,
      clock: {
        nowMs: () => clock.nowMs(),
        monotonicMs: () => clock.monotonicMs(),
        after: () => ({ cancel: () => undefined }),
        sleep: () => this.#back,
      },
    };
  }

  unary(): never {
    throw new Error("only streams in both directions are served");
  }

  stream(): never {
    return this.unary();
  }

  upload(): never {
    return this.unary();
  }

  streamBytes(): never {
    return this.unary();
  }

  duplex<Input extends DescMessage, Output extends DescMessage>(
    method: Method<Input, Output>,
    { metadata = {}, signal }: DuplexOptions = {},
  ): Duplex<MessageShape<Input>, MessageShape<Output>> {
    const line = new Line();
    this.#line = line;
    signal?.addEventListener("abort", () => line.break(signal.reason), { once: true });
    const headers = Promise.withResolvers<ReadonlyMap<string, string>>();
    headers.promise.catch(() => undefined);
    const context: StreamContext = {
      caller: { identity: undefined },
      signal: line.signal,
      metadata: (key) => metadata[key],
      announce: (announced) => headers.resolve(new Map(Object.entries(announced))),
    };
    return {
      headers: headers.promise,
      responses: this.#responses(method.output, begun(this.#options.service().streamSession(line, context)), line, headers.reject),
      send: async (request) => this.#send(line, toBinary(method.input, request)),
      end: () => line.end(),
      [Symbol.asyncDispose]: async () => line.break(new HoldfastError("cancelled", "the client left")),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  /** Cuts the line that there is now. */
  drop(): void {
    if (this.#line !== undefined && !this.#line.signal.aborted) this.#drop(this.#line);
  }

  #send(line: Line, bytes: Uint8Array): void {
    if (line.signal.aborted) return;
    this.count.received++;
    const cut = this.#cutAt("received", this.count.received);
    if (cut?.effect !== "lost") line.push({ kind: "message", message: fromBinary(SessionRequestSchema, bytes) });
    if (cut !== undefined) this.#drop(line);
  }

  async *#responses<Output extends DescMessage>(
    output: Output,
    responses: ReturnType<typeof begun<AgentResponse>>,
    line: Line,
    noHeaders: (error: unknown) => void,
  ): AsyncGenerator<MessageShape<Output>, void, undefined> {
    try {
      for (;;) {
        const next = await Promise.race([responses.next(), line.broken]);
        if (next.done === true) return;
        this.count.sent++;
        const cut = this.#cutAt("sent", this.count.sent);
        const [bytes] = responseBytes(next.value);
        if (cut?.effect !== "lost") yield fromBinary(output, bytes!);
        if (cut !== undefined) this.#drop(line);
        line.signal.throwIfAborted();
      }
    } catch (error) {
      noHeaders(error);
      throw error;
    } finally {
      line.break(new HoldfastError("cancelled", "the client left"));
      void responses.return().catch(() => undefined);
    }
  }

  #cutAt(at: Cut["at"], message: number): Cut | undefined {
    const { cut } = this.#options;
    return cut?.at === at && cut.message === message ? cut : undefined;
  }

  #drop(line: Line): void {
    // What was handed over is handled first: a message that was had has its effect.
    this.#back = new Promise<void>((resolve) => setImmediate(resolve)).then(() => this.#options.onCut?.());
    line.break(new HoldfastError("unavailable", "the line was cut", { details: { grpcStatus: 14 } }));
  }
}

/** The responses of a stream that is served from now on, whether anybody reads them yet or not. */
function begun<Item>(responses: AsyncGenerator<Item, void, undefined>): Pick<AsyncGenerator<Item, void, undefined>, "next" | "return"> {
  let first: Promise<IteratorResult<Item, void>> | undefined = responses.next();
  first.catch(() => undefined);
  return {
    next: () => {
      const next = first ?? responses.next();
      first = undefined;
      return next;
    },
    return: (value) => responses.return(value),
  };
}

/** One line: requests on their way, until it breaks. */
class Line implements AsyncIterable<Incoming<SessionRequest>> {
  readonly broken: Promise<never>;
  readonly #gone = new AbortController();
  readonly #waiting: Incoming<SessionRequest>[] = [];
  readonly #reject: (reason: unknown) => void;
  #isEnded = false;
  #wake: () => void = () => undefined;

  constructor() {
    const { promise, reject } = Promise.withResolvers<never>();
    promise.catch(() => undefined);
    this.broken = promise;
    this.#reject = reject;
  }

  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  push(request: Incoming<SessionRequest>): void {
    this.#waiting.push(request);
    this.#wake();
  }

  end(): void {
    this.#isEnded = true;
    this.#wake();
  }

  break(reason: unknown): void {
    this.#reject(reason);
    this.#gone.abort(reason);
    this.end();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Incoming<SessionRequest>, void, undefined> {
    for (;;) {
      const next = this.#waiting.shift();
      if (next !== undefined) yield next;
      else if (this.#isEnded) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
