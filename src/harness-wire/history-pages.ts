/** A history as pages that a frame can hold, each event encoded once. */

import type { Seq } from "../base/ids.ts";
import { encodeEvent } from "../canon/index.ts";
import type { Event, History } from "../spi/index.ts";

/** Consecutive events, and their encodings. */
export interface EncodedPage {
  readonly firstSeq: number;
  readonly events: readonly Event[];
  readonly encoded: readonly Uint8Array[];
  readonly bytes: number;
}

/** The range of a read, and the size of its pages. A single event may be larger than `bytesMax`. */
export interface PagingOptions {
  readonly fromSeq?: Seq | undefined;
  readonly toSeq?: Seq | undefined;
  readonly eventsMax: number;
  readonly bytesMax: number;
  readonly signal?: AbortSignal | undefined;
}

/** Reads `history` in pages of a bounded size, whatever the size of its own. */
export async function* encodedPages(history: History, options: PagingOptions): AsyncGenerator<EncodedPage, void, undefined> {
  const { fromSeq, toSeq, signal, eventsMax, bytesMax } = options;
  const range = { ...(fromSeq === undefined ? {} : { fromSeq }), ...(toSeq === undefined ? {} : { toSeq }) };
  for await (const page of history.read({ ...range, ...(signal === undefined ? {} : { signal }) })) {
    let start = 0;
    while (start < page.events.length) {
      const encoded: Uint8Array[] = [];
      let bytes = 0;
      let end = start;
      for (; end < page.events.length && encoded.length < eventsMax; end++) {
        const one = encodeEvent(page.events[end]!);
        if (encoded.length > 0 && bytes + one.length > bytesMax) break;
        encoded.push(one);
        bytes += one.length;
      }
      yield { firstSeq: page.firstSeq + start, events: page.events.slice(start, end), encoded, bytes };
      start = end;
    }
  }
}
