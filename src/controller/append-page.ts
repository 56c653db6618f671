/** One append in the making. */

import type { Seq } from "../base/ids.ts";
import type { NewEvent, Receipt, ReceiptState } from "../journal/index.ts";
import type { ToolCall } from "../spi/index.ts";

/** Events and receipts of one append, with the seqs that they will have. */
export class AppendPage {
  readonly events: NewEvent[] = [];
  readonly receipts: Receipt[] = [];
  readonly #before: Seq;

  constructor(before: Seq) {
    this.#before = before;
  }

  get isEmpty(): boolean {
    return this.events.length === 0 && this.receipts.length === 0;
  }

  /** Adds an event; the seq that its record will have. */
  add(event: NewEvent): Seq {
    return (this.#before + this.events.push(event)) as Seq;
  }
}

/** The receipt of a call. */
export function receiptOf(call: ToolCall, callSeq: Seq, state: ReceiptState): Receipt {
  return { key: call.idempotencyKey, callId: call.id, callSeq, state };
}
