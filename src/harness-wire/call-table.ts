/**
 * The calls of one execution that wait for the host, at the harness's end.
 *
 * Invariants:
 * - A call settles once: with its result, with its refusal, with its park, or with the reason why nothing comes any more.
 * - A refusal of something that nobody waits for is fatal: the host does nothing after it, so every later call is refused with it here.
 */

import { HoldfastError } from "../base/errors.ts";
import type { MintTokenResponse } from "../gen/holdfast/v1/harness_wire_pb.ts";
import type { ModelResult } from "../gen/agentsessions/v1/harness_pb.ts";
import { ApprovalParkedError } from "../spi/faults.ts";
import type { CallOptions } from "../spi/harness.ts";
import type { ModelResponse } from "../spi/model.ts";
import type { ApprovalRef, ToolResult, Usage } from "../spi/wire.ts";
import { errorOfWire } from "./status.ts";

interface Waiting<T> {
  readonly ordinal: number;
  resolve(value: T): void;
  reject(error: unknown): void;
}

/** The ordinal of what is no event: a request for a token. */
const NO_EVENT = 0;

const NO_USAGE: Usage = { $typeName: "agentsessions.v1.Usage", model: "", inputTokens: 0n, outputTokens: 0n, reasoningTokens: 0n };

/** What waits for the host. */
export class CallTable {
  readonly #models = new Map<string, Waiting<ModelResponse>>();
  readonly #tools = new Map<string, Waiting<ToolResult>>();
  readonly #tokens = new Map<number, Waiting<string>>();
  readonly #parks: ApprovalParkedError[] = [];
  #ordinal = 0;
  #token = 0;
  #closed: HoldfastError | undefined;
  #fatal: HoldfastError | undefined;

  /** The refusal after which nothing happens any more. */
  get fatal(): HoldfastError | undefined {
    return this.#fatal;
  }

  /** The calls that were parked, the oldest first. */
  get parks(): readonly ApprovalParkedError[] {
    return this.#parks;
  }

  /** Throws where no further call may be made. */
  enter(options: CallOptions): void {
    const fault = this.#closed ?? this.#fatal;
    if (fault !== undefined) throw fault;
    options.signal?.throwIfAborted();
  }

  /** Sends an event that nobody answers; counts it if it could be sent. */
  async record(send: () => Promise<void>): Promise<void> {
    const sent = send();
    this.#ordinal += 1;
    await sent;
  }

  /** An id that no open model call has. */
  newModelCallId(): string {
    return `m${this.#ordinal + 1}`;
  }

  model(id: string, send: () => Promise<void>, options: CallOptions): Promise<ModelResponse> {
    return this.#ask(this.#models, id, send, options);
  }

  tool(id: string, send: () => Promise<void>, options: CallOptions): Promise<ToolResult> {
    if (this.#tools.has(id)) return Promise.reject(new HoldfastError("invalid_argument", "call.id: a call with this id is under way"));
    return this.#ask(this.#tools, id, send, options);
  }

  token(send: (request: number) => Promise<void>, options: CallOptions): Promise<string> {
    const request = ++this.#token;
    return this.#ask(this.#tokens, request, () => send(request), options, NO_EVENT);
  }

  answerModel({ modelCallId, message, usage }: ModelResult): void {
    const waiting = take(this.#models, modelCallId);
    if (message === undefined) waiting?.reject(new HoldfastError("internal", "model: the host sent a result without a message"));
    // A host of another make may know nothing of what the call consumed.
    else waiting?.resolve({ message, usage: usage ?? NO_USAGE });
  }

  answerTool(result: ToolResult): void {
    take(this.#tools, result.id)?.resolve(result);
  }

  answerToken({ request, token, error }: MintTokenResponse): void {
    const waiting = take(this.#tokens, request);
    if (error === undefined) waiting?.resolve(token);
    else waiting?.reject(errorOfWire(error));
  }

  /** The call's request waits for a decision. */
  park(ref: ApprovalRef): void {
    const error = new ApprovalParkedError(ref);
    this.#parks.push(error);
    take(this.#tools, ref.toolCallId)?.reject(error);
  }

  refuse(ordinal: number, error: HoldfastError): void {
    const waiting = takeOrdinal(this.#models, ordinal) ?? takeOrdinal(this.#tools, ordinal);
    if (waiting === undefined) this.#fatal ??= error;
    else waiting.reject(error);
  }

  /** Nothing comes any more. */
  close(fault: HoldfastError): void {
    this.#closed ??= fault;
    for (const table of [this.#models, this.#tools, this.#tokens]) {
      for (const waiting of table.values()) waiting.reject(this.#closed);
      table.clear();
    }
  }

  #ask<Key, T>(
    table: Map<Key, Waiting<T>>,
    key: Key,
    send: () => Promise<void>,
    { signal }: CallOptions,
    ordinal = this.#ordinal + 1,
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      // Whoever gave up a call does not hear of its result; the host goes on with it.
      const onAbort = (): void => reject(signal?.reason);
      const done = (): void => signal?.removeEventListener("abort", onAbort);
      const waiting: Waiting<T> = {
        ordinal,
        resolve: (value) => (done(), resolve(value)),
        reject: (error) => (done(), reject(error)),
      };
      const sent = send();
      if (ordinal !== NO_EVENT) this.#ordinal = ordinal;
      signal?.addEventListener("abort", onAbort, { once: true });
      table.set(key, waiting);
      sent.catch((error: unknown) => {
        table.delete(key);
        waiting.reject(error);
      });
    });
  }
}

function take<Key, T>(table: Map<Key, Waiting<T>>, key: Key): Waiting<T> | undefined {
  const waiting = table.get(key);
  table.delete(key);
  return waiting;
}

function takeOrdinal<T>(table: Map<string, Waiting<T>>, ordinal: number): Waiting<T> | undefined {
  for (const [key, waiting] of table) {
    if (waiting.ordinal === ordinal) return take(table, key);
  }
  return undefined;
}
