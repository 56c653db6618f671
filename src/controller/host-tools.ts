/** What a sink needs of its host to run tools: the executor, and the receipts of what ran before. */

import { type HoldfastError, toHoldfastError } from "../base/errors.ts";
import type { Seq, SessionUid } from "../base/ids.ts";
import { decodeLogRecord } from "../canon/index.ts";
import type { Event } from "../gen/agentsessions/v1/common_pb.ts";
import type { JournalStore, Receipt } from "../journal/index.ts";
import type { BlobStore, ToolCall, ToolExecutor, ToolResult } from "../spi/index.ts";

/** The tools of a host, as the turns of one session use them. */
export class HostTools {
  /** Undefined on a host that runs no tools. */
  readonly executor: ToolExecutor | undefined;
  /** Where they put what is too large for a record. */
  readonly blobs: BlobStore | undefined;
  readonly #journal: JournalStore;
  readonly #session: SessionUid;
  readonly #onFault: (fault: HoldfastError) => void;

  /** `onFault` is told when the journal cannot be read: whoever asked must not take that for an answer. */
  constructor(options: {
    readonly executor?: ToolExecutor | undefined;
    readonly blobs?: BlobStore | undefined;
    readonly journal: JournalStore;
    readonly session: SessionUid;
    readonly onFault?: ((fault: HoldfastError) => void) | undefined;
  }) {
    this.executor = options.executor;
    this.blobs = options.blobs;
    this.#journal = options.journal;
    this.#session = options.session;
    this.#onFault = options.onFault ?? (() => undefined);
  }

  /** The session's receipt under an idempotency key. */
  async receipt(key: string): Promise<Receipt | undefined> {
    return (await this.#read(() => this.#journal.receipts(this.#session, { key })))[0];
  }

  /** The call that was the last to act under a receipt's key. */
  async callOf({ callSeq }: Receipt): Promise<ToolCall | undefined> {
    const body = (await this.#read(() => eventAt(this.#journal, this.#session, callSeq)))?.body;
    return body?.case === "tool" ? body.value : undefined;
  }

  /** The TOOL_RESULT at `seq`. */
  async resultAt(seq: Seq): Promise<ToolResult | undefined> {
    const body = (await this.#read(() => eventAt(this.#journal, this.#session, seq)))?.body;
    return body?.case === "result" ? body.value : undefined;
  }

  async #read<T>(read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (error) {
      const fault = toHoldfastError(error);
      this.#onFault(fault);
      throw fault;
    }
  }
}

/** The event of a record; undefined where there is none. */
export async function eventAt(journal: JournalStore, session: SessionUid, seq: Seq): Promise<Event | undefined> {
  for await (const [record] of journal.read({ session, fromSeq: seq, toSeq: seq })) {
    if (record !== undefined) return decodeLogRecord(record.bytes).event;
  }
  return undefined;
}
