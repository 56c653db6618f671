/** `holdfast.v1.Journal` for callers. */

import { create } from "@bufbuild/protobuf";
import { Journal, VerifyRequestSchema, type VerifyResponse } from "../gen/holdfast/v1/journal_pb.ts";
import type { StreamItem } from "./items.ts";
import { tail, type TailOptions } from "./tail.ts";
import type { CallOptions, Transport } from "./transport.ts";

/** How long a verification may take when the caller names no time: it reads the whole journal. */
const VERIFY_TIMEOUT_MS = 600_000;

/** The Journal calls. Each rejects with a HoldfastError that has the server's code, message and field. */
export class JournalClient {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Follows a session from a cursor: the session first, then records and deltas as they come. A lost connection is made anew and
   * the stream goes on at the next seq: no record is lost or repeated. After that the session comes once more, and deltas of
   * the time between are missing.
   */
  tail(session: string, options: TailOptions = {}): AsyncGenerator<StreamItem, void, undefined> {
    return tail(this.#transport, session, options);
  }

  /** Has the server verify a session's chain from the first record to the head. A broken chain is an answer, not an error. */
  verify(session: string, options: CallOptions = {}): Promise<VerifyResponse> {
    const { signal, timeoutMs = VERIFY_TIMEOUT_MS } = options;
    return this.#transport.unary(Journal.method.verify, create(VerifyRequestSchema, { session }), { signal, timeoutMs });
  }
}
