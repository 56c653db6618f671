/** A call in both directions over grpc-js. */

import type { ClientDuplexStream, Metadata } from "@grpc/grpc-js";
import { errorOfStatus } from "../../grpc/index.ts";
import type { Duplex } from "../transport.ts";

/**
 * Invariants:
 * - What `responses` and `headers` reject with is a HoldfastError, or the reason of the caller's signal.
 * - Nothing is sent after the call is over, and nobody waits for it to take more then.
 */
export class DuplexCall<Request, Response> implements Duplex<Request, Response> {
  readonly headers: Promise<ReadonlyMap<string, string>>;
  readonly responses: AsyncIterable<Response>;
  readonly #call: ClientDuplexStream<Request, Response>;
  readonly #signal: AbortSignal | undefined;
  readonly #over = Promise.withResolvers<void>();
  #isOver = false;
  #sent: Promise<void> = Promise.resolve();

  constructor(call: ClientDuplexStream<Request, Response>, signal: AbortSignal | undefined) {
    this.#call = call;
    this.#signal = signal;
    const headers = Promise.withResolvers<ReadonlyMap<string, string>>();
    // A caller who does not ask for the headers is told of the failure by the responses.
    headers.promise.catch(() => undefined);
    call.on("metadata", (metadata) => headers.resolve(textsOf(metadata)));
    call.on("error", (error) => {
      headers.reject(this.#reasonOf(error));
      this.#end();
    });
    call.on("status", () => {
      headers.resolve(new Map());
      this.#end();
    });
    this.headers = headers.promise;
    this.responses = this.#read();
    signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  send(request: Request): Promise<void> {
    this.#sent = this.#sent.then(() => this.#write(request));
    return this.#sent;
  }

  end(): void {
    void this.#sent.then(() => this.#call.end());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#call.cancel();
    this.#end();
  }

  async *#read(): AsyncGenerator<Response, void, undefined> {
    try {
      for await (const response of this.#call as AsyncIterable<Response>) {
        this.#signal?.throwIfAborted();
        yield response;
      }
      this.#signal?.throwIfAborted();
    } catch (error) {
      throw this.#reasonOf(error);
    } finally {
      this.#call.cancel();
      this.#end();
    }
  }

  async #write(request: Request): Promise<void> {
    if (this.#isOver || this.#call.write(request)) return;
    const drained = Promise.withResolvers<void>();
    this.#call.once("drain", drained.resolve);
    await Promise.race([drained.promise, this.#over.promise]);
  }

  readonly #onAbort = (): void => this.#call.cancel();

  #end(): void {
    this.#isOver = true;
    this.#over.resolve();
    this.#signal?.removeEventListener("abort", this.#onAbort);
  }

  #reasonOf(error: unknown): unknown {
    return this.#signal?.aborted === true ? this.#signal.reason : errorOfStatus(error);
  }
}

function textsOf(metadata: Metadata): ReadonlyMap<string, string> {
  return new Map(Object.entries(metadata.getMap()).flatMap(([key, value]) => (typeof value === "string" ? [[key, value] as const] : [])));
}
