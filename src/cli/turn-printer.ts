/**
 * Records and deltas of a live stream as lines. On a terminal an output appears as it is made, on the line that its record will
 * have, and the line is complete once the record is committed; elsewhere a line appears when its record does.
 */

import type { Delta, LogRecord, StreamItem } from "../client/index.ts";
import { plain } from "./plain.ts";
import { indented, kindOf, messageLine, recordLine, recordPrefix } from "./record-line.ts";

export class TurnPrinter {
  readonly #write: (text: string) => void;
  readonly #live: boolean;
  #lastSeq = 0n;
  /** What of an output stands on the open line; undefined when no line is open. */
  #streamed: string | undefined;

  /** `live`: whether deltas are shown. `lastSeq`: the seq before the first record that will come. */
  constructor(write: (text: string) => void, options: { readonly live: boolean; readonly lastSeq?: bigint | undefined }) {
    this.#write = write;
    this.#live = options.live;
    this.#lastSeq = options.lastSeq ?? 0n;
  }

  print(item: StreamItem): void {
    switch (item.kind) {
      case "session":
        this.#session(item.session.lastSeq);
        return;
      case "delta":
        if (this.#live) this.#delta(item.delta);
        return;
      case "record":
        this.#record(item.record);
    }
  }

  /** Ends a line that is still open: the stream ended before its record came. */
  close(): void {
    if (this.#streamed !== undefined) this.#write("\n");
    this.#streamed = undefined;
  }

  /** A session in the middle of a stream means that deltas may be missing from the open line. */
  #session(lastSeq: bigint): void {
    this.close();
    if (this.#lastSeq === 0n) this.#lastSeq = lastSeq;
  }

  #delta({ chunk }: Delta): void {
    if (chunk === "") return;
    if (this.#streamed === undefined) {
      this.#write(recordPrefix(this.#lastSeq + 1n, "OUTPUT"));
      this.#streamed = "";
    }
    this.#streamed += chunk;
    this.#write(indented(plain(chunk)));
  }

  #record(record: LogRecord): void {
    const rest = this.#restOf(record);
    if (rest === undefined) {
      this.close();
      this.#write(`${recordLine(record)}\n`);
    } else {
      this.#streamed = undefined;
      this.#write(`${indented(rest)}\n`);
    }
    this.#lastSeq = record.seq;
  }

  /** What the open line lacks of this record; undefined when the record is not what the line shows. */
  #restOf(record: LogRecord): string | undefined {
    const body = record.event?.body;
    if (this.#streamed === undefined || body?.case !== "message" || kindOf(record) !== "OUTPUT") return undefined;
    if (record.seq !== this.#lastSeq + 1n) return undefined;
    const shown = plain(this.#streamed);
    const text = messageLine(body.value);
    return text.startsWith(shown) ? text.slice(shown.length) : undefined;
  }
}
