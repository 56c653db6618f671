/**
 * A harness at the other end of a line, as the host drives it: any number of executions at once, each an exchange of its own.
 *
 * Invariants:
 * - The host says hello, and nothing else is sent before the harness has answered it.
 * - A frame reaches the exchange that it names, or none: exchanges that are over hear nothing more, and a frame for one that was never
 *   opened breaks the line.
 * - When the line closes or breaks, every exchange on it fails at once: with UNAVAILABLE where the peer is gone, with the broken rule
 *   where it sent what it may not.
 */

import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "../base/errors.ts";
import { SILENT_LOG, type Clock, type Log } from "../base/ports.ts";
import { untilAborted } from "../base/until-aborted.ts";
import { HarnessHelloSchema, type HarnessFrame, type HarnessHello } from "../gen/holdfast/v1/harness_wire_pb.ts";
import type { CallOptions, EventSink, Harness, HarnessDescriptor, Start } from "../spi/index.ts";
import { DescribeExchange } from "./describing.ts";
import type { ExchangeContext, HostExchange } from "./host-exchange.ts";
import { HostExecution } from "./host-execution.ts";
import { WIRE_LIMITS, type WireLimits } from "./limits.ts";
import { LINE_PROTOCOL, type HostGrant, type HostLine } from "./line.ts";
import { Deferred } from "./promise.ts";
import { brokenProtocol, lineClosed, lineFault, noAnswer, outsideTurn } from "./protocol.ts";
import { readWhole } from "./pushed-history.ts";
import type { LineResumption } from "./resumption.ts";

/** What the host's end is made of. */
export interface LineHarnessOptions {
  readonly line: HostLine;
  readonly clock: Clock;
  readonly limits?: Partial<WireLimits> | undefined;
  readonly log?: Log | undefined;
  /** True where executions on this line are checks of recorded ones. */
  readonly replayed?: boolean | undefined;
  /** Opens the host's services to a harness that speaks nothing but the contract, for one execution. */
  readonly grant?: ((start: Start) => HostGrant & Disposable) | undefined;
  /** Set for a line that the harness is on already: no hello is said, and exchanges are numbered on. */
  readonly resumed?: LineResumption | undefined;
}

/** A harness over a line; disposing of it closes the line and interrupts what runs on it. */
export interface LineHarness extends Harness, AsyncDisposable {
  /** Resolves once the line is closed, with why. Never rejects. */
  readonly closed: Promise<Error>;
  /** How many exchanges are open. */
  readonly openExchanges: number;
  /** What a host must know to go on with this line. Undefined before the hello, and while an exchange is open. */
  readonly resumption: LineResumption | undefined;
  /**
   * Resolves when the harness has answered the host's hello. Rejects with UNAVAILABLE where no answer comes, with FAILED_PRECONDITION that
   * names the rule where the answer is not as it must be: the peer speaks something else, and would again.
   */
  ready(): Promise<void>;
}

/** Takes the host's end of a line: says hello, unless it goes on with a line, and reads it from now on. */
export function createLineHarness(options: LineHarnessOptions): LineHarness {
  return new WireHarness(options);
}

class WireHarness implements LineHarness {
  readonly #line: HostLine;
  readonly #clock: Clock;
  readonly #limits: WireLimits;
  readonly #log: Log;
  readonly #options: LineHarnessOptions;
  readonly #exchanges = new Map<number, HostExchange>();
  readonly #hello = new Deferred<HarnessHello>();
  readonly #closed = new Deferred<Error>();
  #greeted = false;
  #agreed: Omit<LineResumption, "lastExchange"> | undefined;
  #lastExchange = 0;
  #fault: Error | undefined;

  constructor(options: LineHarnessOptions) {
    this.#options = options;
    this.#line = options.line;
    this.#clock = options.clock;
    this.#limits = { ...WIRE_LIMITS, ...options.limits };
    this.#log = options.log ?? SILENT_LOG;
    if (options.resumed === undefined) void this.#greet();
    else this.#resume(options.resumed);
    void this.#read();
  }

  get closed(): Promise<Error> {
    return this.#closed.promise;
  }

  get openExchanges(): number {
    return this.#exchanges.size;
  }

