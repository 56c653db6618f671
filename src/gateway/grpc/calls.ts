/**
 * What every gRPC call begins and ends with: its caller, its signal, its place among the open calls.
 *
 * Invariants:
 * - A call is answered exactly once, whatever its handler throws. grpc-js hangs a call whose handler threw, and announces a cancel
 *   after a normal end too; so each call has a finished flag of its own.
 * - The signal of a call fires when its client went away, its deadline passed, or the server closes. It does not fire after
 *   the call was answered.
 */

import type { Metadata } from "@grpc/grpc-js";
import { HoldfastError, type Log } from "../../base/index.ts";
import type { CallContext } from "../../service/contract.ts";
import type { Health } from "../contract.ts";
import type { GatewayLimits } from "../limits.ts";
import type { Admission } from "./admission.ts";

/** The part of grpc-js's call objects that all kinds of calls share. */
export interface AnyCall {
  readonly metadata: Metadata;
  readonly cancelled: boolean;
  getPath(): string;
  once(event: "cancelled", listener: () => void): unknown;
}

/** What the calls of one server share. */
export interface CallOptions {
  readonly admission: Admission;
  readonly health: Health;
  readonly log: Log;
  readonly limits: GatewayLimits;
}

/** One call that has not been answered. */
export interface OpenCall {
  /** The method, for logs. */
  readonly path: string;
  readonly signal: AbortSignal;
  /** Who calls. Throws the signal's reason when it has fired. */
  admit(): CallContext;
  /** True once, for whoever answers the call. */
  finish(): boolean;
}

/** The open calls of a server. */
export class OpenCalls {
  readonly options: CallOptions;
  readonly #open = new Set<AbortController>();
  /** Those that the server's closing ends. */
  readonly #endless = new Set<AbortController>();
  #onIdle: () => void = () => undefined;

  constructor(options: CallOptions) {
    this.options = options;
    options.health.closing.addEventListener("abort", () => {
      for (const call of this.#endless) call.abort(options.health.closing.reason);
    });
  }

  get count(): number {
    return this.#open.size;
  }

  /** Resolves when no call is open. */
  async idle(): Promise<void> {
    if (this.#open.size > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve));
  }

  /**
   * Takes a call in; it must be finished. A call that ends by itself when the server closes (a turn's stream does, with its turn) is
   * left to do so, or a reader that is a little behind would lose its last records.
   */
  open(call: AnyCall, { endsItself = false }: { readonly endsItself?: boolean | undefined } = {}): OpenCall {
    const controller = new AbortController();
    const { closing } = this.options.health;
    this.#open.add(controller);
    if (!endsItself) this.#endless.add(controller);
    if (closing.aborted) controller.abort(closing.reason);
    call.once("cancelled", () => {
      if (this.#open.has(controller)) controller.abort(clientGone());
    });
    if (call.cancelled) controller.abort(clientGone());
    return {
      path: call.getPath(),
      signal: controller.signal,
      admit: () => this.#admit(call, controller.signal),
      finish: () => this.#finish(controller),
    };
  }

  #finish(controller: AbortController): boolean {
    const wasOpen = this.#open.delete(controller);
    this.#endless.delete(controller);
    if (this.#open.size === 0) this.#onIdle();
    return wasOpen;
  }

  #admit(call: AnyCall, signal: AbortSignal): CallContext {
    signal.throwIfAborted();
    return { caller: this.options.admission.caller(call.metadata), signal };
  }
}

function clientGone(): HoldfastError {
  return new HoldfastError("cancelled", "the client cancelled the call, went away, or its deadline passed");
}
