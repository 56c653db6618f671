/**
 * Reads of a history that a harness asked for, answered in pages.
 *
 * Invariants:
 * - No more pages are on their way than the harness has asked for; nothing is read ahead of that but one page.
 * - A read ends with a page that says so, unless the harness gave it up.
 */

import { HoldfastError } from "../base/errors.ts";
import type { Seq } from "../base/ids.ts";
import type { HistoryPage, ReadHistoryRequest } from "../gen/holdfast/v1/harness_wire_pb.ts";
import type { Event, History } from "../spi/index.ts";
import { encodedPages, type EncodedPage } from "./history-pages.ts";
import type { WireLimits } from "./limits.ts";
import { brokenProtocol } from "./protocol.ts";
import { wireErrorOf } from "./status.ts";

/** A page as the line is given it. */
export type PageInit = Pick<HistoryPage, "read" | "firstSeq" | "last"> & {
  readonly events: Event[];
  readonly error?: { readonly code: number; readonly description: string };
};

/** Where pages go; resolves when the line can take the next one. */
export type SendPage = (page: PageInit, encoded: readonly Uint8Array[]) => Promise<void>;

interface OpenRead {
  readonly abort: AbortController;
  credit: number;
  wake: () => void;
}

/** The reads of one execution. */
export class HistoryFeed {
  readonly #history: History;
  readonly #send: SendPage;
  readonly #limits: WireLimits;
  readonly #encoded: boolean;
  readonly #reads = new Map<number, OpenRead>();
  #refusing = 0;

  constructor(history: History, options: { readonly send: SendPage; readonly limits: WireLimits; readonly encoded: boolean }) {
    this.#history = history;
    this.#send = options.send;
    this.#limits = options.limits;
    this.#encoded = options.encoded;
  }

  /** Takes a request. Throws the rule that it breaks. */
  request(request: ReadHistoryRequest): void {
    const open = this.#reads.get(request.read);
    const { pagesAheadMax } = this.#limits;
    if (request.more) {
      // A read may have ended while the request for more of it was under way.
      if (open === undefined) return;
      if (request.pages === 0) return this.#giveUp(request.read, open);
      open.credit += request.pages;
      if (open.credit > pagesAheadMax) throw brokenProtocol(`a read must ask for at most ${pagesAheadMax} pages ahead`);
      return open.wake();
    }
    if (open !== undefined) throw brokenProtocol("a read must have a number that no open read has");
    const lastSeq = BigInt(this.#history.lastSeq);
    if (request.fromSeq < 0n || request.toSeq < 0n) throw brokenProtocol("a read must name seqs that are not negative");
    if (request.pages > pagesAheadMax) throw brokenProtocol(`a read must ask for at most ${pagesAheadMax} pages ahead`);
    if (this.#reads.size >= this.#limits.readsMax) {
      if (this.#refusing >= this.#limits.readsMax) throw brokenProtocol("too many reads are asked for at once");
      return void this.#refuse(
        request.read,
        new HoldfastError("resource_exhausted", `history: at most ${this.#limits.readsMax} reads may be open`),
      );
    }
    const fromSeq = request.fromSeq === 0n ? 1n : request.fromSeq;
    const toSeq = request.toSeq === 0n || request.toSeq > lastSeq ? lastSeq : request.toSeq;
    const read: OpenRead = { abort: new AbortController(), credit: Math.max(1, request.pages), wake: () => undefined };
    this.#reads.set(request.read, read);
    void this.#pump(request.read, read, fromSeq > toSeq ? undefined : { fromSeq: Number(fromSeq) as Seq, toSeq: Number(toSeq) as Seq });
  }

  /** Gives up every read. */
  close(): void {
    for (const [id, read] of this.#reads) this.#giveUp(id, read);
  }

  #giveUp(id: number, read: OpenRead): void {
    this.#reads.delete(id);
    read.abort.abort(new HoldfastError("cancelled", "history: the read was given up"));
    read.wake();
  }

  async #pump(id: number, read: OpenRead, range: { readonly fromSeq: Seq; readonly toSeq: Seq } | undefined): Promise<void> {
    const { signal } = read.abort;
    try {
      let ready: EncodedPage | undefined;
      if (range !== undefined) {
        const size = { eventsMax: this.#limits.pageEventsMax, bytesMax: this.#limits.pageBytesMax };
        for await (const page of encodedPages(this.#history, { ...range, ...size, signal })) {
          if (ready !== undefined && !(await this.#sendPage(id, read, ready, false))) return;
          ready = page;
        }
      }
      await this.#sendPage(id, read, ready, true);
    } catch (error) {
      if (!signal.aborted) await this.#refuse(id, error);
    } finally {
      if (this.#reads.get(id) === read) this.#reads.delete(id);
    }
  }

  /** False once the read was given up. */
  async #sendPage(id: number, read: OpenRead, page: EncodedPage | undefined, last: boolean): Promise<boolean> {
    while (read.credit === 0 && !read.abort.signal.aborted) await new Promise<void>((resolve) => (read.wake = resolve));
    if (read.abort.signal.aborted) return false;
    read.credit -= 1;
    // Whoever has the last page may use its number again.
    if (last) this.#reads.delete(id);
    const events = this.#encoded ? [] : [...(page?.events ?? [])];
    await this.#send({ read: id, firstSeq: BigInt(page?.firstSeq ?? 0), events, last }, this.#encoded ? (page?.encoded ?? []) : []);
    return true;
  }

  async #refuse(id: number, error: unknown): Promise<void> {
    this.#refusing += 1;
    try {
      await this.#send({ read: id, firstSeq: 0n, events: [], last: true, error: wireErrorOf(error) }, []);
    } catch {
      // The line is closed, and everything on it has been told so.
    } finally {
      this.#refusing -= 1;
    }
  }
}
