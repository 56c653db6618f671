/**
 * Following a session's records from a cursor.
 *
 * Invariant: records come in order, each once, whatever happens to the connection. After a loss the stream goes on at the seq
 * after the last record that was handed out; a record that came before is passed over, and one that is missing is DATA_LOSS.
 */

import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "../base/errors.ts";
import { Journal, TailRequestSchema, TailRequest_Until } from "../gen/holdfast/v1/journal_pb.ts";
import { itemOf, type StreamItem } from "./items.ts";
import { Attempts, reconnectPolicy, type ReconnectOptions } from "./reconnect.ts";
import { wireSeq, type SeqLike } from "./seqs.ts";
import type { CallOptions, Transport } from "./transport.ts";

/** What to follow, and until when. */
export interface TailOptions extends CallOptions {
  /** The first seq; 0 and 1 both mean the first record, one past the head waits for that record. Default 0. */
  readonly fromSeq?: SeqLike | undefined;
  /**
   * `head` ends with the record that is the head when the call arrives, `idle` once no turn is running. Left out, the stream
   * follows the session until the caller leaves or the session is deleted.
   */
  readonly until?: "head" | "idle" | undefined;
  /** Ephemeral deltas too. Default true. */
  readonly deltas?: boolean | undefined;
  /** What happens when the connection is lost; `false`: the stream rejects with UNAVAILABLE. */
  readonly reconnect?: ReconnectOptions | false | undefined;
}

/** See `JournalClient.tail`. */
export async function* tail(transport: Transport, session: string, options: TailOptions): AsyncGenerator<StreamItem, void, undefined> {
  const attempts = new Attempts(reconnectPolicy(options.reconnect), transport.ports);
  let nextSeq = firstSeq(options.fromSeq);
  for (;;) {
    try {
      for await (const item of tailOnce(transport, session, nextSeq, options)) {
        if (item.kind === "record") {
          const { seq } = item.record;
          if (seq < nextSeq) continue;
          if (seq > nextSeq) throw gap(nextSeq, seq);
          nextSeq = seq + 1n;
          attempts.progress();
        }
        yield item;
      }
      return;
    } catch (error) {
      await attempts.afterLoss(error, options.signal);
    }
  }
}

async function* tailOnce(
  transport: Transport,
  session: string,
  fromSeq: bigint,
  { until, deltas, signal, timeoutMs }: TailOptions,
): AsyncGenerator<StreamItem, void, undefined> {
  const request = create(TailRequestSchema, { session, fromSeq, until: untilOf(until), omitDeltas: deltas === false });
  for await (const update of transport.stream(Journal.method.tail, request, { signal, timeoutMs })) {
    const item = itemOf(update);
    if (item !== undefined) yield item;
  }
}

function firstSeq(fromSeq: SeqLike | undefined): bigint {
  const seq = wireSeq(fromSeq, "fromSeq");
  return seq === 0n ? 1n : seq;
}

function untilOf(until: TailOptions["until"]): TailRequest_Until {
  switch (until) {
    case undefined:
      return TailRequest_Until.UNSPECIFIED;
    case "head":
      return TailRequest_Until.HEAD;
    case "idle":
      return TailRequest_Until.IDLE;
  }
}

function gap(expected: bigint, found: bigint): HoldfastError {
  return new HoldfastError("data_loss", `seq: the stream went from ${expected - 1n} to ${found}; records are missing between them`);
}
