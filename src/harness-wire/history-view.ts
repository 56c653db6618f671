/** A session's history at the harness's end: pulled page by page as it is read, or the events that came with the start. */

import { HoldfastError } from "../base/errors.ts";
import type { Seq } from "../base/ids.ts";
import type { HistoryPage as WirePage } from "../gen/holdfast/v1/harness_wire_pb.ts";
import type { History, HistoryPage } from "../spi/harness.ts";
import type { Event } from "../spi/wire.ts";
import type { HarnessFrameBody } from "./harness-end.ts";
import { errorOfWire } from "./status.ts";

/** The range of a read. */
type ReadOptions = NonNullable<Parameters<History["read"]>[0]>;

/** How many pages are on their way while one is looked at. */
const PAGES_AHEAD = 4;
/** How many pages of a pushed history are looked at without a pause. */
const PUSHED_PAGE_EVENTS = 512;

/** A history that came as a whole. */
export function pushedHistory(events: readonly Event[]): History {
  return {
    lastSeq: events.length as Seq,
    async *read({ fromSeq, toSeq, signal }: ReadOptions = {}): AsyncGenerator<HistoryPage, void, undefined> {
      const last = Math.min(toSeq ?? events.length, events.length);
      for (let first = Math.max(fromSeq ?? 1, 1); first <= last; first += PUSHED_PAGE_EVENTS) {
        signal?.throwIfAborted();
        yield { firstSeq: first as Seq, events: events.slice(first - 1, Math.min(first - 1 + PUSHED_PAGE_EVENTS, last)) };
      }
    },
  };
}

interface OpenRead {
  readonly pages: WirePage[];
  nextSeq: number;
  fault: Error | undefined;
  wake: () => void;
}

/** A history that is pulled. */
export class PulledHistory implements History {
  readonly lastSeq: Seq;
  readonly #send: (body: HarnessFrameBody) => Promise<void>;
  readonly #reads = new Map<number, OpenRead>();
  #lastRead = 0;
  #closed: Error | undefined;

  constructor(lastSeq: Seq, options: { readonly send: (body: HarnessFrameBody) => Promise<void> }) {
    this.lastSeq = lastSeq;
    this.#send = options.send;
  }

  async *read({ fromSeq, toSeq, signal }: ReadOptions = {}): AsyncGenerator<HistoryPage, void, undefined> {
    const first = Math.max(fromSeq ?? 1, 1);
    const last = Math.min(toSeq ?? this.lastSeq, this.lastSeq);
    if (first > last) return;
    signal?.throwIfAborted();
    if (this.#closed !== undefined) throw this.#closed;
    const id = ++this.#lastRead;
    const read: OpenRead = { pages: [], nextSeq: first, fault: undefined, wake: () => undefined };
    this.#reads.set(id, read);
    const onAbort = (): void => this.#break(read, signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      await this.#ask({ read: id, fromSeq: BigInt(first), toSeq: BigInt(last), pages: PAGES_AHEAD });
      for (;;) {
        const page = await this.#next(read);
        if (page.error !== undefined) throw errorOfWire(page.error);
        if (page.events.length > 0) yield this.#checked(read, page);
        if (page.last) return void this.#reads.delete(id);
        if (read.pages.length <= PAGES_AHEAD / 2) await this.#ask({ read: id, pages: 1, more: true });
      }
    } finally {
      signal?.removeEventListener("abort", onAbort);
      if (this.#reads.delete(id) && this.#closed === undefined) await this.#ask({ read: id, pages: 0, more: true });
    }
  }

  /** Takes a page. One that no read waits for was given up. */
  receive(page: WirePage): void {
    const read = this.#reads.get(page.read);
    read?.pages.push(page);
    read?.wake();
  }

  /** Nothing comes any more. */
  close(fault: HoldfastError): void {
    this.#closed ??= fault;
    for (const read of this.#reads.values()) this.#break(read, fault);
  }

  #break(read: OpenRead, fault: unknown): void {
    read.fault ??= fault instanceof Error ? fault : new HoldfastError("cancelled", "history: the read was cancelled", { cause: fault });
    read.wake();
  }

  async #next(read: OpenRead): Promise<WirePage> {
    while (read.pages.length === 0 && read.fault === undefined) await new Promise<void>((resolve) => (read.wake = resolve));
    if (read.fault !== undefined) throw read.fault;
    return read.pages.shift()!;
  }

  #checked(read: OpenRead, page: WirePage): HistoryPage {
    if (Number(page.firstSeq) !== read.nextSeq) throw new HoldfastError("data_loss", "history: a page of it is missing");
    read.nextSeq += page.events.length;
    return { firstSeq: Number(page.firstSeq) as Seq, events: page.events };
  }

  #ask(request: Extract<HarnessFrameBody, { case: "readHistory" }>["value"]): Promise<void> {
    return this.#send({ case: "readHistory", value: request });
  }
}
