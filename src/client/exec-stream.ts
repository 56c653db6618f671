/**
 * One turn as its client sees it.
 *
 * Invariants:
 * - A turn is asked for once. When the stream is cut, the turn goes on without its client, and the stream picks it up from the
 *   journal: the request is never sent a second time.
 * - It ends without an error only when the turn has: with its END, or waiting for an approval.
 */

import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "../base/errors.ts";
import type { ApprovalRef, Error as EventError, LogRecord } from "../gen/agentsessions/v1/common_pb.ts";
import { GetSessionRequestSchema, Sessions, type ExecRequest } from "../gen/agentsessions/v1/session_pb.ts";
import { itemOf, type StreamItem } from "./items.ts";
import { isConnectionFault, isConnectionLost, type ReconnectOptions } from "./reconnect.ts";
import { tail } from "./tail.ts";
import type { CallOptions, Transport } from "./transport.ts";

/** How a turn ended. */
export type TurnEnd =
  | { readonly kind: "ended"; readonly state: "COMPLETED" | "CANCELED" }
  | { readonly kind: "ended"; readonly state: "FAILED"; readonly error: EventError | undefined }
  /** It waits for a decision. */
  | { readonly kind: "parked"; readonly approval: ApprovalRef };

/** Options of a turn's stream. */
export interface ExecOptions extends CallOptions {
  /** How a stream that was cut is picked up; `false`: it rejects with UNAVAILABLE, and the turn goes on by itself. */
  readonly reconnect?: ReconnectOptions | false | undefined;
}

/** A running turn: an iterable of its items, to be iterated once. Leaving it leaves the turn running. */
export class ExecStream implements AsyncIterable<StreamItem> {
  readonly #transport: Transport;
  readonly #request: ExecRequest;
  readonly #options: ExecOptions;
  readonly #items: AsyncGenerator<StreamItem, void, undefined>;
  #sessionUid: string | undefined;
  #executionId: string | undefined;
  #lastSeq = 0n;
  #end: TurnEnd | undefined;

  constructor(transport: Transport, request: ExecRequest, options: ExecOptions) {
    this.#transport = transport;
    this.#request = request;
    this.#options = options;
    this.#items = this.#run();
  }

  /** The session's uid; undefined until the server named one that it creates. */
  get sessionUid(): string | undefined {
    return this.#sessionUid ?? (this.#request.session === "" ? undefined : this.#request.session);
  }

  /** The turn's id; undefined before its first record. */
  get executionId(): string | undefined {
    return this.#executionId;
  }

  /** The seq of the last record that came; 0 before the first. `journal.tail` from the one after it picks the turn up. */
  get lastSeq(): bigint {
    return this.#lastSeq;
  }

  /** How the turn ended; undefined while it has not. */
  get end(): TurnEnd | undefined {
    return this.#end;
  }

  [Symbol.asyncIterator](): AsyncGenerator<StreamItem, void, undefined> {
    return this.#items;
  }

  /** Reads what is left of the stream and says how the turn ended. */
  async finish(): Promise<TurnEnd> {
    for await (const item of this.#items) void item;
    if (this.#end === undefined) throw interrupted();
    return this.#end;
  }

  async *#run(): AsyncGenerator<StreamItem, void, undefined> {
    try {
      yield* this.#ask();
    } catch (error) {
      if (!isConnectionLost(error)) throw error;
      // The connection went after the turn's last word had come: nothing is missing.
      if (this.#end !== undefined) return;
      if (this.#options.reconnect === false) throw error;
      // Without a record of the turn nobody can say whether it began.
      if (this.#executionId === undefined || this.sessionUid === undefined) throw error;
      yield* this.#pickUp(this.sessionUid, error);
    }
  }

  async *#ask(): AsyncGenerator<StreamItem, void, undefined> {
    const { signal, timeoutMs } = this.#options;
    for await (const update of this.#transport.stream(Sessions.method.exec, this.#request, { signal, timeoutMs })) {
      const item = itemOf(update);
      if (item === undefined) continue;
      this.#note(item);
      yield item;
    }
  }

  /** From the journal, until the turn has ended or is not running any more. */
  async *#pickUp(session: string, lost: unknown): AsyncGenerator<StreamItem, void, undefined> {
    const { signal, timeoutMs, reconnect } = this.#options;
    const options = { fromSeq: this.#lastSeq + 1n, until: "idle", signal, timeoutMs, reconnect } as const;
    for await (const item of tail(this.#transport, session, options)) {
      this.#note(item);
      yield item;
      if (this.#end?.kind === "ended") return;
    }
    const now = await this.#transport.unary(Sessions.method.getSession, create(GetSessionRequestSchema, { uid: session }), { signal });
    this.#note({ kind: "session", session: now });
    // What looked like a lost connection may have been the server's own word about the turn: it says more than that it stopped.
    if (this.#end === undefined) throw isConnectionFault(lost) ? interrupted() : lost;
    yield { kind: "session", session: now };
  }

  #note(item: StreamItem): void {
    switch (item.kind) {
      case "session": {
        this.#sessionUid = item.session.metadata?.uid ?? this.#sessionUid;
        const approval = item.session.pendingApproval;
        const isOurs = approval !== undefined && approval.executionId === this.#executionId;
        if (isOurs && this.#executionId !== undefined) this.#end = { kind: "parked", approval };
        return;
      }
      case "record":
        this.#lastSeq = item.record.seq;
        // A cold session's RESUME comes first, and belongs to no execution.
        this.#executionId ??= item.record.event?.executionId || undefined;
        this.#end = endOf(item.record, this.#executionId) ?? this.#end;
        return;
      case "delta":
    }
  }
}

function endOf({ event }: LogRecord, executionId: string | undefined): TurnEnd | undefined {
  if (event?.body.case !== "end" || event.executionId !== executionId) return undefined;
  const { state, error } = event.body.value;
  if (state === "COMPLETED" || state === "CANCELED") return { kind: "ended", state };
  return { kind: "ended", state: "FAILED", error };
}

function interrupted(): HoldfastError {
  return new HoldfastError("aborted", "turn: it stopped before its END; read the session, then resume it or run another turn");
}