  get resumption(): LineResumption | undefined {
    if (this.#agreed === undefined || this.openExchanges > 0) return undefined;
    return { ...this.#agreed, lastExchange: this.#lastExchange };
  }

  async ready(): Promise<void> {
    try {
      await this.#hello.promise;
    } catch (error) {
      throw error instanceof Error ? outsideTurn(error) : error;
    }
  }

  async describe({ signal }: CallOptions = {}): Promise<HarnessDescriptor> {
    signal?.throwIfAborted();
    try {
      await untilAborted(this.#hello.promise, signal);
      return await this.#open((context) => new DescribeExchange(context)).ask(signal);
    } catch (error) {
      throw error instanceof Error ? outsideTurn(error) : error;
    }
  }

  async run(start: Start, sink: EventSink, { signal }: { readonly signal: AbortSignal }): Promise<void> {
    signal.throwIfAborted();
    const hello = await untilAborted(this.#hello.promise, signal);
    const pulled = hello.pullsHistory;
    const encoded = this.#line.takesEncodedEvents === true;
    const bytesMax = Math.min(this.#limits.pushedHistoryBytesMax, hello.frameBytesMax);
    const history = pulled
      ? undefined
      : await readWhole(start.history, { encoded, bytesMax, limits: this.#limits, clock: this.#clock, signal });
    signal.throwIfAborted();
    using grant = this.#options.grant?.(start);
    const execution = this.#open((context) => new HostExecution(context, start, sink, { pulled }));
    const onAbort = (): void => execution.cancel(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      execution.begin({ replayed: this.#options.replayed ?? false, history, grant });
      await execution.outcome;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#close(lineClosed());
    await this.#line[Symbol.asyncDispose]();
  }

  async #greet(): Promise<void> {
    const { helloTimeoutMs, frameBytesMax } = this.#limits;
    const timer = this.#clock.after(helloTimeoutMs, () => this.#close(noAnswer("the host's hello", helloTimeoutMs)));
    try {
      await this.#line.send({ exchange: 0, frame: { case: "hello", value: { protocol: LINE_PROTOCOL, frameBytesMax } } });
      await this.#hello.promise;
    } catch (error) {
      this.#close(lineFault(error));
    } finally {
      timer.cancel();
    }
  }

  async #read(): Promise<void> {
    try {
      for await (const frame of this.#line.frames) {
        const room = this.#receive(frame);
        if (room !== undefined) await room;
        if (this.#fault !== undefined) break;
      }
      this.#close(lineClosed());
    } catch (error) {
      this.#close(lineFault(error));
    }
  }

  #receive({ exchange, frame }: HarnessFrame): Promise<void> | undefined {
    if (!this.#greeted) return this.#greetedBy(exchange, frame);
    if (exchange === 0 || exchange > this.#lastExchange) throw brokenProtocol("a frame must belong to an exchange that the host opened");
    return this.#exchanges.get(exchange)?.receive(frame);
  }

  #greetedBy(exchange: number, frame: HarnessFrame["frame"]): undefined {
    if (exchange !== 0 || frame.case !== "hello") throw brokenProtocol("the first frame must be the hello of exchange 0");
    if (frame.value.protocol !== LINE_PROTOCOL) {
      throw new HoldfastError("failed_precondition", `harness: it must speak protocol ${LINE_PROTOCOL} of the harness wire`);
    }
    this.#agree(frame.value, this.#limits.frameBytesMax);
  }

  #resume({ lastExchange, pullsHistory, harnessTakesBytesMax, hostTakesBytesMax }: LineResumption): void {
    this.#lastExchange = lastExchange;
    this.#agree(
      create(HarnessHelloSchema, { protocol: LINE_PROTOCOL, pullsHistory, frameBytesMax: harnessTakesBytesMax }),
      hostTakesBytesMax,
    );
  }

  #agree(hello: HarnessHello, hostTakesBytesMax: number): void {
    this.#greeted = true;
    this.#agreed = { pullsHistory: hello.pullsHistory, harnessTakesBytesMax: hello.frameBytesMax, hostTakesBytesMax };
    if (hello.frameBytesMax > 0) this.#line.limitFrames?.(hello.frameBytesMax);
    this.#hello.resolve(hello);
  }

  #open<Exchange extends HostExchange>(make: (context: ExchangeContext) => Exchange): Exchange {
    if (this.#fault !== undefined) throw this.#fault;
    const id = ++this.#lastExchange;
    const exchange = make({
      clock: this.#clock,
      limits: this.#limits,
      encodesEvents: this.#line.takesEncodedEvents === true,
      send: (body, extras) => this.#line.send({ exchange: id, frame: body }, extras),
      release: () => void this.#exchanges.delete(id),
    });
    this.#exchanges.set(id, exchange);
    return exchange;
  }

  #close(fault: Error): void {
    if (this.#fault !== undefined) return;
    this.#fault = fault;
    // A line that nothing was under way on has mostly been closed on purpose.
    const level = this.#exchanges.size === 0 ? "debug" : "info";
    this.#log.log(level, "a line to a harness is closed", { reason: fault.message, exchanges: this.#exchanges.size });
    this.#hello.reject(fault);
    for (const exchange of this.#exchanges.values()) exchange.fail(fault);
    this.#closed.resolve(fault);
    Promise.resolve(this.#line[Symbol.asyncDispose]()).catch(() => undefined);
  }
}
